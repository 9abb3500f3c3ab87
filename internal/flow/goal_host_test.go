package flow

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/codehost/github"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/goal"
	"yardmaster/internal/domain/repo"
	peer "yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
	"yardmaster/internal/proof/seed"
)

// unlimited are limits of GitHub that nothing waits for.
type unlimited struct{}

func (unlimited) Take(context.Context, string, pace.Cost) error { return nil }
func (unlimited) Note(string, pace.Note)                        {}

// The board of a repository at GitHub shows its milestones as they are there, and
// renames them there.
func TestGoalBoardAtGitHub(t *testing.T) {
	t.Parallel()
	s := description.Serve(t, peer.Options{})
	org, ann := s.Org("acme"), s.Person("ann")
	ann.Join(org, "admin", false)
	at := s.Repo("acme/roadmap", peer.NewRepo{Files: map[string]string{"README.md": "# Roadmap\n"}})
	all := map[string]string{}
	for _, p := range github.Needed {
		all[p.Name] = p.Level
	}
	app := s.NewApp(peer.NewApp{Name: "Yard", Permissions: all, HookURL: "http://127.0.0.1:1/", Secret: "hush"})
	app.Install(org)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	h, err := github.New(github.Config{
		Name: "github:peer", Addresses: github.Addresses{Web: s.Web, API: s.API, GraphQL: s.GraphQL},
		AppID: app.ID, Slug: app.Slug, Key: []byte(app.PEM()), Secrets: []string{"hush"}, Folder: t.TempDir(),
		CloneURL: func(codehost.Repo) string { return "" }, Now: s.Now, Limits: unlimited{}, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	there := codehost.Repo{Host: "github:peer", ID: strconv.FormatInt(at.ID, 10), Owner: "acme", Name: "roadmap"}
	m := at.NewMilestone(ann, "Boxes")
	closed, open := at.OpenIssue(ann, "One", ""), at.OpenIssue(ann, "Two", "")
	m.Add(ann, closed)
	m.Add(ann, open)
	if err := h.EditIssue(t.Context(), there, "0199d3a4-5b6c-7d8e-9f01-23456789abcd", int64(closed.Number),
		codehost.IssueEdit{Close: "completed"}); err != nil {
		t.Fatal(err)
	}

	d := dbtest.SQLite(t)
	if err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
			return err
		}
		_, err := repo.Install(tx, there, "main", false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	board := GoalBoard{DB: d, Place: "github:peer/acme/roadmap", Hosts: codehost.NewHosts(map[string]codehost.Sides{
		"github:peer": h.Sides(), codehost.BuiltIn: {Host: &builtin.Host{}, Forge: builtin.Forge{}},
	})}
	now := s.Now()
	name, goals, err := board.Goals(t.Context(), now)
	if err != nil || name != "acme/roadmap" || len(goals) != 1 {
		t.Fatalf("%s %+v %v", name, goals, err)
	}
	g := goals[0]
	if g.Title != "Boxes" || !g.Open || g.Items != 2 || g.Done != 1 || g.LastClosed == nil || now.Sub(*g.LastClosed).Abs() > time.Hour {
		t.Errorf("%+v", g)
	}
	if err := board.Rename(t.Context(), g.Number, "Boxes update"); err != nil {
		t.Fatal(err)
	}
	if _, goals, err = board.Goals(t.Context(), now); err != nil || goals[0].Title != "Boxes update" {
		t.Errorf("%+v %v", goals, err)
	}
	if err := board.Rename(t.Context(), g.Number+1, "x"); err != goal.ErrMissing {
		t.Errorf("%v", err)
	}
}
