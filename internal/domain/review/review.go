// Package review is the review of pull requests by agents. A review has two passes, each a
// task of its own with a fresh session: the finder reads the change and names findings, and
// the verifier, which sees only the claims, must reproduce each of them or show the lines
// that make it true. What is left is posted once; later heads are reviewed by what has
// changed since, and findings that are mended are answered.
//
//   - review.go: the types, the Service and what it needs
//   - state.go: the states of a run and of a finding
//   - place.go, lines.go: where a finding stands, in a file, in a diff and on a new head
//   - same.go: findings that were made before
//   - prompt.go, answer.go: what the two passes are asked, and what they answer
//   - begin.go: how a run begins; step.go: the work that no request asks for
//   - code.go: where findings are in the code, and where they go on a new head
//   - sort.go: from the finder's answer to the verifier; end.go: to the end of the run
//   - ops.go, findings.go: the capabilities; store.go, store_finding.go: the rows
package review

import (
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/needs"
)

// Limits of reviews.
const (
	maxRaw      = 30   // findings of a finder
	maxVerified = 20   // claims of a finder that a verifier is given
	maxAgain    = 20   // findings of earlier reviews that it looks at again
	maxPosted   = 10   // findings that a review posts
	maxOnPull   = 30   // findings that are posted on a pull request in all
	maxList     = 50   // rows of review.list
	maxClaim    = 200  // characters
	maxText     = 2000 // characters of why, how_to_see, suggestion, evidence
)

// Pull is a pull request as reviews need it.
type Pull struct {
	ID, RepoID  string
	Number      int64
	Title       string
	HeadRef     string
	HeadSHA     string
	BaseRef     string
	MergeBase   string // "" while the head is not known at the code host
	Change      string // codehost.Comparison.Change of the head; "": not known
	Open        bool
	Why         string // it is not open to reviews; "" if it is
	Watched     bool
	TaskID      string // the task that it came from; "" without one
	PlanDone    bool   // that task is of a plan that is done
	RequestedBy *string
	Template    string // of that task; "" without one
}

// Pulls is the part of pull requests that reviews need. All are of tx.Account.
type Pulls interface {
	// Get reads a pull request; false if there is none.
	Get(tx *db.Tx, prID string) (Pull, bool, error)
	// Lock is Get, and keeps other transactions from changing the pull request.
	Lock(tx *db.Tx, prID string) (Pull, bool, error)
	// Titles reads number and title of pull requests, by id.
	Titles(tx *db.Tx, prIDs []string) (map[string]Title, error)
	// Reviewed says how far the review of a head has come, and how many findings hold the
	// merge. It changes nothing if the pull request is over.
	Reviewed(tx *db.Tx, prID, headSHA string, r Result) error
}

// Title is a pull request in a list.
type Title struct {
	Number int64
	Title  string
	URL    string
}

// Result is how far the review of a head has come.
type Result struct {
	Running  bool
	Held     bool   // it goes on when what holds its task is cleared, such as a budget
	Outcome  string // of the runs of this head that have ended: Looked, Blind, Failed or Cancelled; "" without one
	Findings int    // that hold the merge
}

// Tasks is the part of tasks that reviews need. All are of tx.Account.
type Tasks interface {
	// Queue queues a pass. It fails with a fault if the queue does not take it.
	Queue(tx *db.Tx, r repo.Ref, p Pass) (taskID string, err error)
	// Stop cancels a pass unless it is over.
	Stop(tx *db.Tx, taskID string) error
	// Held tells whether a pass is held: until there is money again, or a person does something.
	Held(tx *db.Tx, taskID string) (bool, error)
}

// Pass is the work of the finder or of the verifier.
type Pass struct {
	PRID, Title, Problem string
	Schema               string // JSON Schema of the answer
	Template             string
	HeadSHA              string // to check out
	RequestedBy          *string
}

// Models tells which model would carry a pass out.
type Models interface {
	// Resolve answers the template for the finder: the one that the policy names, else
	// that of the work of a pull request. gap is "" if the template has a model, else
	// GapNoCredential or GapUnresolved.
	Resolve(tx *db.Tx, policy, work, prID string) (template, gap string, err error)
	// Other answers a template of another model than the given one has, if the account
	// has one, else the given one.
	Other(tx *db.Tx, template string) (string, error)
	// Brains tells what the newest runs of tasks used and recorded, by task.
	Brains(tx *db.Tx, taskIDs []string) (map[string]Seen, error)
}

// Seen is what is known of the newest run of a pass.
type Seen struct {
	Provider, Model string // "" before the first call of a model
	Program         bool   // a program that the template names ran in the place of an agent
	Provenance      *Provenance
}

// What the runs of a head have come to, besides Failed and Cancelled.
const (
	Looked = "reviewed" // one has looked at it, or had not to, and came to a verdict
	Blind  = "blind"    // no model was there
)

// Gap is why a review is blind.
type Gap string

// Gaps of a blind review.
const (
	GapNoCredential = "no_credential" // no key of the account fits the template
	GapUnresolved   = "unresolved"    // the template is gone, or names no model
)

// Values lists all gaps.
func (Gap) Values() []string { return []string{GapNoCredential, GapUnresolved} }

// Poster posts reviews at hosts that keep them. Its methods put intents into the
// transaction; nothing is sent before it commits.
type Poster interface {
	// PostReview posts the findings of a review, all at once.
	PostReview(tx *db.Tx, r repo.Ref, p Pull, rv Posting) error
	// SetCheck sets the check of the review of a head.
	SetCheck(tx *db.Tx, r repo.Ref, p Pull, c Check) error
	// Answer adds a text to the thread of a finding, and closes the thread if resolve.
	Answer(tx *db.Tx, r repo.Ref, p Pull, f Finding, text string, resolve bool) error
}

// Posting is a review to post.
type Posting struct {
	RunID    string
	HeadSHA  string
	Findings []Finding
	More     int // findings beyond the limits
}

// Check is the check of a review.
type Check struct {
	RunID, HeadSHA string
	State          string // queued, running, or a verdict
	Title          string
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Hosts  *codehost.Hosts
	Logger *slog.Logger
	Pulls  Pulls
	Tasks  Tasks
	Models Models
	Poster Poster
}

// Service has the capabilities of reviews, and carries them out.
type Service struct {
	Needs
	runs due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.runs = due.Register(n.Due, due.Queue[Run]{
		Name: "reviews", Retry: retry, Load: load, Work: s.work, GiveUp: s.giveUp,
		Open: func(tx *db.Tx, most int) ([]due.Open, error) { return unfinished.All(tx, most) },
	})
	return s
}
