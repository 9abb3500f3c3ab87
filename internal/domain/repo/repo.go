// Package repo is the repositories of an account: which there are, whether
// agents may work on them, and the policy file each keeps in itself. It also
// decides who may do what with a repository's git data, and is told when
// somebody pushed.
package repo

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
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
	DefaultBranch      string     `json:"default_branch" example:"main" doc:"the branch that work begins from and is merged into; its policy file is in force"`
	Private            bool       `json:"private" doc:"not open to everybody at its host; all of the built-in host are private"`
	Enabled            bool       `json:"enabled" doc:"false: its tasks wait, and new ones are refused"`
	DonationsEnabled   bool       `json:"donations_enabled" doc:"a switch kept for clients; this server acts on it nowhere"`
	AIFirst            bool       `json:"ai_first" doc:"a switch kept for clients; this server acts on it nowhere"`
	CanaryEnabled      bool       `json:"canary_enabled" doc:"a switch kept for clients; this server acts on it nowhere"`
	PublicStatsEnabled bool       `json:"public_stats_enabled" doc:"a switch kept for clients; this server acts on it nowhere"`
	PolicyValid        *bool      `json:"policy_valid" doc:"whether its policy file is valid; null: it has none"`
	LastActivityAt     *time.Time `json:"last_activity_at" doc:"when its default branch was last pushed to; null before"`
	CreatedAt          time.Time  `json:"created_at" doc:"when it was made known"`
}

// BuiltIn is the host value of repositories this server keeps itself.
const BuiltIn = "builtin"

// Service answers for repositories.
type Service struct {
	DB      *db.DB
	Hub     *event.Hub
	Host    codehost.Host
	BaseURL func() string
	// Authenticate resolves a personal access token.
	Authenticate func(ctx context.Context, bearer string) (policy.Actor, error)
	// Attempt resolves the git token of a live attempt: the repository, the
	// refs it may push, and how it is named.
	Attempt func(ctx context.Context, token string) (repoID string, push []string, who string, ok bool, err error)
	// OpenHeads is the recorded head of each branch with an open pull request.
	OpenHeads func(tx *db.Tx, repoID string) (map[string]string, error)
	// Maintain packs a repository of the built-in host.
	Maintain func(ctx context.Context, r codehost.Repo, now time.Time) error
	// Missing answers which repositories of the built-in host have no folder.
	Missing func([]codehost.Repo) []codehost.Repo
	Logger  *slog.Logger

	recording sync.Map // codehost.Repo -> *sync.Mutex
}

// Ref is what other domains need of a repository.
type Ref struct {
	ID            string
	AccountID     string
	Owner, Name   string
	DefaultBranch string
	Enabled       bool
	Policy        Policy // in force: as far as Floors allow
	Floors        Floors // of its account
}

// FullName is owner/name.
func (r Ref) FullName() string { return r.Owner + "/" + r.Name }

// HostRepo names the repository at its host.
func (r Ref) HostRepo() codehost.Repo { return codehost.Repo{Owner: r.Owner, Name: r.Name} }

// Install makes a repository known, enabled from the start. Everything that
// makes repositories (first boot, the built-in host, the command line, a code
// host's install webhook) comes through here.
func Install(tx *db.Tx, owner, name, host, defaultBranch string, private bool) (string, error) {
	newID := id.New()
	if _, err := insert.Exec(tx, insertArgs{
		ID: newID, AccountID: tx.Account, Owner: owner, Name: name, Host: host, DefaultBranch: defaultBranch,
		Private: private, Enabled: true, CreatedAt: tx.Micros(),
	}); err != nil {
		return "", err
	}
	return newID, installedEvent.Record(tx, event.Subject{ID: newID, RepoID: newID}, installedData{Repo: owner + "/" + name, Host: host})
}

