// Package repo is the repositories of an account: which there are, whether
// agents may work on them, and the policy file each keeps in itself. It also
// decides who may do what with a repository's git data, and is told when
// somebody pushed.
//
//   - repo.go: Ref, access to git, pushes
//   - shape.go: what the host has by now
//   - branch.go: another default branch
//   - file.go: a file at a commit
//   - installed.go: how repositories of other hosts come, change and go
//   - policyfile.go, weaker.go, floors.go: the policy file, and what it may ask for
//   - loop.go, apart.go: the work that no request asks for, and folders of another time than their rows
//   - ops.go, store.go, events.go
package repo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// Repository is a row as the API shows it.
type Repository struct {
	_                  struct{}   `doc:"A repository of the account, with its switches."`
	ID                 string     `json:"id" format:"uuid" doc:"id of the repository"`
	Owner              string     `json:"owner" doc:"login of its owner at the code host"`
	Repo               string     `json:"repo" example:"web" doc:"its name, without the owner"`
	FullName           string     `json:"full_name" example:"acme/web" doc:"owner/name"`
	Host               string     `json:"host" example:"builtin" doc:"the code host that has it: builtin is this server's own"`
	CloneURL           string     `json:"clone_url" format:"uri" example:"https://yardmaster.example.com/git/acme/web.git" doc:"where git fetches it from"`
	WebURL             *string    `json:"web_url" format:"uri" example:"https://github.com/acme/web" doc:"its page at its host, for people; null: the built-in host has none"`
	DefaultBranch      string     `json:"default_branch" example:"main" doc:"the branch that work begins from and is merged into; its policy file is in force"`
	Private            bool       `json:"private" doc:"not open to everybody at its host; all of the built-in host are private"`
	Enabled            bool       `json:"enabled" doc:"false: its tasks wait, and new ones are refused"`
	DonationsEnabled   bool       `json:"donations_enabled" doc:"whether it takes gifts while it is public: other accounts may give keys, money and boxes for its work, and project.public_stats counts them"`
	AIFirst            bool       `json:"ai_first" doc:"whether every pull request of a person is looked after and every issue triaged, where the policy file does not say otherwise"`
	CanaryEnabled      bool       `json:"canary_enabled" doc:"switches nothing yet: it waits for rollouts of new versions to canary repositories, which this server does not make"`
	PublicStatsEnabled bool       `json:"public_stats_enabled" doc:"whether project.public_stats shows everybody what agents did in a public repository"`
	PolicyValid        *bool      `json:"policy_valid" doc:"whether its policy file is valid; null: it has none"`
	LastActivityAt     *time.Time `json:"last_activity_at" doc:"when its default branch was last pushed to; null before"`
	CreatedAt          time.Time  `json:"created_at" doc:"when it was made known"`
}

// Attempts resolves the git tokens of runs.
type Attempts interface {
	// Attempt tells what the git token of an attempt gives access to; false if it
	// is no such token, or is worth nothing any more.
	Attempt(ctx context.Context, token string) (Attempt, bool, error)
	// Borrows tells whether an attempt may read the submodules of its repository.
	Borrows(tx *db.Tx, a Attempt) (bool, error)
}

// Attempt is what the git token of an attempt gives access to.
type Attempt struct {
	RepoID string
	Push   []string // the refs that it may push
	Who    string   // the name of the attempt in the record
	Person string   // id of the user for whom it works; empty: nobody
	// Account and TaskID are of the attempt's task.
	Account, TaskID string
	Late            bool // it may save its work, and read nothing else
	Lent            bool // it is on a box that another account has lent
}

// Holders resolves personal access tokens.
type Holders interface {
	// Authenticate answers the actor whose token bearer is;
	// fault.Unauthenticated if it is nobody's.
	Authenticate(ctx context.Context, bearer string) (policy.Actor, error)
}

// Pulls is what repositories ask of pull requests.
type Pulls interface {
	// OpenHeads answers the recorded head of each branch of a repository of
	// tx.Account with an open pull request.
	OpenHeads(tx *db.Tx, repoID string) (map[string]string, error)
}

// Folders is the built-in host as the keeper of its own disk.
type Folders interface {
	// Maintain packs a repository.
	Maintain(ctx context.Context, r codehost.Repo, now time.Time) error
	// Missing answers those of the repositories that have no folder.
	Missing([]codehost.Repo) []codehost.Repo
	// Stored answers the repositories that have a folder on this node.
	Stored() ([]codehost.Repo, error)
	// Pointed answers those of some names of objects of Git LFS that a file in a repository names,
	// as far as git has not removed it.
	Pointed(ctx context.Context, r codehost.Repo, oids []string) ([]string, error)
}

// Contents are the contents of Git LFS beside the repositories.
type Contents interface {
	// Begun answers the id that a repository of tx.Account gets because contents of it came before
	// its first push, once; "": none did.
	Begun(tx *db.Tx, r codehost.Repo) (id string, err error)
	// Tidy gives back the bytes of what nothing in a repository names.
	Tidy(ctx context.Context, repoID string, pointed func(context.Context, []string) ([]string, error)) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Hub      *event.Hub
	Hosts    *codehost.Hosts
	Folders  Folders
	Contents Contents
	Attempts Attempts
	Holders  Holders
	Pulls    Pulls
	Logger   *slog.Logger
}

