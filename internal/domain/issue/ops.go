package issue

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/secretscan"
)

const group = "Issues"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadIssues), policy.Require(policy.WriteIssues)
	return []op.Op{
		op.New(op.Row{ID: "issue.list", Method: "GET", Path: "/v1/repos/{owner}/{repo}/issues", Group: group, Rule: read,
			Paging: &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{
				"triage": Triages(), "state": {Opening, Open, Closed, Refused}, "id": nil, "number": nil}},
			Summary: "The issues of an enabled repository, newest first, and what became of each",
			Doc:     "They are those of its code host. filter=number:N leaves the one of that number, filter=id:PART those whose id begins or ends with it. A repository that is not enabled is answered 404."}, s.list),
		op.New(op.Row{ID: "issue.get", Method: "GET", Path: "/v1/issues/{id}", Group: group, Rule: read,
			Summary: "One issue",
			Doc:     "As the code host last told of it."}, s.get),
		op.New(op.Row{ID: "issue.handoff", Method: "POST", Path: "/v1/issues/{id}/handoff", Group: group, Rule: write, Status: 202,
			Refuses: []op.Refusal{{Status: 422, Slug: "unprocessable"}},
			Summary: "Hand an issue to a webhook of the account",
			Doc:     "Queues a delivery of the event issue.handoff. Without webhook_ref it goes to the webhook that the policy file names; 422 if there is no such webhook, 409 if it is not sent hand-offs or is unhealthy."}, s.handoff),
		op.New(op.Row{ID: "issue.escalate", Method: "POST", Path: "/v1/issues/{id}/escalate", Group: group, Rule: write, Status: 201,
			Summary: "Ask a person to decide about an issue",
			Doc:     "Raises an escalation, which escalation.list shows. Each call raises one."}, s.escalate),
	}
}

// Issue is an issue as the API shows it.
type Issue struct {
	_            struct{}  `doc:"An issue of a code host, and what became of it." schema:"Issue"`
	ID           string    `json:"id" format:"uuid" doc:"id of the issue"`
	Repo         string    `json:"repo" doc:"owner/name"`
	Number       *int64    `json:"number" example:"12" doc:"its number in the repository; null until the code host has opened it"`
	Title        string    `json:"title" doc:"one line, as its author wrote it"`
	Body         string    `json:"body" doc:"text of its author, at most 65,536 characters"`
	URL          *string   `json:"url" format:"uri" example:"https://code.example.com/acme/web/issues/12" doc:"its address at the code host; null until the host has opened it"`
	State        string    `json:"state" enum:"opening,open,closed,refused" doc:"opening: the host is yet to open it; refused: the host did not"`
	Author       *string   `json:"author" example:"ada" doc:"login of its author at the code host; null until the host has opened it"`
	Labels       []string  `json:"labels" example:"[\"bug\"]" doc:"names of its labels, at most 50"`
	Milestone    *string   `json:"milestone" example:"v1" doc:"title of its milestone; null without one"`
	Comments     int64     `json:"comments" doc:"how many comments it has"`
	Triage       string    `json:"triage" enum:"none,filed,triaged,dropped,escalated,handed_off" doc:"none: there is no ask; filed: its ask waits for a judge; triaged: work came of it; handed_off: to a webhook"`
	AskID        *string   `json:"ask_id" format:"uuid" doc:"its ask; null without one"`
	EscalationID *string   `json:"escalation_id" format:"uuid" doc:"the question to a person about it; null without one"`
	CreatedAt    time.Time `json:"created_at" doc:"when it was opened"`
}

func wire(r row, name string) Issue {
	return Issue{
		ID: r.ID, Repo: name, Number: r.Number, Title: r.Title, Body: r.Body, URL: db.NullText(r.URL), State: r.State,
		Author: db.NullText(r.Author), Labels: append([]string{}, r.Labels.V...), Milestone: db.NullText(r.Milestone), Comments: r.Comments,
		Triage: r.Triage, AskID: r.AskID, EscalationID: r.EscalationID, CreatedAt: r.CreatedAt,
	}
}

type listIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	op.PageIn
}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Issue], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !r.Enabled {
			return fault.Missing("enabled repository")
		}
		rows, err := list(tx, r.ID, in.PageIn)
		if err != nil {
			return err
		}
		p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		out = op.Page[Issue]{Data: make([]Issue, len(p.Data)), NextCursor: p.NextCursor}
		for i, found := range p.Data {
			out.Data[i] = wire(found, r.FullName())
		}
		return nil
	})
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the issue"`
}

// read reads an issue of the caller, and its repository.
func read(tx *db.Tx, issueID string, lock bool) (i row, r repo.Ref, err error) {
	if i, err = find(tx, issueID, lock); err != nil {
		return i, r, err
	}
	r, ok, err := repo.ByID(tx, i.RepoID)
	if err == nil && !ok {
		err = fault.Missing("issue")
	}
	return i, r, err
}

func (s *Service) get(ctx context.Context, in idIn) (out Issue, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		i, r, err := read(tx, in.ID, false)
		out = wire(i, r.FullName())
		return err
	})
	return out, err
}

