package session

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const group = "Sessions, audit, streams"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "session.list", Method: "GET", Path: "/v1/sessions", Group: group, Rule: policy.Require(policy.ReadSessions),
			Paging:  &op.Paging{Default: 50, Max: 200, Bounded: true, Filters: ofAll(), Several: []string{"outcome"}},
			Summary: "The account's newest sessions",
			Doc: "The newest sessions of the account, without a cursor: raise limit to see more, or walk those of one " +
				"repository with session.list_by_project. filter=run:ID leaves the one of a run, task:ID those of a task, " +
				"id:PART those whose id begins or ends with it, state:running those that go on, cost:unknown those that have " +
				"called a model whose price is not known.",
		}, s.list),
		op.New(op.Row{
			ID: "session.list_by_project", Method: "GET", Path: "/v1/repos/{owner}/{repo}/sessions", Group: group,
			Rule:    policy.Require(policy.ReadSessions),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: filters(), Several: []string{"outcome"}},
			Summary: "A repository's sessions, newest first",
			Doc:     "Those of runs on the repository, and of triage and questions about it.",
		}, s.listByProject),
		op.New(op.Row{
			ID: "session.get", Method: "GET", Path: "/v1/sessions/{id}", Group: group, Rule: policy.Require(policy.ReadSessions),
			Summary: "One session",
			Doc:     "What it cost and used so far; its events are apart.",
		}, s.get),
		op.Stream(op.Row{
			ID: "session.events", Method: "GET", Path: "/v1/sessions/{id}/events", Group: group, Rule: policy.Require(policy.ReadSessions),
			Resume: true,
			Events: []op.Event{
				{Name: "event", Data: Event{}, ID: true, Doc: "Something that happened, in order. The id is its cursor."},
				{Name: "end", Data: SessionEnd{}, ID: true, Doc: "The session is over and all was sent. The id is that of the last row with .end behind it."},
			},
			Summary: "Follow what happens in a session: backfill, tail, end",
			Doc: "Sends what is stored, then what comes, as frames named event, and at last one named end. The id of a " +
				"frame is the cursor of its row.",
		}, s.events),
		op.New(op.Row{
			ID: "session.events_export", Method: "GET", Path: "/v1/sessions/{id}/events.jsonl", Group: group,
			Rule:    policy.Require(policy.ReadSessions),
			Lines:   Event{},
			Refuses: []op.Refusal{{Status: 422, Slug: "export-too-large"}},
			Summary: "Download what happened in a session, one JSON object a line",
			Doc:     "The same rows as session.events, from one state of the database, at most 64 MiB.",
		}, s.export),
		op.New(op.Row{
			ID: "session.replay", Method: "POST", Path: "/v1/sessions/{id}/replay", Group: group, Rule: policy.Require(policy.ReadSessions),
			Refuses: []op.Refusal{{Status: 409, Slug: "session_running"}},
			Summary: "What another policy would have decided in a finished session; changes nothing",
			Doc: "Reads the recorded facts of a session against another policy file and lists the decisions that would " +
				"have come out otherwise. Nothing is run or stored. A session that goes on is refused.",
		}, s.replay),
		op.New(op.Row{
			ID: "session.message", Method: "POST", Path: "/v1/fleet/runs/{runId}/message", Group: group,
			Rule:    policy.Require(policy.WriteSessions),
			Refuses: []op.Refusal{{Status: 409, Slug: "no_live_channel"}},
			Summary: "Say something to the agent of a live run, and wait for its answer",
			Doc: "The text becomes a turn of its own when the agent has ended the present one. The call waits up to " +
				"wait_ms for the reply; status says how far the message got, and it is kept either way: do not send it " +
				"again. Refused when the run has ended or its agent takes no messages.",
		}, s.message),
	}
}

// filters are those of both lists.
func filters() map[string][]string {
	return map[string][]string{
		"id": nil, "model": nil, "outcome": {"succeeded", "failed", "interrupted", "lost"},
		"state": {"running", "ended"}, "cost": {"unknown"},
	}
}

// ofAll are the filters of the sessions of all repositories.
func ofAll() map[string][]string {
	all := filters()
	all["repo"], all["run"], all["task"] = nil, nil, nil
	return all
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Bounded[Session], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		repo := ""
		if name := in.Want("repo"); name != "" {
			owner, short, _ := strings.Cut(name, "/")
			var known bool
			if repo, known, err = repoID.Maybe(tx, tx.Account, owner, short); err != nil || !known {
				return err // an unknown repository has no sessions
			}
		}
		rows, err = list(tx, in.PageIn, repo)
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
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
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
	ID string `json:"id" format:"uuid" doc:"id of the session"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Session, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		out = r.wire()
		return err
	})
	return out, err
}