// Service answers for repositories.
type Service struct {
	Needs

	recording sync.Map // codehost.Key -> *sync.Mutex
	apart     atomic.Pointer[Apart]
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Pushed is OnPush for a host that has nobody to tell an error: Pushed logs the
// error, and the next pass of Loop records what OnPush did not.
func (s *Service) Pushed(ctx context.Context, e codehost.PushEvent) {
	if err := s.OnPush(ctx, e); err != nil {
		s.Logger.Error("a push was stored but not recorded; the next sweep will", slog.String("repo", e.Repo.String()),
			slog.Any("error", err))
	}
}

// Ref is what other domains need of a repository.
type Ref struct {
	ID            string
	AccountID     string
	Owner, Name   string
	DefaultBranch string
	Enabled       bool
	Gone          string    // why the server lost its access, one of Lost…; empty: it has access
	Uncovered     bool      // it is private, and the tier of its account is without private repositories
	Lacks         string    // the permission that its owner has yet to grant, without which its host takes no push; empty: none is known
	InTheWay      string    // the branch beside which git cannot have those of the service, such as svc; empty: none is known
	Unborn        bool      // its default branch has no commit yet, from which work could begin
	HeldAt        time.Time // since when it is gone, not enabled, or Lacks something; zero: not known, or it is not so
	UncoveredAt   time.Time // since when it is Uncovered; zero: not known, or it is not
	Policy        Policy    // in force: as far as Floors allow
	Defaults      Policy    // where the policy file does not say otherwise
	Floors        Floors    // of its account

	host, hostID string
}

// FullName is owner/name.
func (r Ref) FullName() string { return r.Owner + "/" + r.Name }

// HostRepo names the repository at its host.
func (r Ref) HostRepo() codehost.Repo {
	return codehost.Repo{Host: r.host, ID: r.hostID, Owner: r.Owner, Name: r.Name}
}

// Install adds a repository to tx.Account and answers its id. Every repository comes
// to be known through Install. The repository is enabled, unless it is private and the
// tier of the account is without private ones, or the account has enabled one of the same
// name at another host: a name addresses one repository. A repository that is known already
// is an error of which db.IsUnique tells.
func Install(tx *db.Tx, r codehost.Repo, defaultBranch string, private bool) (string, error) {
	return installAs(tx, id.New(), r, defaultBranch, private)
}

// installAs is Install with an id.
func installAs(tx *db.Tx, newID string, r codehost.Repo, defaultBranch string, private bool) (string, error) {
	_, taken, err := enabledByName.Maybe(tx, tx.Account, r.Owner, r.Name)
	if err != nil {
		return "", err
	}
	enabled := !taken
	if private && enabled {
		err := Covered(tx)
		if err != nil && !fault.IsKind(err, fault.PaymentRequired) {
			return "", err
		}
		enabled = err == nil
	}
	if _, err := insert.Exec(tx, insertArgs{
		ID: newID, AccountID: tx.Account, Owner: r.Owner, Name: r.Name, Host: r.Host, HostRepoID: r.ID, DefaultBranch: defaultBranch,
		Private: private, Enabled: enabled, CreatedAt: tx.Micros(),
	}); err != nil {
		return "", err
	}
	if err := Made.Send(tx, r.Host); err != nil {
		return "", err
	}
	return newID, installedEvent.Record(tx, event.Subject{ID: newID, RepoID: newID}, installedData{Repo: r.String(), Host: r.Host})
}

// Access decides what the holder of a git password may do with a repository.
// It answers a fault.Unauthenticated for a password that is worth nothing, and
// no access for repositories the holder may not see.
func (s *Service) Access(ctx context.Context, _, password string, r codehost.Repo) (codehost.Access, error) {
	if a, ok, err := s.Attempts.Attempt(ctx, password); err != nil {
		return codehost.Access{}, err
	} else if ok {
		var row row
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			row, ok, err = byIDAnywhere.Maybe(tx, a.RepoID)
			return err
		})
		if err != nil || !ok {
			return codehost.Access{}, err
		}
		if row.Host != r.Host || row.Owner != r.Owner || row.Name != r.Name {
			return s.borrowed(ctx, a, row, r)
		}
		return codehost.Access{Read: true, Push: a.Push, Who: a.Who, Credential: a.Who, Account: row.AccountID, Person: a.Person}, nil
	}
	actor, err := s.Holders.Authenticate(ctx, password)
	if err != nil {
		return codehost.Access{}, err
	}
	if actor.Anonymous() {
		return codehost.Access{}, policy.Unauthenticated()
	}
	var there row
	var known, own bool
	err = s.DB.Read(db.WithAccount(ctx, actor.AccountID), func(tx *db.Tx) (err error) {
		if there, known, err = byPlace.Maybe(tx, r.Host, r.Owner, r.Name); err != nil {
			return err
		}
		login, err := people.AccountLogin(tx, tx.Account)
		own = login == r.Owner
		return err
	})
	if err != nil || known && there.AccountID != actor.AccountID || !known && !own {
		return codehost.Access{}, err
	}
	a := codehost.Access{Who: actor.Label(), Credential: actor.CredentialID, Account: actor.AccountID, Person: actor.UserID}
	a.Read = actor.Scopes.Has(policy.Scopes(policy.ReadRepos))
	if actor.Scopes.Has(policy.Scopes(policy.WriteRepos)) {
		a.Push = []string{"refs/heads/*", "refs/tags/*"}
		a.Create = own && !known
	}
	return a, nil
}

