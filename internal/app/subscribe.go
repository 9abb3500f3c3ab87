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
	"yardmaster/internal/flow"
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
		flow.ExpireBlockers,
	} {
		task.Moved.On(a.db, fn)
	}
	task.StuckChanged.On(a.db, p.plan.TaskStuck)
	task.RunUnwanted.On(a.db, p.run.Stop)
	run.CommandOwed.On(a.db, flow.OweCommand(p.box))
	run.BoxBlamed.On(a.db, flow.MarkUnfit(p.box))

	followPulls(a.db, p.task)
	pull.MinderUnneeded.On(a.db, stopTask(p.task))
	pull.RoundsSpent.On(a.db, raiseTrouble)
	pull.SeenTo.On(a.db, func(tx *db.Tx, n pull.Note) error { return escalation.ResolveOfPull(tx, n.PRID, n.Text) })
	run.AskFiled.On(a.db, fileOfRun(p.ask))
	run.BlockerDeclared.On(a.db, flow.DeclareBlockers(p.blocker))
	blocker.FieldsRefused.On(a.db, flow.TellRefusal)
	budget.RunStopped.On(a.db, flow.HaltRun)
	budget.TaskFreed.On(a.db, flow.ReleaseFreed(p.task))
	budget.SessionFreed.On(a.db, func(tx *db.Tx, f budget.Freed) error { return p.ask.Wake(tx, f.Account, f.ID) })
	box.Left.On(a.db, flow.HandBack(p.run))
}

// subscribeRepos tells the domains what happens to repositories.
func (a *App) subscribeRepos(p parts) {
	repo.PushedEvent.On(a.db, func(tx *db.Tx, e event.Event[repo.Push]) error {
		return p.pull.OnPush(tx, e.Data.Repo, e.Data.Branch, e.Data.Head, e.Data.By)
	})
	repo.Unsure.On(a.db, p.pull.Recheck)
	repo.PolicyChanged.On(a.db, flow.RejudgeTasks(p.task))
	repo.PolicyChanged.On(a.db, flow.RejudgeBudgets(p.budget))
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
