package issue

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
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
			Doc:     "They are those of its code host; the built-in host keeps none. filter=number:N leaves the one of that number, filter=id:PART those whose id begins or ends with it. A repository that is not enabled is answered 404."}, s.list),
		op.New(op.Row{ID: "issue.get", Method: "GET", Path: "/v1/issues/{id}", Group: group, Rule: read,
			Summary: "One issue",
			Doc:     "As the code host last told of it."}, s.get),
		op.New(op.Row{ID: "issue.handoff", Method: "POST", Path: "/v1/issues/{id}/handoff", Group: group, Rule: write, Status: 202,
			Refuses: []op.Refusal{{Status: 409, Slug: slugNotTaken}, {Status: 409, Slug: slugUnhealthy},
				{Status: 422, Slug: "unprocessable"}},
			Summary: "Hand an issue to a webhook of the account",
			Doc: "Queues a delivery of the event issue.handoff; handoff of issue.get says what became of it. Without webhook_ref it goes to the webhook that the policy file names; 422 if there is no such webhook, 409 if it is not sent hand-offs or is unhealthy. " +
				"Triage of the issue ends: an ask that no verdict has come of is dropped, and what people are asked about the issue is resolved. Tasks that it has already go on."}, s.handoff),
		op.New(op.Row{ID: "issue.escalate", Method: "POST", Path: "/v1/issues/{id}/escalate", Group: group, Rule: write, Status: 201,
			Summary: "Ask a person to decide about an issue",
			Doc: "Raises an escalation, which escalation.list shows; one about the issue that is open is resolved by it. Triage of the issue ends: an ask that no verdict has come of is escalated for the same reason. " +
				"Resolving the escalation begins nothing. The issue goes back to triage when a person labels it anew at its host, or by ask.file with issue_id."}, s.escalate),
	}
}

// Issue is an issue as the API shows it.
type Issue struct {
	_            struct{}     `doc:"An issue of a code host, and what became of it." schema:"Issue"`
	ID           string       `json:"id" format:"uuid" doc:"id of the issue"`
	Repo         string       `json:"repo" doc:"owner/name"`
	Number       *int64       `json:"number" example:"12" doc:"its number in the repository; null until the code host has opened it"`
	Title        string       `json:"title" doc:"one line, as its author wrote it"`
	Body         string       `json:"body" doc:"text of its author, at most 65,536 characters"`
	URL          *string      `json:"url" format:"uri" example:"https://code.example.com/acme/web/issues/12" doc:"its address at the code host; null until the host has opened it"`
	State        State        `json:"state" doc:"opening: the host is yet to open it; refused: the host did not"`
	Author       *string      `json:"author" example:"ada" doc:"login of its author at the code host; null until the host has opened it"`
	Labels       []string     `json:"labels" example:"[\"bug\"]" doc:"names of its labels, at most 50"`
	Milestone    *string      `json:"milestone" example:"v1" doc:"title of its milestone; null without one"`
	Comments     int64        `json:"comments" doc:"how many comments it has"`
	Triage       Triage       `json:"triage" doc:"none: there is no ask; filed: its ask waits for a judge; triaged: work came of it; dropped: it needs none; escalated: a person decides; handed_off: to a webhook. The last three end when a person labels it anew at its host, or files an ask about it (ask.file)"`
	AskID        *string      `json:"ask_id" format:"uuid" doc:"its ask; null without one"`
	EscalationID *string      `json:"escalation_id" format:"uuid" doc:"the question to a person about it; null without one"`
	Handoff      *HandoffView `json:"handoff" example:"null" doc:"its newest hand-off to a webhook; null: it was never handed off"`
	CreatedAt    time.Time    `json:"created_at" doc:"when it was opened"`
}

