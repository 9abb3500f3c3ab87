package github

import (
	"crypto/rsa"
	"fmt"
	"sync"
	"time"
)

// state is what the peer knows. Server.mu guards it, and the fields of all objects
// that it holds, unless they never change.
type state struct {
	lastID   int64
	accounts map[string]*Account // by login in lower case
	apps     map[int64]*App
	installs map[int64]*Installation
	tokens   map[string]*token
	repos    map[int64]*Repo
	moved    map[string]int64 // old full name in lower case -> repository
	codes    map[string]*App  // of manifests, good once
	logs     map[string]string
	called   map[string]int // requests by operation
	carried  []Transfer
}

func newState() state {
	return state{
		lastID:   1000,
		accounts: map[string]*Account{},
		apps:     map[int64]*App{},
		installs: map[int64]*Installation{},
		tokens:   map[string]*token{},
		repos:    map[int64]*Repo{},
		moved:    map[string]int64{},
		codes:    map[string]*App{},
		logs:     map[string]string{},
		called:   map[string]int{},
	}
}

// next is an id that was never given. All objects share one sequence, so that a mixed
// up id finds nothing.
func (s *Server) next() int64 {
	s.lastID++
	return s.lastID
}

// Account is a person, an organisation or the bot of an App.
type Account struct {
	ID    int64
	Login string // Rename changes it
	Kind  string // User, Organization, Bot

	s       *Server
	members map[int64]string // of an organisation: role by account, admin or member
	private map[int64]bool   // members whose membership is not shown
}

// App is a GitHub App.
type App struct {
	ID       int64
	Slug     string
	ClientID string
	Owner    *Account
	Bot      *Account

	s             *Server
	name          string
	description   string
	url           string
	key           *rsa.PrivateKey
	hookURL       string
	active        bool
	secret        string
	clientSecret  string
	permissions   map[string]string
	events        []string
	created       time.Time
	deliveries    []*sent // oldest first
	public        bool
	callback      []string
	setupURL      string
	setupOnUpdate bool
}

// Installation is an App in an account.
type Installation struct {
	ID      int64
	App     *App
	Account *Account

	s           *Server
	permissions map[string]string // as accepted, which may be fewer than the App asks for
	events      []string
	all         bool
	repos       map[int64]bool
	created     time.Time
	updated     time.Time
	suspended   time.Time
	suspendedBy *Account
	removed     bool
}

// token is a credential.
type token struct {
	text        string
	expires     time.Time // zero: never
	inst        *Installation
	person      *Account
	permissions map[string]string
	repos       map[int64]bool // nil: all of the installation or person
}

// Repo is a repository.
type Repo struct {
	ID int64

	s           *Server
	owner       *Account
	name        string
	dir         string
	private     bool
	description string
	archived    bool
	fork        *Repo // what it was forked from
	branch      string
	created     time.Time
	updated     time.Time
	pushed      time.Time
	roles       map[int64]string // of people: read, triage, write, maintain, admin
	lastNumber  int
	issues      map[int]*Issue
	labels      []*label
	milestones  []*Milestone
	comments    map[int64]*comment
	suites      []*Suite
	checks      map[int64]*CheckRun
	statuses    []*status
	workflows   []*Workflow
	runs        map[int64]*Run
	jobs        map[int64]*Job
	rulesets    []*Ruleset
	protections map[string]*Protection
	queue       map[string]*queue // by branch
	methods     map[string]bool   // merge, squash, rebase
	deleteHeads bool
	gitLock     sync.Mutex // one push at a time
	answers     map[string]gitAnswer
}

// full is the name with the owner.
func (r *Repo) full() string { return r.owner.Login + "/" + r.name }

// Issue is an issue. A pull request is one, too.
type Issue struct {
	ID     int64
	Number int

	repo      *Repo
	title     string
	body      string
	author    *Account
	app       *App // by which it was opened
	closed    time.Time
	reason    string
	locked    bool
	created   time.Time
	updated   time.Time
	labels    []*label
	milestone *Milestone
	assignees []*Account
	deleted   bool
	pull      *Pull
	closedBy  *Account
}

// Pull is a pull request.
type Pull struct {
	*Issue

	headRepo   *Repo // nil: the fork was deleted
	headOwner  *Account
	headRef    string
	head       string
	baseRef    string
	base       string // as it was when the pull request was opened or last pushed to
	draft      bool
	merged     time.Time
	mergedBy   *Account
	mergeSHA   string
	requested  []*Account
	maintainer bool
	reviews    []*Review
	threads    []*Thread

	reads  int // since mergeability became unknown
	judged bool
	clean  bool
	test   string // the merge commit that was tried
	entry  *entry // in the queue
}

// Review is a review of a pull request.
type Review struct {
	ID int64

	pull      *Pull
	author    *Account
	body      string
	state     string // PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED, DISMISSED
	commit    string // GitHub moves it after a push
	original  string
	patch     string // patch id of the change that was reviewed
	submitted time.Time
}

// Thread is a conversation at a line or a file of a diff.
type Thread struct {
	pull       *Pull
	id         int64
	comments   []*comment
	path       string
	line       int // of the head as it was
	startLine  int
	side       string
	startSide  string
	file       bool // it is about the whole file
	resolved   bool
	resolvedBy *Account
	hunk       string
	position   int // in the diff, from the first @@
	now        int // line in the present head; 0: outdated
	startNow   int
	gone       bool
}

// comment is one of an issue, or of a thread.
type comment struct {
	id       int64
	issue    *Issue
	thread   *Thread
	review   *Review
	reply    int64
	author   *Account
	app      *App
	body     string
	created  time.Time
	updated  time.Time
	commit   string
	original string
}

type label struct {
	id          int64
	name        string
	color       string
	description string
}

// Milestone is a milestone.
type Milestone struct {
	ID     int64
	Number int

	repo        *Repo
	title       string
	description string
	closed      time.Time
	due         time.Time
	created     time.Time
	updated     time.Time
	creator     *Account
}

// nodeID is the name of an object in GraphQL.
func nodeID(kind string, id int64) string { return fmt.Sprintf("%s_kwDO%010d", kind, id) }
