// Package record is the row of a pull request, and the rows of what is asked, ordered and said about
// it: their statements, their lock and their setters, the words in their columns, and the events and
// signals about them. It is at the bottom of the packages of pull requests, and alone writes their
// tables. It decides nothing: package moves says what happens next, and package pull does it.
//
//   - record.go, need.go, unwanted.go: what a row says, and what sets it
//   - action.go, order.go, review.go: questions, orders, and what people say
//   - would.go: what git has answered
//   - known.go: the facts of package moves that the row has
//   - store_write.go: the one statement that changes the row
package record

import (
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/repo"
)

// BabysitState is how a pull request is looked after.
type BabysitState string

// States of babysitting. A pull request of an agent is watched from the start. If the
// check of its head fails or the head conflicts, an agent repairs the head on the same
// branch: that is a round. A pull request without a round left is spent, until a person
// arms it again.
const (
	BabysitOff       = "off"
	BabysitWatching  = "watching"
	BabysitCI        = "fixing_ci"
	BabysitConflict  = "resolving_conflict"
	BabysitReview    = "answering_review"
	BabysitSpent     = "spent"
	BabysitDone      = "done"
	maxCIRounds      = 3
	MaxConflictRound = 2
	maxReviewRounds  = 3
	maxRequestRounds = 3
)

// Values lists all states.
func (BabysitState) Values() []string {
	return []string{BabysitOff, BabysitWatching, BabysitCI, BabysitConflict, BabysitReview, BabysitSpent, BabysitDone}
}

// Babysit is the state of the repair of a pull request.
type Babysit struct {
	_                  struct{}     `doc:"How far the repair of a pull request by agents has come." schema:"Babysit"`
	State              BabysitState `json:"state" doc:"watching: nothing is wrong, or next_round_at says when that is repaired; spent: no round is left, and a person has been asked; done: merged or closed"`
	CIRoundsUsed       int64        `json:"ci_rounds_used" doc:"since it was armed"`
	CIRoundsMax        int64        `json:"ci_rounds_max" example:"3" doc:"rounds that mend failed checks, at most"`
	ConflictRoundsUsed int64        `json:"conflict_rounds_used" doc:"since it was armed"`
	ConflictRoundsMax  int64        `json:"conflict_rounds_max" example:"2" doc:"rounds that resolve conflicts, at most"`
	ReviewRoundsUsed   int64        `json:"review_rounds_used" doc:"since it was armed"`
	ReviewRoundsMax    int64        `json:"review_rounds_max" example:"3" doc:"rounds that answer findings of reviews, at most"`
	RequestRoundsUsed  int64        `json:"request_rounds_used" doc:"since it was armed"`
	RequestRoundsMax   int64        `json:"request_rounds_max" example:"3" doc:"rounds that answer what people request, at most"`
	Forgiven           int64        `json:"forgiven" doc:"rounds that people have forgiven in all"`
	ArmedAt            *time.Time   `json:"armed_at" doc:"when the rounds were last set to 0; null when it was never watched"`
	TaskID             *string      `json:"task_id" format:"uuid" example:"null" doc:"the task of the round that goes on; null between rounds"`
	NextRoundAt        *time.Time   `json:"next_round_at" example:"null" doc:"when agents begin the next round, or soon after; null: none is due, or the queue is full"`
	QueueFullSince     *time.Time   `json:"queue_full_since" example:"null" doc:"since when the queue of the account has no room for the round that is due, which begins once it has; null: it has, or none is due"`
}

// Repairing tells whether an agent works on the head in a round.
func (r Pull) Repairing() bool {
	return r.Babysit == BabysitCI || r.Babysit == BabysitConflict || r.Babysit == BabysitReview
}

// Counter is how many rounds of a kind there were since the pull request was armed.
func (r *Pull) Counter(kind string) *int64 {
	switch kind {
	case moves.KindConflict:
		return &r.ConflictRounds
	case moves.KindRequest:
		return &r.RequestRounds
	case moves.KindReview:
		return &r.ReviewRounds
	}
	return &r.CIRounds
}

// BeginRound has a task work on the head, and counts the round.
func (r *Pull) BeginRound(state, kind, taskID string, asked bool) {
	*r.Counter(kind)++
	r.Babysit, r.BabysitTask, r.RoundSHA, r.RoundOf, r.RoundAsked = state, &taskID, r.HeadSHA, kind, asked
}

// EndRound lets go of the task of a round, if there is one.
func (r *Pull) EndRound(state string) {
	r.Babysit, r.BabysitTask, r.AttendAt, r.RoundThen, r.RoundOf, r.RoundAsked = state, nil, 0, "", "", false
}