type handoffIn struct {
	ID         string  `json:"id" format:"uuid" doc:"id of the issue"`
	Reason     string  `json:"reason" minLength:"1" maxLength:"2000" example:"Our own agent knows this code." doc:"why it is handed off, for those who receive it"`
	WebhookRef *string `json:"webhook_ref,omitempty" minLength:"1" maxLength:"100" example:"coder" doc:"name of the webhook; unless given that of the policy file"`
}

// Handoff is the answer of issue.handoff.
type Handoff struct {
	_          struct{} `doc:"A delivery that is queued." schema:"IssueHandoff"`
	HandoffID  string   `json:"handoff_id" format:"uuid" doc:"id of the hand-off"`
	State      string   `json:"state" enum:"queued" doc:"a delivery is queued"`
	WebhookRef string   `json:"webhook_ref" example:"coder" doc:"name of the webhook"`
	Issue      Issue    `json:"issue" doc:"the issue, as it stands now"`
}

// The slugs of a webhook that takes no hand-off.
const (
	slugNotTaken  = "handoff-not-taken"
	slugUnhealthy = "webhook-unhealthy"
)

// noWebhook says that the name of a webhook is missing, or is nobody's.
func noWebhook(says string) error {
	f := fault.New(fault.Unprocessable, "", "The issue cannot be handed off: "+says+".")
	f.Fields = map[string][]string{"webhook_ref": {says}}
	return f
}

func (s *Service) handoff(ctx context.Context, in handoffIn) (out Handoff, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		i, r, err := read(tx, in.ID, true)
		if err != nil {
			return err
		}
		if i.Number == nil {
			return fault.Field("id", "is of an issue that the code host has not opened")
		}
		ref := r.Policy.Issues.WebhookRef
		if in.WebhookRef != nil {
			ref = *in.WebhookRef
		}
		if ref == "" {
			return noWebhook("is needed, because the policy file names no webhook")
		}
		there, obstacle, err := s.Webhooks.TakesHandoff(tx, ref)
		switch {
		case err != nil:
			return err
		case !there:
			return noWebhook("is the name of no webhook of the account")
		case obstacle == OtherEvents:
			return fault.Reason(slugNotTaken, "The webhook "+ref+" is not sent issue.handoff. Name another one, or make one "+
				"(webhook.create) with issue.handoff among its events.").With("webhook_ref", ref)
		case obstacle == NotHealthy:
			return fault.Reason(slugUnhealthy, "The webhook "+ref+" is unhealthy: nothing is sent there. Name another one, or "+
				"revive it (webhook.revive) once its address answers.").With("webhook_ref", ref)
		}
		a := handoffArgs{
			ID: id.New(), AccountID: tx.Account, RepoID: r.ID, IssueID: i.ID, WebhookRef: ref, Reason: in.Reason,
			RequestedBy: policy.From(ctx).Label(), CreatedAt: tx.Micros(),
		}
		if _, err := handOff.Exec(tx, a); err != nil {
			return err
		}
		i.Triage, i.Filing, i.DueAt = HandedOff, false, nil
		if err := save(tx, i); err != nil {
			return err
		}
		out = Handoff{HandoffID: a.ID, State: "queued", WebhookRef: ref, Issue: wire(i, r.FullName())}
		return HandoffEvent.Record(tx, event.Subject{ID: i.ID, RepoID: r.ID}, handoffData{
			Repo: r.FullName(), IssueID: i.ID, Number: i.number(), URL: i.URL, Title: i.Title, Reason: secretscan.Scrub(in.Reason),
			WebhookRef: ref,
		})
	})
	return out, err
}

type escalateIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the issue"`
	Category string `json:"category" pattern:"^[a-z][a-z0-9_]{0,39}$" says:"must be a slug of at most 40 characters" example:"needs_decision" doc:"slug of what sort of question it is, such as needs_decision, unclear, sensitive, needs_access or out_of_scope"`
	Reason   string `json:"reason" minLength:"1" maxLength:"2000" example:"Legal has to say whether we keep the data." doc:"why a person is asked"`
}

// Escalation is the answer of issue.escalate.
type Escalation struct {
	_            struct{} `doc:"The question to a person." schema:"IssueEscalation"`
	EscalationID string   `json:"escalation_id" format:"uuid" doc:"id of the escalation"`
	Issue        Issue    `json:"issue" doc:"the issue, as it stands now"`
}

func (s *Service) escalate(ctx context.Context, in escalateIn) (out Escalation, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		i, r, err := read(tx, in.ID, true)
		if err != nil {
			return err
		}
		raised, err := s.Escalations.Raise(tx, Question{
			RepoID: r.ID, IssueID: i.ID, Category: in.Category, Title: i.Title, Body: i.Body, Reason: in.Reason, AskID: i.AskID,
			URL: db.NullText(i.URL),
		})
		if err != nil {
			return err
		}
		i.EscalationID, i.Triage, i.Filing, i.DueAt = &raised, Escalated, false, nil
		if err := save(tx, i); err != nil {
			return err
		}
		out = Escalation{EscalationID: raised, Issue: wire(i, r.FullName())}
		return escalatedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: r.ID}, escalatedData{
			Repo: r.FullName(), IssueID: i.ID, AskID: i.AskID, EscalationID: raised, Category: in.Category,
			Reason: secretscan.Scrub(in.Reason), URL: i.URL,
		})
	})
	return out, err
}
