package app

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/protocol"
)

// wireAsks connects asks to the tasks that triage mints for them, to the runs
// that file some, and to the model that judges them.
func (a *App) wireAsks(tasks *task.Service, sessions *session.Service) *ask.Service {
	s := &ask.Service{
		DB: a.db, Hub: a.hub, Logger: a.log, Judge: triageModel{a.db, sessions}, Full: tasks.Full, Fleet: fleetForJudges,
		Mint: func(tx *db.Tx, n ask.NewTask) (string, error) {
			r, err := a.repoByID(tx, n.RepoID)
			if err != nil {
				return "", err
			}
			agent, err := templateFor(tx, r.Template)
			if err != nil {
				return "", err
			}
			t, err := tasks.Create(tx, r, task.Spec{
				Kind: n.Kind, Sink: task.SinkQueued, Title: n.Title, Problem: n.Problem, Template: agent.Name, Priority: n.Priority,
				Confidence: 1, DependsOn: n.DependsOn, Files: n.Files, AskID: &n.AskID, RequestedBy: &n.RequestedBy,
			})
			return t.ID, err
		},
	}
	return s
}

// fileOfRun files the ask that the agent of a run declares.
func fileOfRun(asks *ask.Service) func(*db.Tx, run.Declaration[protocol.AskFiled]) error {
	return func(tx *db.Tx, d run.Declaration[protocol.AskFiled]) error {
		return asks.FileOfRun(tx, ask.OfRun{
			RunID: d.Run.ID, RepoID: d.Run.RepoID, AskID: d.Task.AskID, By: d.Task.RequestedBy,
			ID: d.Declared.ID, Title: d.Declared.Title, Body: d.Declared.Body, Repo: d.Declared.Repo, DedupeKey: d.Declared.DedupeKey,
		})
	}
}

// fleetForJudges is what could carry out work of tx.Account.
func fleetForJudges(tx *db.Tx) (f ask.Fleet, err error) {
	if f.BoxesOnline, f.Agents, err = box.Serving(tx, tx.Account); err == nil {
		f.Templates, err = template.Names(tx, tx.Account)
	}
	return f, err
}

// templateFor is the template that a repository wishes for, if the account has
// it, and the account's default otherwise.
func templateFor(tx *db.Tx, wish string) (template.Template, error) {
	t, ok, err := template.ByName(tx, tx.Account, wish)
	if err == nil && !ok {
		t, _, err = template.ByName(tx, tx.Account, template.Default)
	}
	return t, err
}

// maxVerdict is the longest verdict, in tokens.
const maxVerdict = 16_000

// triageModel is the account's own model, as its repositories' templates choose it.
type triageModel struct {
	db       *db.DB
	sessions *session.Service
}

// Begin opens a session of kind triage.
func (j triageModel) Begin(ctx context.Context, m ask.Matter) (ask.Talk, error) {
	o := session.Opening{AccountID: m.AccountID, RepoID: m.RepoID, RequestedBy: m.RequestedBy, Trigger: "ask", Kind: "triage", MaxTokens: maxVerdict, Before: m.Before}
	err := j.db.Read(db.WithAccount(ctx, m.AccountID), func(tx *db.Tx) error {
		wish := template.Default
		if m.RepoID != "" {
			r, ok, err := repo.ByID(tx, m.RepoID)
			if err != nil {
				return err
			}
			if ok {
				wish = r.Policy.Agent.Template
			}
		}
		t, err := templateFor(tx, wish)
		if t.Agent != template.Command {
			o.Provider, o.BaseURL, o.Model = t.Provider, t.BaseURL, t.Model
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	talk, err := j.sessions.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return talk, nil
}