// OnDefault tells whether the branch of a pull request is the default branch. Agents do not
// push there: what they would change, such as the policy, would be judged by no merge.
func (r Pull) OnDefault(at repo.Ref) bool { return r.HeadRef == at.DefaultBranch }

// Rounds are the rounds since the pull request was armed.
func (r Pull) Rounds() int64 { return r.CIRounds + r.ConflictRounds + r.ReviewRounds + r.RequestRounds }

// Babysitting is what is done about the pull request as the API shows it.
func (r Pull) Babysitting() Babysit {
	out := Babysit{
		State: BabysitState(r.Babysit), CIRoundsUsed: r.CIRounds, CIRoundsMax: maxCIRounds, ConflictRoundsUsed: r.ConflictRounds,
		ConflictRoundsMax: MaxConflictRound, ReviewRoundsUsed: r.ReviewRounds, ReviewRoundsMax: maxReviewRounds,
		RequestRoundsUsed: r.RequestRounds, RequestRoundsMax: maxRequestRounds,
		Forgiven: r.Forgiven, ArmedAt: r.ArmedAt, TaskID: r.BabysitTask,
	}
	if r.Babysit == BabysitWatching && r.Needs == NeedsRearm {
		out.State = BabysitSpent
	}
	switch {
	case r.State != Open:
	case r.SeatSince != nil:
		out.QueueFullSince = r.SeatSince
	case r.MoveAt > MoveSoon:
		out.NextRoundAt = new(db.Time(r.MoveAt))
	}
	return out
}

// CarryLook is pulls.carry while git was not asked about a new head.
const CarryLook = "look"

// Numbered sets what a host gives a pull request which it opens.
func (r *Pull) Numbered(at codehost.Pull) {
	r.Number, r.HostURL, r.HostAt, r.Author = at.Number, at.URL, db.Micros(at.UpdatedAt), at.Author.Login
}

// Closing is why a pull request was closed.
type Closing string

// Reasons why a pull request was closed.
const (
	ClosedCancelled = "cancelled"      // the task was cancelled
	ClosedDeleted   = "branch_deleted" // a push deleted the branch
	ClosedEmpty     = "nothing_left"   // a push moved the branch to a commit that the base has
	ClosedAtHost    = "closed_at_host" // somebody closed it at its host
	ClosedAsked     = "asked"          // an agent asked for it, and a person said yes
	ClosedRefused   = "refused_by_host"
)

// Values lists all reasons.
func (Closing) Values() []string {
	return []string{ClosedCancelled, ClosedDeleted, ClosedEmpty, ClosedAtHost, ClosedRefused, ClosedAsked}
}

// Noted sets the fields of a pull request that decide nothing.
func (r *Pull) Noted(p codehost.Pull) {
	r.Title, r.HostURL, r.HostAt, r.Author, r.Draft, r.Fork = p.Title, p.URL, db.Micros(p.UpdatedAt), p.Author.Login, p.Draft, p.Fork
	if r.Labels.V = slices.Clone(p.Labels); r.Labels.V == nil {
		r.Labels.V = []string{}
	}
}

// MoveSoon is pulls.move_at of a pull request that is to be moved by the next pass.
const MoveSoon = 1

// What the task of a pull request is told.
const (
	ToldAwaits       = "awaits"
	ToldAwaitsReview = "awaits_review"
	ToldMergeable    = "mergeable"
	ToldStuck        = "stuck"
)

// Rests sets what a pull request waits for, and since when. full tells that it waits for room in the
// queue of its account.
func (r *Pull) Rests(needs string, full bool, now time.Time) {
	switch {
	case needs == "":
		r.NeedsAt = nil
	case needs != r.Needs:
		r.NeedsAt = &now
	}
	r.Needs = needs
	switch {
	case !full:
		r.SeatSince = nil
	case r.SeatSince == nil:
		r.SeatSince = &now
	}
}

// ByPolicy is the author of an order that no person gave.
const ByPolicy = "policy"

// Passed tells whether a result of checks holds no merge.
func Passed(checks string) bool { return slices.Contains([]string{ChecksNone, ChecksPassed}, checks) }

// States of a pull request.
const (
	Opening = "opening" // its host is yet to open it
	Open    = "open"
	Merged  = "merged"
	Closed  = "closed"
)

// Kinds of authors of a pull request.
const (
	ByAgent  = "agent" // for the work of a task
	ByPerson = "person"
	ByBot    = "bot"
)

// CheckResult is what became of the checks of a head.
type CheckResult string

// Results of the checks of a head.
const (
	ChecksNone    = "none" // the repository names no check
	ChecksPending = "pending"
	ChecksPassed  = "passed"
	ChecksFailed  = "failed"
)

// Values lists all.
func (CheckResult) Values() []string {
	return []string{ChecksNone, ChecksPending, ChecksPassed, ChecksFailed}
}