// HandoffView is the newest hand-off of an issue.
type HandoffView struct {
	_           struct{}     `doc:"The newest hand-off of an issue to a webhook, and what became of it." schema:"IssueHandoffView"`
	HandoffID   string       `json:"handoff_id" format:"uuid" doc:"id of the hand-off"`
	WebhookRef  string       `json:"webhook_ref" example:"coder" doc:"name of the webhook"`
	Reason      string       `json:"reason" example:"Our own agent knows this code." doc:"why it is handed off"`
	State       HandoffState `json:"state" doc:"queued: it is recorded; sent: the webhook is being told; delivered: it has answered 2xx; failed: it was not told, or did not answer 2xx"`
	Failure     *string      `json:"failure" example:"null" doc:"why it failed; null unless it did"`
	RequestedBy string       `json:"requested_by" example:"system" doc:"who handed it off: user:<id>, pat:<id>, or system for the policy file"`
	CreatedAt   time.Time    `json:"created_at" doc:"when it was handed off"`
	MovedAt     *time.Time   `json:"moved_at" doc:"since when it is in this state; null while it is queued"`
}

// show answers issues of one repository of tx.Account as clients see them.
func show(tx *db.Tx, rows []row, name string) ([]Issue, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	handed, err := handoffsOf(tx, ids)
	out := make([]Issue, len(rows))
	for i := range rows {
		var newest *handoffRow
		if h, ok := handed[rows[i].ID]; ok {
			newest = &h
		}
		out[i] = wire(rows[i], name, newest)
	}
	return out, err
}

func wire(r row, name string, h *handoffRow) Issue {
	out := Issue{
		ID: r.ID, Repo: name, Number: r.Number, Title: r.Title, Body: r.Body, URL: db.NullText(r.URL), State: State(r.State),
		Author: db.NullText(r.Author), Labels: append([]string{}, r.Labels.V...), Milestone: db.NullText(r.Milestone), Comments: r.Comments,
		Triage: Triage(r.Triage), AskID: r.AskID, EscalationID: r.EscalationID, CreatedAt: r.CreatedAt,
	}
	if h != nil {
		out.Handoff = &HandoffView{
			HandoffID: h.ID, WebhookRef: h.WebhookRef, Reason: h.Reason, State: HandoffState(h.State), Failure: h.Failure,
			RequestedBy: h.RequestedBy,
			CreatedAt:   h.CreatedAt, MovedAt: h.MovedAt,
		}
	}
	return out
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
		out.NextCursor = p.NextCursor
		out.Data, err = show(tx, p.Data, r.FullName())
		return err
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
		if err != nil {
			return err
		}
		shown, err := show(tx, []row{i}, r.FullName())
		if err == nil {
			out = shown[0]
		}
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
	State      string   `json:"state" enum:"queued" doc:"a delivery is queued; handoff.state of the issue says what became of it"`
	WebhookRef string   `json:"webhook_ref" example:"coder" doc:"name of the webhook"`
	Issue      Issue    `json:"issue" doc:"the issue, as it stands now"`
}

func (s *Service) handoff(ctx context.Context, in handoffIn) (out Handoff, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		i, r, err := s.readToDecide(tx, in.ID)
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
		if err := s.takes(tx, ref); err != nil {
			return err
		}
		h, err := s.hand(tx, r, &i, handoffRow{WebhookRef: ref, Reason: in.Reason, RequestedBy: policy.From(ctx).Label()})
		out = Handoff{HandoffID: h.ID, State: h.State, WebhookRef: ref, Issue: wire(i, r.FullName(), &h)}
		return err
	})
	return out, err
}

// readToDecide reads and locks an issue of the caller that a person decides about. Its ask is
// locked first, in the order in which triage locks the two.
func (s *Service) readToDecide(tx *db.Tx, issueID string) (i row, r repo.Ref, err error) {
	if i, err = find(tx, issueID, false); err != nil {
		return i, r, err
	}
	if i.AskID != nil {
		if err := s.Asks.Lock(tx, *i.AskID); err != nil {
			return i, r, err
		}
	}
	return read(tx, issueID, true)
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
		i, r, err := s.readToDecide(tx, in.ID)
		if err != nil {
			return err
		}
		raised, err := s.question(tx, r, &i, in.Category, in.Reason)
		if err != nil {
			return err
		}
		shown, err := show(tx, []row{i}, r.FullName())
		if err == nil {
			out = Escalation{EscalationID: raised, Issue: shown[0]}
		}
		return err
	})
	return out, err
}
