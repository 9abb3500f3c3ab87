package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/actor"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/creation"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/push"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/schedule"
	"yardmaster/internal/domain/talk"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Notify is the one place that says what an event means to whom. Each rule makes a notice
// of its events, or settles what earlier notices asked for.
type Notify struct {
	Notifications *notification.Service
	Blockers      *blocker.Service
	Pulls         *pull.Service
	Actors        *actor.Service
}

// rule is what is told of some kinds of events. ok false: there is nothing to tell.
type rule struct {
	kinds []event.Any
	tell  func(n Notify, tx *db.Tx, e event.Recorded) (notice notification.Notice, ok bool, err error)
}

// relief says which notices are settled by which events: those of a kind, about the
// object of the event.
type relief struct {
	kinds      []event.Any
	kind, noun string
}

// Nouns of what notices are about.
const (
	nounPull       = "pr"
	nounTalk       = "pr_talk"
	nounBlocker    = "blocker"
	nounEscalation = "escalation"
	nounTask       = "task"
	nounPlan       = "plan"
	nounIssue      = "issue"
	nounBox        = "box"
	nounOwner      = "box_owner"
	nounWebhook    = "webhook"
	nounRepo       = "repo"
	nounToken      = "host_token"
	nounSchedule   = "schedule"
	nounQuota      = "quota"
	nounArtifact   = "artifact"
	nounKey        = "key"
)

var rules = []rule{
	{[]event.Any{record.AskedEvent}, Notify.asked},
	{[]event.Any{record.RequestedEvent}, Notify.requested},
	{[]event.Any{talk.CommentedEvent}, Notify.commented},
	{[]event.Any{blocker.DeclaredEvent}, Notify.blocked},
	{[]event.Any{escalation.RaisedEvent}, Notify.escalated},
	{[]event.Any{task.CompletedEvent, task.MergedEvent}, Notify.done},
	{[]event.Any{task.FailedEvent, task.HeldEvent}, Notify.failed},
	{[]event.Any{plan.FailedEvent}, Notify.planFailed},
	{[]event.Any{box.UnfitEvent}, Notify.unfit},
	{[]event.Any{box.OwnerAsked}, Notify.ownerAsked},
	{[]event.Any{webhook.UnhealthyEvent}, Notify.unhealthy},
	{[]event.Any{issue.FailedEvent}, Notify.notHandedOff},
	{[]event.Any{repo.GoneEvent}, Notify.gone},
	{[]event.Any{creation.FailedEvent}, Notify.notCreated},
	{[]event.Any{hosttoken.RefusedEvent}, Notify.tokenRefused},
	{[]event.Any{schedule.PausedEvent}, Notify.scheduleStopped},
	{[]event.Any{quota.NearlyFullEvent}, Notify.nearlyFull},
	{[]event.Any{artifact.SharedEvent}, Notify.shared},
	{[]event.Any{modelkey.RefusedEvent, modelkey.OwnRefusedEvent}, Notify.keyRefused},
}

var reliefs = []relief{
	{record.QuestionsEnded, notification.Approval, nounPull},
	{blocker.Ended, notification.Blocker, nounBlocker},
	{[]event.Any{escalation.ResolvedEvent}, notification.Escalation, nounEscalation},
	{task.Resumed, notification.TaskFailed, nounTask},
	{task.Resumed, notification.Spending, nounTask},
	{append(slices.Clone(task.Resumed), plan.Mended...), notification.Plan, nounPlan},
	{issue.HandoffSettled, notification.Connection, nounIssue},
	{[]event.Any{box.FitEvent}, notification.Box, nounBox},
	{box.AskEnded, notification.Box, nounOwner},
	{[]event.Any{webhook.RevivedEvent}, notification.Connection, nounWebhook},
	{[]event.Any{repo.BackEvent}, notification.Connection, nounRepo},
	{[]event.Any{hosttoken.SetEvent}, notification.Connection, nounToken},
	{modelkey.Settling, notification.Connection, nounKey},
	{
		[]event.Any{schedule.ResumedEvent, schedule.UpdatedEvent, schedule.DeletedEvent},
		notification.Connection, nounSchedule,
	},
}

