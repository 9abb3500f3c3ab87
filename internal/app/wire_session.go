package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/money"
)

// sessions connects the sessions to the runs whose conversations they are.
func (a *App) sessions(p parts) *session.Service {
	return &session.Service{
		DB: a.db, Hub: a.hub, Keys: p.billing, Budget: p.budget, Logger: a.log, Clock: time.Now, Prices: a.prices, Resolve: a.resolveModelToken(p.run),
		Say: p.run.Message, RunEvents: runEvents, RunRecord: runRecord,
		Await: func(ctx context.Context, runID, messageID string, wait time.Duration) (session.Outcome, error) {
			out, err := p.run.AwaitMessage(ctx, runID, messageID, wait)
			return session.Outcome{Status: out.Status, Reply: out.Reply}, err
		},
		Parse: func(tx *db.Tx, repoID *string, yml string) (session.Candidate, []string, error) {
			p, problems := repo.ParsePolicy([]byte(yml))
			if len(problems) > 0 || repoID == nil {
				return candidate(p), problems, nil
			}
			r, _, err := repo.ByIDAnywhere(tx, *repoID)
			p, _ = r.Floors.Clamp(p)
			return candidate(p), nil, err
		},
	}
}

// runEvents are the events of a run as its session shows them.
func runEvents(tx *db.Tx, runID string, after int64, limit int) ([]session.Event, error) {
	rows, err := run.EventsAfter(tx, runID, after, limit)
	out := make([]session.Event, len(rows))
	for i, e := range rows {
		out[i] = session.NewEvent(e.Seq, e.T, e.Kind, e.Data)
	}
	return out, err
}

// runRecord is how a run was carried out, for a replay of its session.
func runRecord(tx *db.Tx, runID string) (out session.RunRecord, err error) {
	r, ok, err := run.RecordOf(tx, runID)
	if err != nil || !ok {
		return out, err
	}
	out = session.RunRecord{Template: &r.Template, Isolation: r.Isolation, FailureKind: r.FailureKind}
	if r.IsolationHolds != nil {
		out.IsolationHolds = r.IsolationHolds.V
	}
	return out, nil
}

// candidate is what a policy decides, for a replay.
func candidate(p repo.Policy) session.Candidate {
	c := session.Candidate{
		Template: p.Agent.Template, Isolation: p.Agent.Isolation, CheckCommand: p.Checks.Command, CheckTimeout: p.CheckTimeout(),
		MergeMode: p.Merge.Mode, MergeMethod: p.Merge.Method, DeleteBranch: p.Merge.DeleteBranch, OnCancel: p.Merge.OnCancel, Conflicts: p.Conflicts,
		TaskMicros: money.Micros(p.Budget.TaskUSD), RunMicros: money.Micros(p.Budget.RunUSD), Instructions: digest(p.Instructions),
	}
	var servers strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		fmt.Fprintf(&servers, "%q %q\n", name, p.MCPServers[name])
	}
	c.MCPServers = digest(servers.String())
	return c
}

func digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// policyNow is the policy that a run in a repository begins under, as its
// session keeps it.
func policyNow(tx *db.Tx, repoID string) (string, error) {
	r, _, err := repo.ByIDAnywhere(tx, repoID)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(candidate(r.Policy))
	return string(text), err
}