// Access decides what the holder of a git password may do with a repository.
// It answers a fault.Unauthenticated for a password that is worth nothing, and
// no access for repositories the holder may not see.
func (s *Service) Access(ctx context.Context, _, password string, r codehost.Repo) (builtin.Access, error) {
	if repoID, push, who, ok, err := s.Attempt(ctx, password); err != nil {
		return builtin.Access{}, err
	} else if ok {
		var row row
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			row, ok, err = byIDAnywhere.Maybe(tx, repoID)
			return err
		})
		if err != nil || !ok || row.Owner != r.Owner || row.Name != r.Name {
			return builtin.Access{}, err
		}
		return builtin.Access{Read: true, Push: push, Who: who}, nil
	}
	actor, err := s.Authenticate(ctx, password)
	if err != nil {
		return builtin.Access{}, err
	}
	if actor.Anonymous() {
		return builtin.Access{}, policy.Unauthenticated()
	}
	var known, own bool
	err = s.DB.Read(db.WithAccount(ctx, actor.AccountID), func(tx *db.Tx) (err error) {
		if _, known, err = byName.Maybe(tx, tx.Account, r.Owner, r.Name); err != nil {
			return err
		}
		login, err := people.AccountLogin(tx, tx.Account)
		own = login == r.Owner
		return err
	})
	if err != nil || !known && !own {
		return builtin.Access{}, err
	}
	a := builtin.Access{Who: actor.Label()}
	a.Read = actor.Scopes.Has(policy.Scopes(policy.ReadRepos))
	if actor.Scopes.Has(policy.Scopes(policy.WriteRepos)) {
		a.Push = []string{"refs/heads/*", "refs/tags/*"}
		a.Create = own && !known
	}
	return a, nil
}

// Create installs a repository of the built-in host on its first push.
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
		_, err = Install(tx, r.Owner, r.Name, BuiltIn, "main", true)
		return err
	})
	if db.IsUnique(err) { // somebody else's first push came first, or there were pushes long ago
		return s.unlessLost(ctx, r)
	}
	return err
}

// unlessLost fails if there were pushes to a repository of which the host knows
// nothing any more.
func (s *Service) unlessLost(ctx context.Context, r codehost.Repo) error {
	var known row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		known, _, err = byNameAnywhere.Maybe(tx, r.Owner, r.Name)
		return err
	})
	if err != nil || known.LastActivityAt == nil {
		return err
	}
	if _, err = s.Host.Info(ctx, r); errors.Is(err, codehost.ErrNotFound) {
		return codehost.ErrLost
	}
	return err
}

// OnPush records what a push to the built-in host changed: activity, the
// default branch of a new repository, the policy file, and the heads of pull
// requests. Pushes that come at once are told of in any order: what is recorded
// is what the host has by now, for one push of a repository after the other.
func (s *Service) OnPush(ctx context.Context, e builtin.PushEvent) error {
	turn, _ := s.recording.LoadOrStore(e.Repo, new(sync.Mutex))
	turn.(*sync.Mutex).Lock()
	defer turn.(*sync.Mutex).Unlock()
	info, err := s.Host.Info(ctx, e.Repo)
	if err != nil {
		return err
	}
	heads := map[string]string{}
	for _, u := range e.Updates {
		branch, isBranch := strings.CutPrefix(u.Ref, "refs/heads/")
		if !isBranch {
			continue
		}
		switch heads[branch], err = s.Host.Head(ctx, e.Repo, branch); {
		case errors.Is(err, codehost.ErrNotFound):
			heads[branch] = codehost.ZeroSHA
		case err != nil:
			return err
		}
	}
	pol, err := PolicyAt(ctx, s.Host, e.Repo, info.DefaultBranch)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := byNameAnywhere.Maybe(tx, e.Repo.Owner, e.Repo.Name)
		if err != nil || !ok {
			return err
		}
		tx.Account = r.AccountID
		if _, err := activity.Exec(tx, activityArgs{
			ID: r.ID, LastActivityAt: tx.Now, DefaultBranch: info.DefaultBranch, PolicySHA: pol.SHA, PolicyYML: pol.Text,
			PolicyError: pol.Problem,
		}); err != nil {
			return err
		}
		changed := r.PolicySHA != pol.SHA || r.DefaultBranch != info.DefaultBranch
		r.DefaultBranch, r.PolicyYML, r.PolicyError = info.DefaultBranch, pol.Text, pol.Problem
		if changed {
			if err := PolicyChanged.Send(tx, r.ref()); err != nil {
				return err
			}
		}
		for _, u := range e.Updates {
			branch, isBranch := strings.CutPrefix(u.Ref, "refs/heads/")
			if !isBranch {
				continue
			}
			push := Push{Branch: branch, Old: u.Old, New: u.New, By: e.Who, Repo: r.ref(), Head: heads[branch]}
			if err := PushedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.ID}, push); err != nil {
				return err
			}
		}
		return nil
	})
}

// Refresh reads the policy file of a repository again.
func (s *Service) Refresh(ctx context.Context, r codehost.Repo) error {
	return s.OnPush(ctx, builtin.PushEvent{Repo: r})
}

// File is a policy file as it stands somewhere.
type File struct {
	SHA     string  // of its content; empty: there is none
	Text    *string // nil: there is none
	Problem *string // why it is not valid
	Policy  Policy  // what it says, or the defaults
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
