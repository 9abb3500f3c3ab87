package record

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// ActionKind is what an action does.
type ActionKind string

// Kinds of pending actions. A merge is asked for by the server itself, a push by a round
// on the branch of a person, the others by agents.
const (
	KindMerge  = "merge"
	KindClose  = "close"
	KindPush   = "push"
	KindReopen = "reopen"
	KindLabel  = "label"
)

// Values lists all kinds.
func (ActionKind) Values() []string {
	return []string{KindMerge, KindClose, KindPush, KindReopen, KindLabel}
}

// Details are what an action that is no merge is about.
type Details struct {
	Label  string `json:"label,omitempty"`
	Branch string `json:"branch,omitempty"` // on which the work of a round is
	SHA    string `json:"sha,omitempty"`    // the commit to push
	Why    string `json:"why,omitempty"`    // the reason that the agent gave
	// Dropped is the task whose work a merge would bring to the base although it was dropped.
	Dropped string `json:"dropped,omitempty"`
}

// Asked is the sentence that a person is asked.
func (a Action) Asked() string {
	text := ""
	switch d := a.Details.V; a.Kind {
	case KindMerge:
		var p *Protected
		if a.Protected != nil {
			p = &a.Protected.V
		}
		return p.question(d.Dropped)
	case KindClose:
		text = "Close this pull request without a merge?"
	case KindReopen:
		text = "Open this pull request again?"
	case KindLabel:
		text = fmt.Sprintf("Put the label %q on this pull request?", d.Label)
	case KindPush:
		return fmt.Sprintf("Push what an agent has done, commit %.12s, to the branch of this pull request?", d.SHA)
	}
	return text + " The agent says: " + a.Details.V.Why
}

// StateFor is the state of a pull request in which an action can be carried out.
func StateFor(kind string) string {
	if kind == KindReopen {
		return Closed
	}
	return Open
}

// Protected are the changes of a merge that a person is always asked about: changes in
// the folder .svc, and in the paths that the account protects, and what the merge would
// bring back that was dropped. They are read from git at the code host, never from
// the report of a box.
type Protected struct {
	_         struct{}         `doc:"What a merge would change that a person is always asked about." schema:"Protected"`
	Paths     []string         `json:"paths" example:"[\".svc/policy.yml\"]" doc:"that would change, at most 50; bytes that are no text are quoted"`
	More      int              `json:"more" example:"0" doc:"how many paths beyond those"`
	Weaker    []repo.Weakening `json:"weaker" doc:"the fields of the policy file that would hold agents less, or tell them something else"`
	Problem   *string          `json:"problem" example:"null" doc:"why the policy file would not be valid, so that the defaults would be in force; null: it would be"`
	PolicySHA *string          `json:"policy_sha" doc:"the blob of the policy file as it would be; null: there would be none, or no path is protected"`
	Back      *Back            `json:"back" example:"null" doc:"what the merge would bring back that was dropped; null: nothing"`
}

// MaxPaths limits the paths that a question lists.
const MaxPaths = 50

// maxNamed limits the paths, and the fields, that the sentence of a question names.
const maxNamed = 20

// Illegible is the inverse of codehost.Legible.
func Illegible(path string) string {
	if s, err := strconv.Unquote(path); err == nil {
		return s
	}
	return path
}

