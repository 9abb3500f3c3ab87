package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/access"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// subscribe tells the domains what happens in others, inside the transaction in
// which it does. What it says first is told first.
func (a *App) subscribe(p parts) {
	event.Detach(a.db)
	a.subscribeRepos(p)
	a.subscribeAccounts(p)
	for _, fn := range []func(*db.Tx, task.Move) error{
		// A pull request without a task is abandoned.
		func(tx *db.Tx, m task.Move) error {
			if t := m.Task; t.Status == task.Cancelled && t.PRID != nil {
				return tx.As(t.AccountID, func() error { return p.pull.Abandon(tx, *t.PRID, t.ID) })
			}
			return nil
		},
		// A check runs, or waits again.
		func(tx *db.Tx, m task.Move) error {
			t := m.Task
			if t.Kind != task.KindCI || t.PRID == nil {
				return nil
			}
			switch t.Status {
			case task.Running, task.Pending, task.Held:
				return tx.As(t.AccountID, func() error { return p.pull.CheckMoved(tx, t.ID, t.Status == task.Running) })
			}
			return nil
		},
		// The repair of a pull request has ended.
		func(tx *db.Tx, m task.Move) error {
			t := m.Task
			if t.Kind != task.KindBabysit || t.PRID == nil || !t.Status.Terminal() {
				return nil
			}
			return p.pull.RoundEnded(tx, *t.PRID, t.ID, t.Status == task.Cancelled)
		},
		p.plan.TaskMoved,
		// The repair of a pull request is no task of the plan, but may stall it.
		func(tx *db.Tx, m task.Move) error {
			t := m.Task
			if t.Kind != task.KindBabysit || t.PRID == nil {
				return nil
			}
			return tx.As(t.AccountID, func() error {
				work, ok, err := workOf(tx, *t.PRID)
				if err != nil || !ok {
					return err
				}
				return p.plan.TaskStuck(tx, &work)
			})
		},
		// Nobody needs what a cancelled task waited for.
		func(tx *db.Tx, m task.Move) error {
			if t := m.Task; t.Status == task.Cancelled {
				return tx.As(t.AccountID, func() error { return p.blocker.Expire(tx, t.ID) })
			}
			return nil
		},
	} {
		task.Moved.On(a.db, fn)
	}
	task.StuckChanged.On(a.db, p.plan.TaskStuck)

	followPulls(a.db, p.task)
	pull.MinderUnneeded.On(a.db, stopTask(p.task))
	pull.RoundsSpent.On(a.db, raiseTrouble)
	pull.SeenTo.On(a.db, func(tx *db.Tx, n pull.Note) error { return escalation.ResolveOfPull(tx, n.PRID, n.Text) })
	run.AskFiled.On(a.db, fileOfRun(p.ask))
	run.BlockerDeclared.On(a.db, func(tx *db.Tx, d run.Declaration[protocol.BlockerDeclared]) error {
		return p.blocker.Declare(tx, d.Task.RepoID, d.Task.ID, d.Run.ID, d.Declared)
	})
	blocker.FieldsRefused.On(a.db, func(tx *db.Tx, r blocker.Refusal) error {
		_, err := p.run.Wake(tx, r.RunID, r.Text)
		return err
	})
	budget.RunStopped.On(a.db, func(tx *db.Tx, s budget.Stopped) error { return p.run.Halt(tx, s.RunID, s.Kind, s.Why) })
	budget.TaskFreed.On(a.db, releaseFreed(p.task))
	budget.SessionFreed.On(a.db, func(tx *db.Tx, f budget.Freed) error { return p.ask.Wake(tx, f.Account, f.ID) })
	box.Left.On(a.db, func(tx *db.Tx, l box.Farewell) error { return p.run.HandBack(tx, l.BoxID, l.Held) })
}

// subscribeRepos tells the domains what happens to repositories.
func (a *App) subscribeRepos(p parts) {
	repo.PushedEvent.On(a.db, func(tx *db.Tx, e event.Event[repo.Push]) error {
		return p.pull.OnPush(tx, e.Data.Repo, e.Data.Branch, e.Data.Head, e.Data.By)
	})
	repo.Unsure.On(a.db, p.pull.Recheck)
	// What the old policy file held up and the new one does not is let go.
	repo.PolicyChanged.On(a.db, func(tx *db.Tx, r repo.Ref) error { return p.task.PolicyChanged(tx, r.ID) })
	repo.PolicyChanged.On(a.db, func(tx *db.Tx, r repo.Ref) error { return p.budget.PolicyChanged(tx, r.ID, limitsOf(r.Policy)) })
}

// subscribeAccounts tells the domains what happens to accounts and to the
// people in them.
func (a *App) subscribeAccounts(p parts) {
	event.RightsChanged.On(a.db, func(tx *db.Tx, userID string) error {
		tx.AfterCommit(func() { p.signin.ForgetUser(userID) })
		return nil
	})
	event.CredentialDropped.On(a.db, func(tx *db.Tx, hash string) error {
		tx.AfterCommit(func() { p.signin.Forget(hash) })
		return nil
	})
	invitation.Withdrawn.On(a.db, access.Withdrawn)
	// Given twice, it would count twice.
	grant.Equipped.On(a.db, invitation.Empty)
	// What an owner was given counts in another account.
	invitation.OwnersChanged.On(a.db, func(tx *db.Tx, o invitation.Owner) error { return p.grant.Moved(tx, o.AccountID, o.UserID) })
	// What a lower cap held up goes on.
	account.Capped.On(a.db, func(tx *db.Tx, c account.Cap) error { return p.budget.OperatorCap(tx, c.AccountID, c.Micros) })
	modelkey.Repriced.On(a.db, p.budget.Recheck)
}
