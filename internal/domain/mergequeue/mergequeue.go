// Package mergequeue is the order in which approved heads come into a base. Where a
// branch has a merge queue at its code host, an approved head is entered there. Where the
// policy of a repository says so, approved heads of one base are merged in batches: a
// candidate, which is the base with all heads of the batch, is checked; if it passes, its
// heads are merged one after the other; if not, the batch is cut in two until the head is
// found that fails. Package pull merges: it asks Admit before each merge.
//
//   - mergequeue.go: Service, and the words
//   - admit.go: what the merge of a head is told
//   - host.go, group.go: queues of hosts, and our check on their groups
//   - line.go: who is in line, and who leaves it
//   - batch.go: how a batch is built, checked and cut
//   - ops.go: the queue, for people
package mergequeue

import (
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// QueueKind is whose a merge queue is.
type QueueKind string

// Kinds of queues.
const (
	Own  = "own"  // of the server
	Host = "host" // of the code host
)

// Values lists both kinds.
func (QueueKind) Values() []string { return []string{Own, Host} }

// PlaceState is how far an entry in a queue is.
type PlaceState string

// States of an entry.
const (
	Waiting = "waiting" // own: for a batch; host: to be entered
	Batched = "batched" // in the batch that is in flight
	Going   = "going"   // its merge may be made
	Queued  = "queued"  // in the queue of the host
	Refused = "refused" // thrown out, and its pull request is yet to be told
	Merged  = "merged"
	Out     = "out" // it has left without a merge
)

// Values lists the states of those in a queue.
func (PlaceState) Values() []string { return []string{Waiting, Batched, Going, Queued} }

// BatchState is how far a batch in flight is.
type BatchState string

// States of a batch. Merged is one as well: all of its heads are in the base.
const (
	Building = "building" // its candidate is made
	Checking = "checking"
	Merging  = "merging"
	Failed   = "failed"  // the candidate did not pass
	Dropped  = "dropped" // a head left it, or the base moved
)

// Values lists the states of those in flight.
func (BatchState) Values() []string { return []string{Building, Checking, Merging} }

// Reasons why a head is thrown out.
const (
	ByCheck    = "check"    // its check failed together with the base
	ByConflict = "conflict" // it conflicts with the base
	ByHead     = "head"     // the host has another head
	ByRule     = "rule"     // a rule of the host is not met
	ByPerson   = "person"   // it was taken out at the host
	ByLost     = "lost"     // no check had a result
)

// Order is an approved merge that stands.
type Order struct{ HeadSHA, BaseRef string }

// Orders is the part of pull requests that queues need. All are of tx.Account.
type Orders interface {
	// Standing answers those of the orders that stand, by id: approved, for the present
	// head of an open pull request.
	Standing(tx *db.Tx, ids []string) (map[string]Order, error)
}

// Result is what is known of the checks of a commit.
type Result struct {
	State string // pending, passed, failed, lost
	Why   string // what failed, for people
	Log   string // the end of the output; "" if there is none
}

// States of a Result.
const (
	CheckPending = "pending"
	CheckPassed  = "passed"
	CheckFailed  = "failed"
	CheckLost    = "lost" // it ended without a result
)

// Checks is the part of checks that queues need.
type Checks interface {
	// Check has a commit checked: by the command of the repository, if it has one, and by
	// its host, if atHost. It answers the task of the command, or "". It fails with a
	// fault if the queue of tasks does not take the check.
	Check(tx *db.Tx, r repo.Ref, base, sha string, atHost bool) (taskID string, err error)
	// Result answers what is known of the checks of a commit. The result of the host is
	// counted if atHost.
	Result(tx *db.Tx, r repo.Ref, sha string, atHost bool) (Result, error)
	// Stop ends the task of a check that is of no use any more.
	Stop(tx *db.Tx, taskID string) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Hosts   *codehost.Hosts
	Logger  *slog.Logger
	Orders  Orders
	Checks  Checks
	Intents *intent.Service
	Bot     codehost.Person // signs candidates
}

// Service keeps the queues.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	enterHost.Handle(n.Intents, enterer{s})
	leaveHost.Handle(n.Intents, leaver{})
	groupCheck.Handle(n.Intents, reporter{})
	return s
}

// Place is the place of a pull request in a queue.
type Place struct {
	_        struct{}   `doc:"The place of a pull request in a merge queue, beside its head." schema:"MergePlace"`
	Queue    QueueKind  `json:"queue" example:"own" doc:"own: the queue of this server; host: that of the code host"`
	State    PlaceState `json:"state" example:"batched" doc:"waiting: for its batch, or to be entered at the code host; batched: it is checked together with others; going: its merge is made; queued: the code host has it"`
	Position int64      `json:"position" example:"2" doc:"from 1, in order of approval; at the code host its word, and 0 before it has said"`
	At       time.Time  `json:"at" doc:"since when it is in the queue"`
}

// Turn is what Admit answers: whether a merge may be made now, and from which commit of
// the base; "" is any.
type Turn struct {
	Go      bool
	BaseSHA string
}

// Item is an approved merge.
type Item struct {
	PRID, ActionID, HeadSHA, BaseRef string
	Number                           int64
	Fork                             bool // its branch is in another repository
	OrderedAt                        time.Time
}

// ThrownOut is sent when a head leaves its queue for a reason of its own.
type ThrownOut struct {
	PRID, ActionID, HeadSHA string
	Reason                  string // one of the reasons above
	Why, Log                string
}

// Signals to the pull requests.
var (
	// TurnCame is sent with the id of an order that may go on.
	TurnCame     = event.DeclareSignal[string]("mergequeue.turn_came", "The turn of an approved merge has come.")
	HeadRejected = event.DeclareSignal[ThrownOut]("mergequeue.head_rejected", "A head was thrown out of its merge queue.")
)
