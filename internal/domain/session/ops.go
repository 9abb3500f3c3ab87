package session

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Sessions, audit, streams"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "session.list", Method: "GET", Path: "/v1/sessions", Group: group, Rule: policy.Require(policy.ReadSessions), Paging: &op.Paging{Default: 50, Max: 200, Bounded: true},
			Summary: "The account's newest sessions"}, s.list),
		op.New(op.Row{ID: "session.list_by_project", Method: "GET", Path: "/v1/repos/{owner}/{repo}/sessions", Group: group, Rule: policy.Require(policy.ReadSessions), Paging: &op.Paging{Default: 50, Max: 200},
			Summary: "A repository's sessions, newest first"}, s.listByProject),
		op.New(op.Row{ID: "session.get", Method: "GET", Path: "/v1/sessions/{id}", Group: group, Rule: policy.Require(policy.ReadSessions),
			Summary: "One session"}, s.get),
		op.Stream(op.Row{ID: "session.events", Method: "GET", Path: "/v1/sessions/{id}/events", Group: group, Rule: policy.Require(policy.ReadSessions), Resume: true,
			Summary: "Follow what happens in a session: backfill, tail, end"}, s.events),
		op.New(op.Row{ID: "session.events_export", Method: "GET", Path: "/v1/sessions/{id}/events.jsonl", Group: group, Rule: policy.Require(policy.ReadSessions),
			Summary: "Download what happened in a session, one JSON object a line"}, s.export),
		op.New(op.Row{ID: "session.replay", Method: "POST", Path: "/v1/sessions/{id}/replay", Group: group, Rule: policy.Require(policy.ReadSessions),
			Refuses: []op.Refusal{{Status: 409, Slug: "session_running"}},
			Summary: "What another policy would have decided in a finished session; changes nothing"}, s.replay),
		op.New(op.Row{ID: "session.message", Method: "POST", Path: "/v1/fleet/runs/{runId}/message", Group: group, Rule: policy.Require(policy.WriteSessions),
			Refuses: []op.Refusal{{Status: 409, Slug: "no_live_channel"}},
			Summary: "Say something to the agent of a live run, and wait for its answer"}, s.message),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Bounded[Session], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn, "")
		return err
	})
	if err != nil {
		return op.Bounded[Session]{}, err
	}
	b := op.NewBounded(in.PageIn, rows)
	return op.Bounded[Session]{Data: wires(b.Data), HasMore: b.HasMore}, nil
}

type projectIn struct {
	op.PageIn
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
}

func (s *Service) listByProject(ctx context.Context, in projectIn) (op.Page[Session], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		repo, ok, err := repoID.Maybe(tx, tx.Account, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("repository")
		}
		rows, err = list(tx, in.PageIn, repo)
		return err
	})
	if err != nil {
		return op.Page[Session]{}, err
	}
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.StartedAt, r.ID) })
	return op.Page[Session]{Data: wires(p.Data), NextCursor: p.NextCursor}, nil
}

func wires(rows []row) []Session {
	out := make([]Session, len(rows))
	for i, r := range rows {
		out[i] = r.wire()
	}
	return out
}

type idIn struct {
	ID string `json:"id"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Session, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		out = r.wire()
		return err
	})
	return out, err
}
