package task

import (
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

// Templates tell what they demand of boxes and of an account's keys.
type Templates interface {
	// Need is what the named template of an account demands; false if the account
	// has no such template.
	Need(tx *db.Tx, account, name string) (Need, bool, error)
	// Needs is Need for several at once, by name, without those that there are not.
	Needs(tx *db.Tx, account string, names []string) (map[string]Need, error)
}

// Related is what other domains know of tasks. All ids are of tx.Account, unless
// a method says otherwise, and what there is nothing for is left out of maps.
type Related interface {
	// Seats is how many agents an account may run at once.
	Seats(tx *db.Tx, account string) (int64, error)
	// Spent is what the sessions of tasks cost, in micro-dollars by task.
	Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error)
	// SetAside is what is reserved for calls of tasks, in micro-dollars by task.
	SetAside(tx *db.Tx, taskIDs []string) (map[string]int64, error)
	// Stops is what the budgets of held tasks lack.
	Stops(tx *db.Tx, taskIDs []string) ([]Stop, error)
	// Wants is what tasks wait for people to give, oldest first.
	Wants(tx *db.Tx, taskIDs []string) ([]Want, error)
	// PullNeeds lists what only people can do about pull requests, by pull request.
	PullNeeds(tx *db.Tx, prIDs []string) (map[string]PullNeed, error)
	// PullOpen tells whether a pull request is neither merged nor closed.
	PullOpen(tx *db.Tx, prID string) (bool, error)
	// PullHead is the head of a pull request of any account while it is open, and
	// empty otherwise.
	PullHead(tx *db.Tx, prID string) (sha string, err error)
	// InPlan is what a task of a plan is in it.
	InPlan(tx *db.Tx, t *Row) (*Plan, error)
	// AskExists tells whether there is the ask.
	AskExists(tx *db.Tx, askID string) (bool, error)
	// Endings lists how the tries of a task ended, oldest first.
	Endings(tx *db.Tx, taskID string) ([]Ending, error)
	// Pulse tells how the newest run of a task is doing; nil without one.
	Pulse(tx *db.Tx, taskID string) (*Pulse, error)
}

// Needs are what the queue is made of.
type Needs struct {
	DB  *db.DB
	Hub *event.Hub

	QueueCap        int64           // pending tasks an account may have, Uncapped for no limit
	Backoff         []time.Duration // wait before the 2nd, 3rd, … try; DefaultBackoff if empty
	DefaultTemplate string          // used when task.create names none

	Repos     Repos
	Templates Templates
	Related   Related
	Foresight Foresight
}

// Service holds the queue.
type Service struct {
	Needs
	foreseen foreseen
}

// New makes the service. It panics if something is lacking.
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

// Template tells what the named template of an account demands of a box; false
// if the account has no such template.
func (s *Service) Template(tx *db.Tx, account, name string) (Need, bool, error) {
	return s.Templates.Need(tx, account, name)
}

// PROpen tells whether a pull request of tx.Account is neither merged nor closed.
func (s *Service) PROpen(tx *db.Tx, prID string) (bool, error) { return s.Related.PullOpen(tx, prID) }