// Enumerate joins the names of a question, at most maxNamed. more is the number of names
// that all does not have.
func Enumerate(all []string, more int) string {
	if over := len(all) - maxNamed; over > 0 {
		all, more = all[:maxNamed], more+over
	}
	text := strings.Join(all, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// question is the sentence that a person is asked. dropped is the task whose work is brought
// along although it was dropped; "": there is none.
func (p *Protected) question(dropped string) string {
	var although []string
	if dropped != "" {
		although = append(although, "it contains the work of the task "+dropped+", which was dropped")
	}
	if p != nil && len(p.Paths) > 0 {
		although = append(although, "it changes what is protected: "+Enumerate(p.Paths, p.More))
	}
	if p != nil && p.Back != nil {
		although = append(although, "it would bring back what was dropped: "+p.Back.said())
	}
	if len(although) == 0 {
		return "Merge this head?"
	}
	text := "Merge this head, although " + strings.Join(although, ", and ") + "?"
	if p == nil {
		return text
	}
	if p.Problem != nil {
		text += " The policy file would not be valid, and the defaults would be in force: " + *p.Problem + "."
	}
	if len(p.Weaker) > 0 {
		names := make([]string, len(p.Weaker))
		for i, w := range p.Weaker {
			names[i] = w.String()
		}
		text += " Of the policy would change: " + Enumerate(names, 0) + "."
	}
	return text
}

// Names tells whether a question names what a person is always asked about: protected
// changes, or work that was dropped.
func (a Action) Names() bool { return a.Protected != nil || a.Details.V.Dropped != "" }

// Covers tells whether the question a named all protected changes p of the merge.
func (a Action) Covers(p *Protected) bool {
	return p == nil || a.Protected != nil && reflect.DeepEqual(a.Protected.V, *p)
}

// Wire is the action as the API shows it.
func (a Action) Wire() PendingAction {
	out := PendingAction{
		ID: a.ID, PRID: a.PRID, Kind: ActionKind(a.Kind), HeadSHA: a.HeadSHA, State: ActionState(a.State), Error: a.Error,
		DecidedBy:   a.DecidedBy,
		CarriedFrom: a.CarriedFrom, Label: db.NullText(a.Details.V.Label), PushSHA: db.NullText(a.Details.V.SHA),
		Why:         db.NullText(a.Details.V.Why),
		RequestedAt: a.RequestedAt, DecidedAt: a.DecidedAt, ExpiresAt: a.ExpiresAt,
	}
	if a.State == ActionApproved && a.Error != nil {
		out.RetryAt = a.RetryAt
	}
	if a.State == ActionApproved && !a.Called {
		out.BeginsAt = a.BeginsAt
	}
	if a.Protected != nil {
		out.Protected = &a.Protected.V
	}
	out.Question = a.Asked()
	return out
}

// ActionState is the state of an action.
type ActionState string

// States of a pending action.
const (
	ActionPending  = "pending"
	ActionApproved = "approved"
	ActionApplied  = "applied"
	ActionFailed   = "failed"
	ActionSkipped  = "skipped"
	ActionStale    = "stale"
	ActionExpired  = "expired"
)

// Values lists all states.
func (ActionState) Values() []string {
	return []string{ActionPending, ActionApproved, ActionApplied, ActionFailed, ActionSkipped, ActionStale, ActionExpired}
}

// AskFor is the lifetime of an unanswered question.
const AskFor = 14 * 24 * time.Hour

// PendingAction is a change to a pull request that waits for the answer of a person.
type PendingAction struct {
	_           struct{}    `doc:"A question about a pull request, and its answer." schema:"PendingAction"`
	ID          string      `json:"id" format:"uuid" doc:"id of the question"`
	PRID        string      `json:"pr_id" format:"uuid" doc:"the pull request it is about"`
	Kind        ActionKind  `json:"kind" doc:"what is asked for; push: the work of a round to a branch of a person"`
	Label       *string     `json:"label" example:"null" doc:"that is to be put on it; null unless that is asked"`
	PushSHA     *string     `json:"push_sha" example:"null" doc:"the commit that the branch is to be moved to; null unless that is asked"`
	Why         *string     `json:"why" example:"null" doc:"the reason that the agent gave; null for a merge"`
	HeadSHA     string      `json:"head_sha" doc:"the head that it is about; a newer head makes it stale"`
	State       ActionState `json:"state" doc:"approved: to be carried out; applied: done; skipped: declined; stale: the head has moved; expired: nobody answered for 14 days"`
	Error       *string     `json:"error" example:"null" doc:"why it could not be carried out, the last time; null unless it failed"`
	RetryAt     *time.Time  `json:"retry_at" example:"null" doc:"when an approved one that failed is tried again; null unless it is"`
	BeginsAt    *time.Time  `json:"begins_at" example:"null" doc:"when an approved merge begins at the earliest, until which the approval can be taken back; null: it does not wait for that"`
	DecidedBy   *string     `json:"decided_by" example:"null" doc:"who decided: user:<id>, or policy; null while it is pending"`
	RequestedAt time.Time   `json:"requested_at" doc:"when it was asked"`
	DecidedAt   *time.Time  `json:"decided_at" example:"null" doc:"when it was decided; null while it is pending"`
	ExpiresAt   time.Time   `json:"expires_at" doc:"when it lapses unless somebody answers"`
	Question    string      `json:"question" example:"Merge pull request #42 into main?" doc:"what is asked, in words for people"`
	CarriedFrom *string     `json:"carried_from" example:"null" doc:"the head that it was asked, or decided, about, if the branch has a newer head with the same change; null: the one above"`
	Protected   *Protected  `json:"protected" doc:"what would change that a person is always asked about; null: nothing, or it was not looked at yet. An approval covers what the question said: if a merge would change more, it is asked about anew"`
}
