package session

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
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
			Summary: "One repository's sessions, newest first"}, s.listByRepo),
		op.New(op.Row{ID: "session.get", Method: "GET", Path: "/v1/sessions/{id}", Group: group, Rule: policy.Require(policy.ReadSessions),
			Summary: "One session"}, s.get),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Bounded[Session], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn, "")
		return err
	})
	return op.NewBounded(in.PageIn, wire(rows)), err
}

func wire(rows []row) []Session {
	out := make([]Session, len(rows))
	for i, r := range rows {
		out[i] = r.session()
	}
	return out
}

type repoIn struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
	op.PageIn
}

func (s *Service) listByRepo(ctx context.Context, in repoIn) (op.Page[Session], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("repository")
		}
		rows, err = list(tx, in.PageIn, r.ID)
		return err
	})
	return op.NewPage(in.PageIn, wire(rows), func(s Session) []string { return op.TimeKey(s.StartedAt, s.ID) }), err
}

type idIn struct {
	ID string `json:"id"`
}

func (s *Service) get(ctx context.Context, in idIn) (Session, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		var err error
		if r, ok, err = byID.Maybe(tx, tx.Account, in.ID); err == nil && !ok {
			err = fault.Missing("session")
		}
		return err
	})
	return r.session(), err
}
