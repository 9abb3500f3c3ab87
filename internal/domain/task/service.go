package task

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Repos tells of repositories.
type Repos interface {
	// ByName finds a repository of tx.Account.
	ByName(tx *db.Tx, owner, name string) (Repo, bool, error)
	// ByID finds a repository by an id that a stored row holds; that there is none
	// is an error.
	ByID(tx *db.Tx, id string) (Repo, error)
	// ByIDs is ByID for several at once, by id, without those that there are not.
	ByIDs(tx *db.Tx, ids []string) (map[string]Repo, error)
}

// Templates tells of templates.
type Templates interface {
	// Exists tells whether an account has a template of the name.
	Exists(tx *db.Tx, account, name string) (bool, error)
}

// Queue is where pending tasks wait, in the order in which boxes claim them. It
// follows tasks by QueueChanged.
type Queue interface {
	// Admit tells whether one more task of tx.Account may be created. It returns
	// fault.Forbidden (no-capacity) if the account has no seat and fault.RateLimited
	// (queue-full) if as many tasks as may are pending.
	Admit(tx *db.Tx) error
	// Cap is how many tasks of an account may be pending, or Uncapped.
	Cap() int64
	// Depth is how many tasks of tx.Account are pending, without what tx changes.
	Depth(tx *db.Tx) (int64, error)
	// Place is the place, from 1, of a task that tx has just created.
	Place(tx *db.Tx, t *Row) (int64, error)
	// NarrowStuck appends to a query of tasks of tx.Account the condition that a task is
	// shown as stuck.
	NarrowStuck(tx *db.Tx, b *db.Builder) error
	// NarrowPeople appends the condition that a task waits for a person.
	NarrowPeople(tx *db.Tx, b *db.Builder) error
	// Explain returns the waits of pending tasks of tx.Account, by id. repos are the
	// repositories of the tasks, by id. newest tells that rows include the newest
	// pending tasks of the account.
	Explain(tx *db.Tx, rows []Row, repos map[string]Repo, newest bool) (map[string]Wait, error)
}

// Wait is where a pending task is in the queue, and why no box has claimed it.
type Wait struct {
	Place int64 // from 1
	Holds []Hold
}

// Related is what other domains know of tasks. All ids are of tx.Account, unless
// a method says otherwise. Maps omit ids without a value.
type Related interface {
	// Spent is what the sessions of tasks cost, in micro-dollars by task.
	Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error)
	// SetAside is what is reserved for calls of tasks, in micro-dollars by task.
	SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error)
	// Stops is what the budgets of held tasks lack.
	Stops(tx *db.Tx, taskIDs []string) ([]Stop, error)
	// Activities are the titles of the newest tools that the runs of tasks have called.
	Activities(tx *db.Tx, taskIDs []string) (map[string]string, error)
	// Wants is what tasks wait for people to give, oldest first.
	Wants(tx *db.Tx, taskIDs []string) ([]Want, error)
	// PullNeeds lists what only people can do about pull requests, by pull request.
	PullNeeds(tx *db.Tx, prIDs []string) (map[string]PullNeed, error)
	// PullWaits tells which pull requests wait for a limit of their code host to end, or for
	// room in the queue of the account.
	PullWaits(tx *db.Tx, prIDs []string) (map[string]PullWait, error)
	// PullOpen tells whether a pull request is neither merged nor closed.
	PullOpen(tx *db.Tx, prID string) (bool, error)
	// InPlan is what a task of a plan is in it.
	InPlan(tx *db.Tx, t *Row) (*Plan, error)
	// AskExists tells whether there is the ask.
	AskExists(tx *db.Tx, askID string) (bool, error)
	// Endings lists how the tries of a task ended, oldest first.
	Endings(tx *db.Tx, taskID string) ([]Ending, error)
	// Pulse tells how the newest run of a task is doing; nil without one.
	Pulse(tx *db.Tx, taskID string) (*Pulse, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB  *db.DB
	Hub *event.Hub

	Backoff         []time.Duration // wait before the 2nd, 3rd, … try; DefaultBackoff if empty
	DefaultTemplate string          // used when task.create names none

	Repos     Repos
	Templates Templates
	Related   Related
	Queue     Queue
	Tracker   Tracker
	Lanes     Lanes `optional:"without them a task gets the template that it names"`
}

// Lanes tell which template a task gets where another one challenges it.
type Lanes interface {
	// Split answers the template of a new task of tx.Account that names one.
	Split(tx *db.Tx, name, taskID string) (string, error)
}

// Tracker is where the sinks gh and linear go: the issues of the code host, and those of
// Linear.
type Tracker interface {
	// Open asks what is behind a sink to open an issue for a repository of tx.Account, and
	// answers the id that the issue has here; false if nothing is behind the sink.
	Open(tx *db.Tx, sink Sink, n NewIssue) (issueID string, ok bool, err error)
}

// NewIssue is an issue to be opened by a Tracker.
type NewIssue struct {
	RepoID, Title, Problem string
	Labels                 []string
}

// NoTracker is a Tracker with nothing behind any sink.
type NoTracker struct{}

// Open implements Tracker. It opens nothing.
func (NoTracker) Open(*db.Tx, Sink, NewIssue) (string, bool, error) {
	return "", false, nil
}

// Service creates tasks, moves them from state to state, and shows them.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	if len(n.Backoff) == 0 {
		n.Backoff = DefaultBackoff
	}
	return &Service{Needs: n}
}

// RepoByName finds a repository of tx.Account; false if there is none of the name.
func (s *Service) RepoByName(tx *db.Tx, owner, name string) (Repo, bool, error) {
	return s.Repos.ByName(tx, owner, name)
}

// RepoByID finds a repository by an id that a stored row holds.
func (s *Service) RepoByID(tx *db.Tx, id string) (Repo, error) { return s.Repos.ByID(tx, id) }

// AddRepos adds to known the repositories of rows that are not in it. It returns an
// error if one is gone.
func AddRepos(tx *db.Tx, repos Repos, rows []Row, known map[string]Repo) error {
	var unknown []string
	for i := range rows {
		if _, ok := known[rows[i].RepoID]; !ok && !slices.Contains(unknown, rows[i].RepoID) {
			unknown = append(unknown, rows[i].RepoID)
		}
	}
	if len(unknown) > 1 {
		found, err := repos.ByIDs(tx, unknown)
		if err != nil {
			return err
		}
		maps.Copy(known, found)
	}
	for _, id := range unknown {
		if _, ok := known[id]; ok {
			continue
		}
		r, err := repos.ByID(tx, id) // whose error names one that there is not
		if err != nil {
			return fmt.Errorf("repository of a task: %w", err)
		}
		known[id] = r
	}
	return nil
}