// Consumer reads the events that the rules are about.
func (n Notify) Consumer() event.Consumer {
	tells := map[string][]rule{}
	settles := map[string][]relief{}
	var kinds []event.Any
	heard := map[string]bool{}
	hear := func(k event.Any) {
		if !heard[k.Name()] {
			heard[k.Name()] = true
			kinds = append(kinds, k)
		}
	}
	for _, r := range everyRule() {
		for _, k := range r.kinds {
			hear(k)
			tells[k.Name()] = append(tells[k.Name()], r)
		}
	}
	for _, s := range slices.Concat(reliefs, pageReliefs, closureReliefs) {
		for _, k := range s.kinds {
			hear(k)
			settles[k.Name()] = append(settles[k.Name()], s)
		}
	}
	return event.Consumer{Name: "notification.tell", Kinds: kinds, Handle: func(tx *db.Tx, e event.Recorded) error {
		for _, s := range settles[e.Kind] {
			subject, ok, err := n.relieved(tx, s.noun, e)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := n.Notifications.Settle(tx, s.kind, s.noun, subject); err != nil {
				return err
			}
		}
		for _, r := range tells[e.Kind] {
			notice, ok, err := r.tell(n, tx, e)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			notice.Actor, notice.Source = e.Actor, e.ID
			if err := n.Notifications.Tell(tx, notice); err != nil {
				return err
			}
		}
		return nil
	}}
}

// relieved is the id of what an event relieves people of; false if it does not, yet.
func (n Notify) relieved(tx *db.Tx, noun string, e event.Recorded) (subject string, ok bool, err error) {
	switch noun {
	case nounPull: // the object of the event is the question
		q, ok, err := n.Pulls.QuestionByID(tx, e.Object)
		return q.PRID, ok, err
	case nounPlan:
		return planRelieved(tx, e)
	case nounPages:
		return pagesRelieved(tx, e)
	}
	return e.Object, true, nil
}

// asked: those who may decide hear that a pull request waits for them. What the policy
// orders, and what was decided meanwhile, waits for nobody.
func (n Notify) asked(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	q, ok, err := n.Pulls.QuestionByID(tx, e.Object)
	if err != nil || !ok || q.State != record.ActionPending {
		return out, false, err
	}
	t, _, err := workOf(tx, q.PRID)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Approval, Noun: nounPull, Subject: q.PRID, Path: q.URL, Repo: q.Repo,
		Title: fmt.Sprintf("#%d waits for your decision: %s", q.Number, q.Title), Text: q.Text,
	}
	out.To, err = deciders(tx, t.RequestedBy, policy.WritePRs)
	return out, true, err
}

// blocked: whoever asked for the work hears what it lacks; with nobody, owners and admins.
// Those who may write secrets get the link of the form.
func (n Notify) blocked(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	b, ok, err := blocker.BriefOf(tx, e.Object)
	if err != nil || !ok || b.State != string(blocker.Open) {
		return out, false, err
	}
	t, _, err := task.Get(tx, tx.Account, b.TaskID)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Blocker, Noun: nounBlocker, Subject: e.Object, Path: "/ui/tasks/" + b.TaskID,
		Title: "A run needs you: " + t.Title, Text: b.Question,
	}
	if out.Repo, err = nameOf(tx, &b.RepoID); err != nil {
		return out, false, err
	}
	if b.Kind == blocker.MissingCredential {
		out.Links = fixLink{n.Blockers, e.Object}
	}
	out.To, err = deciders(tx, t.RequestedBy, policy.WriteTasks)
	return out, true, err
}

// fixLink implements notification.Links: the form of a blocker, for those who may write
// secrets.
type fixLink struct {
	blockers *blocker.Service
	id       string
}

// For makes the link of one person.
func (f fixLink) For(tx *db.Tx, userID string, leaves time.Time) ([]notification.Link, error) {
	may, err := allowed(tx, userID, policy.WriteSecrets)
	if err != nil || !may {
		return nil, err
	}
	return []notification.Link{{Label: "Fill in what is missing (works for an hour)", URL: f.blockers.FixURL(tx, f.id, leaves)}}, nil
}

// escalated: owners and admins hear of every escalation, and whoever asked for the work.
func (n Notify) escalated(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	b, ok, err := escalation.BriefOf(tx, e.Object)
	if err != nil || !ok {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Escalation, Noun: nounEscalation, Subject: e.Object, Path: "/ui/escalations/" + e.Object,
		Title: b.Title, Text: b.Reason,
	}
	if b.Repo != nil {
		out.Repo = *b.Repo
	}
	if out.To, err = deciders(tx, nil, policy.WriteTasks); err != nil {
		return out, false, err
	}
	if b.TaskID != nil {
		t, _, err := task.Get(tx, tx.Account, *b.TaskID)
		if err != nil {
			return out, false, err
		}
		if t.RequestedBy != nil {
			out.To = append(out.To, *t.RequestedBy)
		}
	}
	return out, true, nil
}

