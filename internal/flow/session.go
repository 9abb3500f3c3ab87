package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// SessionRuns are the runs whose conversations sessions are. It is session.Runs;
// the transcripts of package session show it.
type SessionRuns struct{ Runs *run.Service }

// Say owes the agent of a live run of tx.Account a message; fault.Conflict with the
// slug no_live_channel if it cannot be reached.
func (SessionRuns) Say(tx *db.Tx, runID, text string) (messageID string, err error) {
	return run.Message(tx, runID, text)
}

// Await waits for the outcome of a message, at most until the end of the wait.
func (s SessionRuns) Await(ctx context.Context, runID, messageID string, wait time.Duration) (session.Outcome, error) {
	out, err := s.Runs.AwaitMessage(ctx, runID, messageID, wait)
	return session.Outcome{Status: out.Status, Reply: out.Reply}, err
}

// Events are the events of a run as its session shows them.
func (SessionRuns) Events(tx *db.Tx, runID string, after int64, limit int) ([]session.Event, error) {
	rows, err := run.EventsAfter(tx, runID, after, limit)
	out := make([]session.Event, len(rows))
	for i, e := range rows {
		out[i] = session.NewEvent(e.Seq, e.T, e.Kind, e.Data)
	}
	return out, err
}

// Record is how a run was carried out, for a replay of its session.
func (SessionRuns) Record(tx *db.Tx, runID string) (out session.RunRecord, err error) {
	r, ok, err := run.RecordOf(tx, runID)
	if err != nil || !ok {
		return out, err
	}
	out = session.RunRecord{Template: &r.Template, Isolation: r.Isolation, FailureKind: r.FailureKind, LastSeq: r.LastSeq}
	if r.IsolationHolds != nil {
		out.IsolationHolds = r.IsolationHolds.V
	}
	return out, nil
}

// Policies implements session.Policies: it reads policy files for replays.
type Policies struct{}

// Parse reads a policy file as it would be in force in a repository of tx.Account,
// nil for none; the messages say what is wrong with it.
func (Policies) Parse(tx *db.Tx, repoID *string, yml string) (session.Candidate, []string, error) {
	p, problems := repo.ParsePolicy([]byte(yml)) // no decision of a replay depends on the defaults of a repository
	if len(problems) > 0 || repoID == nil {
		return candidate(p), problems, nil
	}
	r, _, err := repo.ByIDAnywhere(tx, *repoID)
	p, _ = r.Floors.Clamp(p)
	return candidate(p), nil, err
}

// candidate returns the decisions of a policy, for a replay.
func candidate(p repo.Policy) session.Candidate {
	c := session.Candidate{
		Template: p.Agent.Template, Isolation: string(p.Agent.Isolation), CheckCommand: p.Checks.Command, CheckTimeout: p.CheckTimeout(),
		MergeMode: string(p.Merge.Mode), MergeMethod: p.Merge.Method, DeleteBranch: p.Merge.DeleteBranch, OnCancel: p.Merge.OnCancel,
		Conflicts:  p.Conflicts,
		TaskMicros: money.Micros(p.Budget.TaskUSD), RunMicros: money.Micros(p.Budget.RunUSD), Instructions: contentDigest(p.Instructions),
	}
	var servers strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		fmt.Fprintf(&servers, "%q %q\n", name, p.MCPServers[name])
	}
	c.MCPServers = contentDigest(servers.String())
	return c
}

func contentDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
