package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// Access holds what the token of a live attempt gives access to.
type Access struct {
	RunID        string
	Attempt      int64
	AccountID    string
	TaskID       string
	TaskKind     string
	RepoID       string
	BoxID        string
	SessionID    string
	Branch       string // the one branch that may be pushed; empty: none
	Template     string
	Model        string
	BudgetMicros *int64 // limit of the task; nil: none
	Unbound      bool   // git goes without the token that RequestedBy has bound
	Preferred    Preferred
	Lent         bool   // its box is lent by another account
	RequestedBy  string // id of the user at the beginning of the task's chain; empty: nobody
}

// rescue is how long after a run was taken from its box the box may still save
// the run's work.
const rescue = 10 * time.Minute

// ResolveToken finds what a token of the kind gives access to. ok is false for
// a token that is unknown, expired or revoked; the end of a run revokes its
// tokens. Nothing is cached, so that a revocation holds at once.
func (s *Service) ResolveToken(ctx context.Context, token, kind string) (out Access, ok bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, ok, err = ByToken(tx, token, kind)
		return err
	})
	return out, ok, err
}

// ByToken is ResolveToken in a transaction.
func ByToken(tx *db.Tx, token, kind string) (Access, bool, error) {
	return resolve(tx, token, kind, func(a *access) bool {
		return a.RevokedAt == nil && a.EndedAt == nil && tx.Now.Before(a.ExpiresAt)
	})
}

// RescueByToken finds the run whose work the git token of a run may still save,
// under the run's own refs/wip: a run that was taken from its box less than ten
// minutes ago, and whose task is not cancelled. ok is false for every other
// token.
func RescueByToken(tx *db.Tx, token string) (Access, bool, error) {
	return resolve(tx, token, TokenGit, func(a *access) bool {
		was := transfers{a.EndedAt, a.Outcome, a.TaskStatus}
		return was.saves(tx) && a.RevokedAt != nil && a.RevokedAt.Equal(*a.EndedAt) // revoked by that end, and not replaced before
	})
}

// Transfers tells whether transfers of objects go on that a run has begun: while it lives, and
// while its box may save its work (see RescueByToken). In both its box may hold it.
func (s *Service) Transfers(ctx context.Context, runID string) (ok bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		a, found, err := selectTransfers.Maybe(tx, runID)
		ok = found && (a.EndedAt == nil || a.saves(tx))
		return err
	})
	return ok, err
}

// saves tells whether the box of a run that was taken from it may still save the run's work.
func (a *transfers) saves(tx *db.Tx) bool {
	taken := a.Outcome != nil && (*a.Outcome == Lost || *a.Outcome == Interrupted)
	return taken && a.EndedAt != nil && tx.Now.Before(a.EndedAt.Add(rescue)) && a.TaskStatus != task.Cancelled
}

func resolve(tx *db.Tx, token, kind string, good func(*access) bool) (Access, bool, error) {
	if !id.Checked(id.Attempt, token) {
		return Access{}, false, nil
	}
	a, found, err := selectAccess.Maybe(tx, seal.Hash(token), kind)
	if err != nil || !found || !good(&a) {
		return Access{}, false, err
	}
	out := Access{RunID: a.RunID, Attempt: a.Attempt, AccountID: a.AccountID, TaskID: a.TaskID, TaskKind: a.TaskKind, RepoID: a.RepoID,
		BoxID: a.BoxID, SessionID: a.SessionID, Template: a.Template, Model: a.Model, BudgetMicros: a.BudgetMicros,
		Unbound: a.Unbound, Lent: a.Lent}
	if a.PrefProvider != nil && a.PrefModel != nil {
		out.Preferred = Preferred{*a.PrefProvider, *a.PrefModel}
	}
	if a.RequestedBy != nil {
		out.RequestedBy = *a.RequestedBy
	}
	if pushes(a.TaskKind) {
		out.Branch = a.Branch
	}
	return out, true, nil
}

// Serve registers the handlers of the boxes' calls about their runs on the bus.
func (s *Service) Serve() error {
	for method, fn := range map[string]func(context.Context, string, []byte) (any, error){
		protocol.CallClaim:    call(s.claimSealed),
		protocol.CallAccept:   call(s.Accept),
		protocol.CallRenew:    call(s.Renew),
		protocol.CallAppend:   call(s.Append),
		protocol.CallGitToken: call(s.GitToken),
		protocol.CallSecrets:  call(s.Secrets),
	} {
		if err := s.Bus.Handle(method, fn); err != nil {
			return fmt.Errorf("run: answer %s: %w", method, err)
		}
	}
	return nil
}

// call makes a handler of fn, which decodes the box's request. Malformed data
// is fault.Invalid.
func call[I, O any](fn func(context.Context, string, I) (O, error)) func(context.Context, string, []byte) (any, error) {
	return func(ctx context.Context, boxID string, data []byte) (any, error) {
		var in I
		if err := json.Unmarshal(data, &in); err != nil {
			return nil, fault.New(fault.Invalid, "", "The call cannot be read.").Because(err)
		}
		return fn(ctx, boxID, in)
	}
}