// done: whoever asked for a piece of work hears that it is merged or completed, and of a
// plan when all of it is.
func (n Notify) done(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	t, ok, err := task.Get(tx, tx.Account, e.Object)
	if err != nil || !ok || t.RequestedBy == nil || minds(t.Kind) {
		return out, false, err
	}
	out.To = []string{*t.RequestedBy}
	if t.PlanID != nil {
		return planDone(tx, out, *t.PlanID)
	}
	out.Kind, out.Noun, out.Subject, out.Path = notification.TaskDone, nounTask, t.ID, "/ui/tasks/"+t.ID
	out.Title = "Done: " + t.Title
	if t.Status == task.Merged {
		out.Title = "Merged: " + t.Title
		if out.Text, err = n.merger(tx, t.PRID); err != nil {
			return out, false, err
		}
	}
	out.Repo, err = nameOf(tx, &t.RepoID)
	return out, true, err
}

// merger says who decided the merge of a pull request; "" if nobody knows.
func (n Notify) merger(tx *db.Tx, prID *string) (string, error) {
	if prID == nil {
		return "", nil
	}
	by, err := pull.MergedBy(tx, *prID)
	if err != nil || by == "" {
		return "", err
	}
	names, err := n.Actors.InWords(tx, []string{by})
	return "Decided by " + names[by] + ".", err
}

// failed: whoever asked for a piece of work hears that it failed or waits for a person;
// with nobody, owners and admins. Those hear as well when a limit of spending holds it.
// What a blocker holds is told by the blocker.
func (n Notify) failed(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	t, ok, err := task.Get(tx, tx.Account, e.Object)
	if err != nil || !ok || minds(t.Kind) || t.Status != task.Failed && t.Status != task.Held {
		return out, false, err
	}
	why := ""
	if t.FailureKind != nil {
		why = *t.FailureKind
	}
	switch {
	case why == task.Blocked:
		return out, false, nil
	case t.PlanID != nil && t.Status == task.Failed:
		return unitFailed(tx, t)
	}
	out = notification.Notice{
		Kind: notification.TaskFailed, Noun: nounTask, Subject: t.ID, Path: "/ui/tasks/" + t.ID, Title: "Failed: " + t.Title,
		About: "Stopped: " + t.Title,
	}
	if t.Status == task.Held {
		out.Title = "Waits for a person: " + t.Title
	}
	if t.Failure != nil {
		out.Text = *t.Failure
	}
	if out.Text == "" {
		out.Text = strings.ReplaceAll(why, "_", " ")
	}
	if out.Repo, err = nameOf(tx, &t.RepoID); err != nil {
		return out, false, err
	}
	if why == task.BudgetExhausted || why == task.UnpricedModel {
		out.Kind, out.Title, out.About = notification.Spending, "Held for its cost: "+t.Title, ""
		if out.To, err = deciders(tx, nil, policy.WriteBilling); err != nil {
			return out, false, err
		}
		if t.RequestedBy != nil {
			out.To = append(out.To, *t.RequestedBy)
		}
		return out, true, nil
	}
	out.To, err = deciders(tx, t.RequestedBy, policy.ReadTasks)
	return out, true, err
}

// unfit: the owner of a box hears that it cannot work; of a box of the account, owners and
// admins.
func (n Notify) unfit(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := box.UnfitEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	b, ok, err := box.BriefOf(tx, e.Object)
	if err != nil || !ok {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Box, Noun: nounBox, Subject: e.Object, Path: "/ui/boxes/" + e.Object, Title: b.Name + " cannot work",
		Text: data.Reason,
	}
	out.To, err = deciders(tx, b.OwnerID, policy.ReadRunners)
	return out, true, err
}

// ownerAsked: a person hears that a box is to take their work, and theirs alone.
func (n Notify) ownerAsked(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := box.OwnerAsked.Decode(e)
	if err != nil {
		return out, false, err
	}
	b, ok, err := box.BriefOf(tx, e.Object)
	return notification.Notice{
		Kind: notification.Box, Noun: nounOwner, Subject: e.Object, Path: "/ui/settings/you", To: []string{data.UserID},
		Title: "Shall " + b.Name + " take your work?", Text: "You are asked to own this box. It takes nothing of yours before you agree.",
	}, ok, err
}

