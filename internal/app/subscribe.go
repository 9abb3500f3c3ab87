package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/access"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/emailroute"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/oauth"
	"yardmaster/internal/domain/operator"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
	"yardmaster/internal/flow"
)

// subscribe connects the domains to the events and signals of others. A subscriber
// runs inside the transaction of the change; subscribers run in this order.
func (a *App) subscribe(p wired) {
	event.Detach(a.db)
	a.subscribeRepos(p)
	a.subscribeAccounts(p)
	for _, fn := range []func(*db.Tx, task.Move) error{
		flow.AbandonCancelled(p.pull),
		flow.MoveAbove(p.pull),
		flow.MoveCheck(p.ci),
		flow.EndRound(p.pull),
		flow.MoveReview(p.review),
		p.plan.TaskMoved,
		flow.CloseIssue(p.issue),
		flow.StallWithRepair(p.plan),
		flow.ExpireBlockers,
		flow.ReportLanes(p.hive, p.run),
	} {
		task.Moved.On(a.db, fn)
	}
	task.QueueChanged.On(a.db, queue.Count)
	task.StuckChanged.On(a.db, p.plan.TaskStuck)
	task.RunUnwanted.On(a.db, p.run.Stop)
	run.CommandQueued.On(a.db, flow.EnqueueCommand(p.box))
	run.BoxBlamed.On(a.db, flow.MarkUnfit(p.box))

	flow.FollowPulls(a.db, p.task)
	ci.Ended.On(a.db, flow.EndCheck(p.pull))
	ci.HostChecked.On(a.db, flow.EndHostChecks(p.pull))
	ci.Ended.On(a.db, flow.WakeQueues(p.merges))
	ci.HostChecked.On(a.db, flow.WakeForHost(p.merges))
	mergequeue.TurnCame.On(a.db, p.pull.TurnCame)
	mergequeue.HeadRejected.On(a.db, flow.RejectHead(p.pull))
	ci.BaseBroke.On(a.db, flow.RaiseBroken)
	ci.BaseHealed.On(a.db, flow.ResolveBroken)
	record.TaskUnneeded.On(a.db, flow.StopTask(p.task))
	record.RoundsSpent.On(a.db, flow.RaiseTrouble)
	record.SeenTo.On(a.db, flow.ResolveTrouble)
	repo.Installed.On(a.db, flow.SweepReachable)
	repo.Installed.On(a.db, p.issue.Walk)
	repo.Installed.On(a.db, flow.RetryRepo(p.pull.RetryNow))
	ask.Settled.On(a.db, flow.FollowAsk(p.issue))
	ask.TurnChanged.On(a.db, p.ask.FollowTurn)
	webhook.Told.On(a.db, flow.FollowHandoff(p.issue))
	plan.Ended.On(a.db, flow.FinishPlan(p.issue))
	connection.Granted.On(a.db, a.grants(p.parts).Retry)
	connection.Granted.On(a.db, flow.RetryMerges(p.pull))
	connection.Granted.On(a.db, flow.ResolveGranted)
	merge.Ungranted.On(a.db, a.grants(p.parts).RaiseMerge)
	intent.LineMoved.On(a.db, p.intent.FollowLine)
	intent.GivenUp.On(a.db, a.grants(p.parts).Raise)
	tracker.GivenUp.On(a.db, flow.RaiseUntracked)
	record.SeenTo.On(a.db, flow.EndReviews(p.review))
	pull.RequestsAnswered.On(a.db, flow.ResolveAnswered(p.talk))
	review.PostingEnded.On(a.db, p.pull.ReviewPosted)
	pull.HeadKnown.On(a.db, flow.BeginReview(p.review))
	record.MergeTried.On(a.db, p.approval.Tried)
	run.AskFiled.On(a.db, flow.FileOfRun(p.ask))
	run.ActionProposed.On(a.db, flow.AskForAction(p.pull))
	run.PageProposed.On(a.db, flow.ProposePages(p.kb))
	run.BlockerDeclared.On(a.db, flow.DeclareBlockers(p.blocker))
	blocker.FieldsRefused.On(a.db, flow.TellRefusal)
	budget.RunStopped.On(a.db, flow.HaltRun)
	budget.TaskFreed.On(a.db, flow.ReleaseFreed(p.task))
	budget.SessionFreed.On(a.db, flow.WakeAsk(p.ask))
	session.Ended.On(a.db, p.budget.SessionEnded)
	donation.Ended.On(a.db, p.budget.SessionEnded)
	box.Left.On(a.db, flow.HandBack(p.run))
	a.readers = event.NewReaders(a.db, a.log, consumers(p))
}

// consumers read events after they are committed, on whichever node is free.
func consumers(p wired) []event.Consumer {
	return []event.Consumer{
		flow.RefreshMerged(p.repo),
		flow.CompareMerged(p.kb),
		flow.SignMerged(p.proofs),
		flow.MailQuestions(p.approval),
		flow.TellWebhooks(p.webhook),
		flow.Notify{Notifications: p.notes, Blockers: p.blocker, Pulls: p.pull, Actors: p.actor}.Consumer(),
	}
}

// subscribeRepos connects the domains to the events of repositories.
func (a *App) subscribeRepos(p wired) {
	repo.PushedEvent.On(a.db, flow.NotePush(p.pull))
	repo.PushedEvent.On(a.db, flow.FollowBase(p.ci))
	repo.PushedEvent.On(a.db, p.kb.Pushed)
	repo.Unsure.On(a.db, p.pull.Recheck)
	repo.Lost.On(a.db, flow.StopLost(p.task))
	repo.PolicyChanged.On(a.db, flow.RejudgeTasks(p.task))
	repo.PolicyChanged.On(a.db, flow.RejudgeBudgets(p.budget))
	repo.PolicyChanged.On(a.db, p.pull.PolicyChanged)
	repo.DefaultRenamed.On(a.db, p.pull.DefaultRenamed)
}

// subscribeAccounts connects the domains to the events of accounts and of their
// members.
func (a *App) subscribeAccounts(p wired) {
	people.Placed.On(a.db, p.digest.Plan)
	people.Placed.On(a.db, p.boards.Placed)
	event.RightsChanged.On(a.db, p.signin.RightsChanged)
	event.RightsChanged.On(a.db, hosttoken.RightsChanged)
	event.RightsChanged.On(a.db, modelkey.RightsChanged)
	event.RightsChanged.On(a.db, modelkey.PrefRightsChanged)
	event.RightsChanged.On(a.db, p.pull.RightsChanged)
	event.RightsChanged.On(a.db, token.RightsChanged)
	event.RightsChanged.On(a.db, invitation.RightsChanged)
	event.RightsChanged.On(a.db, oauth.RightsChanged)
	event.RightsChanged.On(a.db, emailroute.RightsChanged)
	event.RightsChanged.On(a.db, p.box.RightsChanged)
	event.RightsChanged.On(a.db, p.unasked)
	event.CredentialDropped.On(a.db, p.signin.CredentialDropped)
	invitation.Withdrawn.On(a.db, access.Withdrawn)
	// Given twice, it would count twice.
	grant.Equipped.On(a.db, invitation.Empty)
	invitation.OwnersChanged.On(a.db, flow.Gifts{Ledger: grant.Ledger{Hub: a.hub}}.OwnersChanged)
	operator.Capped.On(a.db, flow.LiftCap(p.budget))
	modelkey.Repriced.On(a.db, p.budget.Recheck)
	token.Minted.On(a.db, quota.TokenMinted)
	box.Added.On(a.db, quota.BoxEnrolled)
	repo.Made.On(a.db, flow.CountRepo)
}
