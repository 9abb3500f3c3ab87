// Package approval asks people about pull requests by mail. A mail has two links, one
// that approves and one that skips. A link is for one question, one head, one verb and
// one person; it works once, until it expires, while that person may still decide. It
// opens a page that shows what it would do, and the button of the page does it.
//
//   - approval.go: the types, and what a link may still do
//   - mail.go: who is written to, and what the mail says
//   - loop.go: the mails that are due
//   - ops.go, page.go: the page of a link, and its button
package approval

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Verb is what a link of a mail does.
type Verb string

// Verbs of a link.
const (
	Approve = "approve"
	Skip    = "skip"
)

// Values lists all verbs.
func (Verb) Values() []string { return []string{Approve, Skip} }

// linkLife is how long a link is good, unless its question lapses before.
const linkLife = 72 * time.Hour

// Question is what a person is asked about a pull request.
type Question struct {
	ID        string
	PRID      string
	RepoID    string
	State     State
	HeadSHA   string // that the question is about
	Present   string // the present head of the pull request
	Looked    bool   // whether it is known what is protected
	Repo      string // owner/name
	Number    int64
	Title     string
	URL       string   // of the page of the pull request
	Kind      string   // what is asked for: merge, close, push, reopen or label
	Text      string   // the sentence
	Protected []string // paths that are protected and would change
	More      int      // how many paths beyond those
	Cost      string   // of the work so far, in decimal US dollars; empty: no call has a known price
	DecidedBy *string
	ExpiresAt time.Time
}

// State is the state of a question.
type State string

// States of a question.
const (
	Pending  State = "pending"
	Decided  State = "decided"  // a person or the policy has approved it
	Declined State = "declined" // a person has declined it
	Stale    State = "stale"    // another head or another question took its place
	Lapsed   State = "lapsed"   // nobody answered in time
)

// File is a file that a pull request changes.
type File struct {
	Path                 string
	Kind                 string // added, modified, deleted, renamed or type_changed
	Binary               bool
	Additions, Deletions int
}

// Change is what a pull request changes.
type Change struct {
	Files                []File
	More                 int // how many files beyond those
	Additions, Deletions int
}

// Questions is the part of pull requests that this package needs.
type Questions interface {
	// ByID answers a question of tx.Account, whatever its state; false if there is
	// none.
	ByID(tx *db.Tx, actionID string) (Question, bool, error)
	// Decide answers a question of tx.Account as the actor of tx: yes approves the merge
	// of its head. It fails with a fault.Conflict that names the reason.
	Decide(tx *db.Tx, q Question, yes bool) error
	// RequestedBy is the person whose work the pull request of a question is; "" if
	// nobody asked for it.
	RequestedBy(tx *db.Tx, q Question) (userID string, err error)
	// Change asks the code host what a pull request of the account of ctx changes. It
	// is called outside of transactions.
	Change(ctx context.Context, prID string) (Change, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB        *db.DB
	Hub       *event.Hub
	Due       *due.Kernel
	Ring      *seal.Keyring // signs links
	Mail      *mail.Outbox
	BaseURL   string // of links
	Logger    *slog.Logger
	Questions Questions
	Wishes    Wishes
}

// Wishes are what people want to be mailed about.
type Wishes interface {
	// Mailed tells how a person of tx.Account is to be mailed about a question now, and
	// counts the mail if it is wanted.
	Mailed(tx *db.Tx, userID string) (Wish, error)
}

// Wish is how a person is to be mailed about a question.
type Wish struct {
	Wanted      bool      // false: not at all, or enough mails were sent
	From        time.Time // not before
	Unsubscribe string    // the address by which they get no more; empty: there is none
	Notes       []string  // for the end of the mail
}

// Service writes the mails, and has the capabilities of their links.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[string]{
		Name: "approval_mails", Retry: due.Ladder{First: 2 * time.Second, Longest: longestWait},
		Load: func(tx *db.Tx, key string) (string, bool, error) { return mailByID.Maybe(tx, key) },
		Work: s.write, Open: open,
	})
	return s
}

// linkPurpose keeps the tokens of these links apart from all others.
const linkPurpose = "pr-action"

// Refusals of a link.
var (
	errMalformed = fault.New(fault.Invalid, "", "This is not a link of ours, or a part of it is missing.")
	errExpired   = fault.New(fault.Gone, "action-link-expired", "This link has expired. The question, if it is still open, "+
		"is answered on the page of the pull request.")
	errRedeemed = fault.Reason("already_redeemed", "This link was used before, and works once.")
	errNotYours = fault.New(fault.Forbidden, "not-a-member", "The person whom this link was mailed to may not decide about "+
		"pull requests of this account any more.")
)

// things are what is asked for, in words for people.
var things = map[string]string{
	"close": "the close", "push": "the push", "reopen": "the reopening", "label": "the label",
}

// Thing is what is asked for, in words for people.
func (q Question) Thing() string { return cmp.Or(things[q.Kind], "the merge") }

// This is Thing in a question.
func (q Question) This() string { return "this " + strings.TrimPrefix(q.Thing(), "the ") }

// Thereby is what follows from a yes, in words for people.
func (q Question) Thereby() string {
	if things[q.Kind] == "" {
		return "The merge is ordered, and follows soon."
	}
	return "It is ordered, and follows soon."
}

// Otherwise is what follows from a no, in words for people.
func (q Question) Otherwise() string {
	if things[q.Kind] == "" {
		return "It will not be merged unless somebody asks again."
	}
	return "Nothing is done, unless an agent asks again."
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// useless is the fault for a question that a link cannot answer any more; nil if it can.
func (q Question) useless() error {
	switch {
	case q.State == Decided:
		return decided(capital(q.Thing())+" was approved already.", q)
	case q.State == Declined:
		return decided(capital(q.Thing())+" was declined already.", q)
	case q.State == Lapsed:
		return fault.Reason("question_expired", "The question lapsed before it was answered.")
	case q.Present != q.HeadSHA:
		return headMoved(q)
	case q.State == Stale:
		return fault.Reason("question_changed", "The question is of no use any more, or another one took its place.")
	}
	return nil
}

// useless is why a link is of no use any more: the question is not, or goes on about a newer
// head, for which there are other links.
func (l linkRow) useless(q Question) error {
	if err := q.useless(); err != nil || l.HeadSHA == q.HeadSHA {
		return err
	}
	return headMoved(q)
}

func headMoved(q Question) *fault.Error {
	return fault.Reason("head_moved", "The pull request has a newer head than the one that this link is about.").
		With("current_head_sha", q.Present)
}

func decided(detail string, q Question) error {
	f := fault.Reason("already_decided", detail)
	if q.DecidedBy != nil {
		f = f.With("decided_by", *q.DecidedBy)
	}
	return f
}

// mayDecide tells whether a person may decide about pull requests of tx.Account.
func mayDecide(tx *db.Tx, userID string) (role policy.Role, ok bool, err error) {
	role, ok, err = people.Role(tx, tx.Account, userID)
	if err != nil || !ok || !role.Ceiling().Has(policy.Scopes(policy.WritePRs)) {
		return role, false, err
	}
	_, approved, err := people.Standing(tx, userID)
	return role, approved, err
}