// unhealthy, gone, notCreated: owners and admins hear what has stopped working. Of the own
// webhook of a person, that person hears it.
func (n Notify) unhealthy(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := webhook.UnhealthyEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	if data.UserID != nil {
		return notification.Notice{
			Kind: notification.Connection, Noun: nounWebhook, Subject: e.Object, Personal: true, To: []string{*data.UserID},
			Path: "/ui/settings/notifications", Title: "Your own webhook has stopped",
			Text: "A message was tried nine times. Nothing more is sent there until you set its address again.",
		}, true, nil
	}
	return stopped(tx, e, nounWebhook, "/ui/webhooks/"+e.Object, "The webhook "+data.Name+" has stopped",
		"An event was tried nine times. Nothing more is sent there until somebody revives it.")
}

func (n Notify) gone(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := repo.GoneEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	return stopped(tx, e, nounRepo, "/ui/repos/"+e.Object, data.Repo+" is out of reach", "At "+data.Host+": "+string(data.Why)+".")
}

func (n Notify) notCreated(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := creation.FailedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	return stopped(tx, e, nounRepo, "/ui/repos/"+e.Object, data.Repo+" was not made", data.Why)
}

// stopped is a notice of the kind Connection for owners and admins.
func stopped(tx *db.Tx, e event.Recorded, noun, path, title, text string) (out notification.Notice, ok bool, err error) {
	out = notification.Notice{
		Kind: notification.Connection, Noun: noun, Subject: e.Object, Path: path, Title: title, Text: text,
	}
	out.To, err = deciders(tx, nil, policy.ReadAccount)
	return out, true, err
}

// tokenRefused: a person hears that their own token of a code host is refused. The object
// of the event is the person.
func (n Notify) tokenRefused(_ *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := hosttoken.RefusedEvent.Decode(e)
	return notification.Notice{
		Kind: notification.Connection, Noun: nounToken, Subject: e.Object, Personal: true,
		Path: "/ui/you/" + e.Object, To: []string{e.Object},
		Title: data.Host + " refuses your token", Text: "Git of your own work goes no further there until you store a new one.",
	}, true, err
}

// Browsers implements notification.Channel by the browsers of people.
type Browsers struct{ Push *push.Service }

// Deliver queues a message for each browser of its person.
func (b Browsers) Deliver(tx *db.Tx, m notification.Message) error {
	return b.Push.Tell(tx, push.Notice{
		UserID: m.UserID, Topic: m.Kind + "/" + m.Noun + "/" + m.Subject, Kind: m.Kind, Title: m.Title, Text: m.Text, URL: m.URL,
		Urgent: m.Urgent, After: m.After,
	})
}

// minds tells whether work of a kind is the platform's own part of some other work, of
// which people hear.
func minds(kind string) bool {
	return kind == task.KindCI || kind == task.KindBabysit || kind == task.KindReview
}

// nameOf is owner/name of a repository; empty without one.
func nameOf(tx *db.Tx, repoID *string) (string, error) {
	if repoID == nil || *repoID == "" {
		return "", nil
	}
	r, ok, err := repo.ByIDAnywhere(tx, *repoID)
	if err != nil || !ok {
		return "", err
	}
	return r.FullName(), nil
}

// deciders are the person who asked, if they may still do what scope allows; else the
// owners and admins of tx.Account.
func deciders(tx *db.Tx, asker *string, scope policy.Scope) ([]string, error) {
	if asker != nil {
		may, err := allowed(tx, *asker, scope)
		if err != nil {
			return nil, err
		}
		if may {
			return []string{*asker}, nil
		}
	}
	members, err := people.Roster(tx, tx.Account)
	var out []string
	for _, m := range members {
		if m.Role == policy.Owner || m.Role == policy.Admin {
			out = append(out, m.UserID)
		}
	}
	return out, err
}

// allowed tells whether the role of a user in tx.Account allows something.
func allowed(tx *db.Tx, userID string, scope policy.Scope) (bool, error) {
	role, ok, err := people.Role(tx, tx.Account, userID)
	return ok && role.Ceiling().Has(policy.Scopes(scope)), err
}