// BeginHead is the row of a pull request of whose new head nothing is known yet.
func (r *Pull) BeginHead(sha string) {
	r.HeadSHA, r.Checks, r.ChecksHold, r.ChecksWhy, r.Review = sha, ChecksPending, "", "", ReviewDue
	r.Mergeable, r.PatchID, r.Change, r.MergeBase, r.MergeBases, r.Would, r.LookedSHA = "unknown", "", "", "", 0, nil, ""
	r.ChangedFiles, r.AddedLines, r.DeletedLines, r.Unwanted = nil, nil, nil, nil
	r.Needs, r.NeedsAt, r.Told, r.AttendAt, r.SeatSince = "", nil, ToldAwaits, 0, nil
	r.Unreadable, r.FactsWant = false, r.FactsWant+1
}

// Combined is the result of both sources of checks together.
func Combined(own, host string) string {
	for _, state := range []string{ChecksFailed, ChecksPending, ChecksPassed} {
		if own == state || host == state {
			return state
		}
	}
	return ChecksNone
}

// pagePath is the path before the ids of pull requests in the addresses of their pages,
// which the dashboard draws.
const pagePath = "/ui/prs/"

// PageAt is the address of the page of a pull request below that of the server.
func PageAt(baseURL, prID string) string { return strings.TrimSuffix(baseURL, "/") + pagePath + prID }

// Address is where people find a pull request of a server: at its host, or on its page.
func (r Pull) Address(baseURL string) string {
	if r.HostURL != "" {
		return r.HostURL
	}
	return PageAt(baseURL, r.ID)
}

// Check is the result of the check of a head.
type Check struct {
	Command  string
	ExitCode *int64 // nil: the command was never run to its end
	Output   string // the end of the output
}

// Judgement is what is known of the checks of a head.
type Judgement struct {
	Own, Host string
	Lost      bool   // the own check has no result, and no agent can repair that
	Why       string // what failed, for people
}

// SetResults records the result of the repository's own check of a head, and of the
// checks at its host; "" is none.
func SetResults(tx *db.Tx, pr *Pull, j Judgement) error {
	pr.OwnChecks, pr.HostChecks, pr.Checks, pr.ChecksWhy = j.Own, j.Host, Combined(j.Own, j.Host), j.Why
	return Save(tx, pr)
}

// Unwatched tells whether a pull request of people is shown, and otherwise left alone.
func (r Pull) Unwatched() bool { return r.AuthorKind != ByAgent && r.Babysit == BabysitOff }

// How far the review of a head has come.
const (
	ReviewDue       = "due" // nobody knows yet whether there is one
	ReviewOff       = "off" // nobody has reviewed it, and nobody does
	ReviewRunning   = "running"
	ReviewHeld      = "held"     // it has begun, and goes on when what holds its task is cleared
	ReviewReviewed  = "reviewed" // a review has come to a verdict about it
	ReviewBlind     = "blind"    // no model was there to review it
	ReviewFailed    = "failed"
	ReviewCancelled = "cancelled"
)

// Reviewable is a pull request as reviews need it.
type Reviewable struct {
	ID, RepoID, Title, HeadRef, HeadSHA, BaseRef, MergeBase, Change string
	Number                                                          int64
	Open, Watched                                                   bool   // Watched: agents look after it
	Why                                                             string // it is not open to reviews; "" if it is
	TaskID                                                          string // "" without one
}

// Reviewable is a pull request for its review.
func (r Pull) Reviewable() Reviewable {
	out := Reviewable{ID: r.ID, RepoID: r.RepoID, Number: r.Number, Title: r.Title, HeadRef: r.HeadRef, HeadSHA: r.HeadSHA,
		BaseRef: r.BaseRef, MergeBase: r.MergeBase, Change: r.Change,
		Why: r.unreviewable(), Open: r.unreviewable() == "", Watched: !r.Unwatched()}
	if r.TaskID != nil {
		out.TaskID = *r.TaskID
	}
	return out
}

// unreviewable says why a pull request is not open to reviews; "" if it is.
func (r Pull) unreviewable() string {
	switch {
	case r.State != Open:
		return "the pull request is over"
	case r.AbandonedAt != nil:
		return "the work on the pull request was given up"
	case r.Draft:
		return "the pull request is a draft"
	}
	return ""
}

// What a person has said about the watch of a pull request. It counts before the policy
// and its labels.
const (
	WatchOn  = "on"
	WatchOff = "off"
)

// Arm gives a row its rounds anew.
func (r *Pull) Arm(babysit, why string, now time.Time) {
	r.Babysit, r.ArmedAt, r.ArmedWhy, r.AttendAt = babysit, &now, why, 0
	r.CIRounds, r.ConflictRounds, r.ReviewRounds, r.RequestRounds = 0, 0, 0, 0
}