// Create installs a repository in the account of its owner, on the first push to it.
func (s *Service) Create(ctx context.Context, r codehost.Repo) error {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		owner, ok, err := people.AccountByLogin(tx, r.Owner)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("account")
		}
		tx.Account = owner
		begun, err := s.Contents.Begun(tx, r)
		if err != nil {
			return err
		}
		_, err = installAs(tx, cmp.Or(begun, id.New()), r, "main", true)
		return err
	})
	if db.IsUnique(err) { // another first push was faster, or there were pushes long ago
		return s.unlessLost(ctx, r, err)
	}
	return err
}

// unlessLost answers nil for a known repository, and codehost.ErrLost if its host has
// lost what was pushed to it. For an unknown one it answers unknown.
func (s *Service) unlessLost(ctx context.Context, r codehost.Repo, unknown error) error {
	var known row
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		row, ok, err := byPlace.Maybe(tx, r.Host, r.Owner, r.Name)
		if err == nil && !ok {
			err = unknown
		}
		known = row
		return err
	})
	if err != nil || known.LastActivityAt == nil {
		return err
	}
	host, err := s.Hosts.Of(r)
	if err != nil {
		return err
	}
	if _, err = host.Info(ctx, r); errors.Is(err, codehost.ErrNotFound) {
		return codehost.ErrLost
	}
	return err
}

// OnPush records what a push to the built-in host changed: activity, the
// default branch of a new repository, the policy file, and the heads of pull
// requests. Pushes that come at once are told of in any order: what is recorded
// is what the host has by now, for one push of a repository after the other.
func (s *Service) OnPush(ctx context.Context, e codehost.PushEvent) error {
	host, err := s.Hosts.Of(e.Repo)
	if err != nil {
		return err
	}
	defer s.alone(e.Repo)()
	now, err := look(ctx, host, e)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := located(tx, e.Repo)
		if err != nil || !ok {
			return err
		}
		tx.Account = r.AccountID
		if err := s.note(tx, &r, now); err != nil {
			return err
		}
		for _, u := range e.Updates {
			branch, isBranch := strings.CutPrefix(u.Ref, "refs/heads/")
			if !isBranch {
				continue
			}
			push := Push{Branch: branch, Old: u.Old, New: u.New, By: e.Who, Repo: r.ref(), Head: now.heads[branch]}
			if err := PushedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.ID}, push); err != nil {
				return err
			}
		}
		return nil
	})
}

// alone waits until nobody else records what a repository has, and answers the end of
// that.
func (s *Service) alone(r codehost.Repo) (done func()) {
	recording, _ := s.recording.LoadOrStore(r.Key(), new(sync.Mutex))
	recording.(*sync.Mutex).Lock()
	return recording.(*sync.Mutex).Unlock
}

// Refresh reads the policy file of a repository again.
func (s *Service) Refresh(ctx context.Context, r codehost.Repo) error {
	return s.OnPush(ctx, codehost.PushEvent{Repo: r})
}

// File is a policy file as it stands somewhere.
type File struct {
	SHA     string  // of its content; empty: there is none
	Text    *string // nil: there is none
	Problem *string // why it is not valid
	Policy  Policy  // what it says, or the defaults
}

// Over is the policy of the file in a repository with these defaults.
func (f File) Over(defaults Policy) Policy {
	switch {
	case f.Problem != nil:
		return f.Policy
	case f.Text == nil:
		return defaults
	}
	p, _ := parseOver(defaults, []byte(*f.Text))
	return p
}

// PolicyAt reads the policy file of a repository at a rev.
func PolicyAt(ctx context.Context, host codehost.Host, r codehost.Repo, rev string) (File, error) {
	b, sha, err := host.ReadFile(ctx, r, rev, PolicyPath)
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		return File{Policy: DefaultPolicy()}, nil
	case errors.Is(err, codehost.ErrTooLarge):
		b = make([]byte, maxPolicyBytes+1) // of which nothing is kept
	case err != nil:
		return File{}, err
	}
	p, msgs := ParsePolicy(b)
	if len(b) > maxPolicyBytes {
		b = nil
	}
	text := storable(string(b))
	f := File{SHA: sha, Text: &text, Policy: p}
	if msgs != nil {
		p := storable(strings.Join(msgs, "\n"))
		f.Problem = &p
	}
	return f, nil
}

// storable replaces what a database does not take: anybody may push a file.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
