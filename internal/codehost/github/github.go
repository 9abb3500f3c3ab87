// Package github connects one App at one GitHub: github.com, or an Enterprise Server
// by its address. Host is the connection, and has all four sides of a code host.
//
// Facts about commits are read from a mirror, a bare folder for each repository, which
// is fetched when it lacks a commit. All else is asked through the REST API, and
// through the GraphQL API what REST lacks. Each call has a token for one repository
// with the least permissions. A repository is found by its id, so a call survives that
// the repository was renamed.
//
// GitHub has no keys of idempotency. A write counts once because it looks for the
// effect of its codehost.Once before it has one: a pull request by its head and base, a
// merge by its head, a check by its external_id, a text by a marker at its end.
//
//   - github.go: Config and Host
//   - client.go, failure.go, graphql.go: calls and what goes wrong with them
//   - token.go, limits.go: credentials, and what answers say of limits
//   - mirror.go, host.go: the git side
//   - pulls.go, merge.go, reviews.go, threads.go, checks.go, actions.go, issues.go,
//     milestones.go, rules.go: the forge
//   - deliveries.go, events.go, feed.go: what happens at GitHub
//   - manifest.go, person.go: Apps that are made, and tokens of people
//   - wire.go: the objects of GitHub's answers
package github

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/codehost/pace"
)

// Config is the configuration of a Host.
type Config struct {
	Name      string    // of the host in codehost.Hosts, such as "github:github.com"
	Addresses Addresses // where the GitHub is

	AppID   int64
	Slug    string   // of the App; its bot is called slug[bot]
	BotID   string   // id of the bot's account; "" goes by the name alone
	Key     []byte   // the App's private key, PEM
	Secrets []string // of webhooks: the present one, and the one before it

	Workflows      bool // the App has "workflows: write"
	Administration bool // the App has "administration: write"

	Folder string // of the mirrors; made if missing
	Git    string // the git program, 2.39 or later; "git" if empty
	CAFile string // certificates that git trusts; "" for those of the system

	// CloneURL is the address of a repository at the relay of this server.
	CloneURL func(codehost.Repo) string

	Transport http.RoundTripper // nil: http.DefaultTransport
	Now       func() time.Time
	Limits    pace.Limits // nil: those of this process alone
	Logger    *slog.Logger
}

// Addresses say where a GitHub is. They have no slash at the end.
type Addresses struct {
	Web     string // of pages and of git
	API     string // REST
	GraphQL string
}

// At are the addresses of the GitHub with a host name, over https.
func At(host string) Addresses {
	switch {
	case host == "github.com":
		return Addresses{"https://github.com", "https://api.github.com", "https://api.github.com/graphql"}
	case strings.HasSuffix(host, ".ghe.com"): // Enterprise Cloud with data residency
		return Addresses{"https://" + host, "https://api." + host, "https://api." + host + "/graphql"}
	}
	return AtServer("https://" + host)
}

// AtServer are the addresses of an Enterprise Server by that of its pages.
func AtServer(web string) Addresses {
	web = strings.TrimSuffix(web, "/")
	return Addresses{web, web + "/api/v3", web + "/api/graphql"}
}

// Host is one App at one GitHub. It implements codehost.Host, codehost.Forge,
// codehost.Feed and codehost.GitAccess, and is safe for concurrent use.
type Host struct {
	cfg    Config
	web    *url.URL
	key    *rsa.PrivateKey
	http   *http.Client
	git    *gitfolder.Git
	limits pace.Limits
	log    *slog.Logger

	tokens        tokens
	installations sync.Map // of codehost.Repo.Key: installed
	names         sync.Map // of codehost.Repo.Key: named
	mirrors       sync.Map // of the id of a repository: *mirror
	heads         sync.Map // of a ref: headTag
	headCount     atomic.Int64

	alive context.Context // of fetches, which outlive who asked for them
	close context.CancelFunc
	work  sync.WaitGroup
}

var (
	_ codehost.Host      = (*Host)(nil)
	_ codehost.Forge     = (*Host)(nil)
	_ codehost.Feed      = (*Host)(nil)
	_ codehost.GitAccess = (*Host)(nil)
	_ codehost.People    = (*Host)(nil)
	_ codehost.Searcher  = (*Host)(nil)
)

// patience is how long an answer of the API may take.
const patience = 30 * time.Second

// New makes a Host. It calls nobody. It fails if the key is none, git is missing or the
// folder cannot be made.
func New(cfg Config) (*Host, error) {
	if cfg.Name == "" || cfg.AppID == 0 || cfg.Slug == "" || cfg.CloneURL == nil || cfg.Now == nil {
		return nil, errors.New("github: the configuration is not whole")
	}
	web, err := url.Parse(cfg.Addresses.Web)
	if err != nil {
		return nil, fmt.Errorf("github: address: %w", err)
	}
	key, err := parseKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("github: the private key of the App: %w", err)
	}
	if cfg.Folder, err = filepath.Abs(cfg.Folder); err != nil {
		return nil, fmt.Errorf("github: folder of mirrors: %w", err)
	}
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("github: folder of mirrors: %w", err)
	}
	git, err := gitfolder.New(cfg.Git, cfg.Folder, mirrorSettings(web, cfg)...)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Limits == nil {
		cfg.Limits = pace.Local(cfg.Now, pace.Timer{})
	}
	h := &Host{
		cfg: cfg, web: web, key: key, git: git, limits: cfg.Limits, log: cfg.Logger,
		http: client(cfg.Transport),
	}
	h.alive, h.close = context.WithCancel(context.Background())
	return h, nil
}

// Close ends the fetches that run, and waits for them. The Host is not used afterwards.
func (h *Host) Close() {
	h.close()
	h.work.Wait()
}

// client follows no redirect: a write would become a read.
func client(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is no RSA key")
	}
	return key, nil
}

// Sides are the sides of the host for codehost.Hosts.
func (h *Host) Sides() codehost.Sides {
	return codehost.Sides{Host: h, Forge: h, Feed: h, Git: h, People: h, Called: h.cfg.Slug}
}

// Can implements codehost.Forge.
func (h *Host) Can(c codehost.Capability) bool {
	switch c {
	case codehost.CreateRepos:
		return h.cfg.Administration
	case codehost.WriteWorkflow:
		return h.cfg.Workflows
	}
	return true
}

// CloneURL implements codehost.Host. It is the address of the relay: nobody is given a
// credential of GitHub.
func (h *Host) CloneURL(r codehost.Repo) string { return h.cfg.CloneURL(r) }

// WebURL implements codehost.Shown.
func (h *Host) WebURL(r codehost.Repo) string { return h.web.JoinPath(r.Owner, r.Name).String() }

// named is the name that a repository had at a time.
type named struct {
	repo codehost.Repo
	at   time.Time
	tag  codehost.Tag // of the answer that said so
}

// present is the name of a repository as far as the host knows.
func (h *Host) present(r codehost.Repo) codehost.Repo {
	if found, ok := h.names.Load(r.Key()); ok && r.ID != "" {
		return found.(named).repo
	}
	return r
}

// rename asks for the present name of a repository, and tells whether it is another
// one than was known.
func (h *Host) rename(ctx context.Context, r codehost.Repo) (codehost.Repo, bool, error) {
	if r.ID == "" {
		return r, false, nil
	}
	was := named{repo: r}
	if found, ok := h.names.Load(r.Key()); ok {
		was = found.(named)
	}
	tok, err := h.tokenFor(ctx, r, readMetadata)
	if err != nil {
		return was.repo, false, err
	}
	var w wireRepo
	re, err := h.send(ctx, request{method: http.MethodGet, path: byID(r), auth: tok, tag: was.tag}, &w)
	now := named{was.repo, h.cfg.Now(), was.tag}
	if !errors.Is(err, codehost.ErrNotModified) {
		if err != nil {
			return was.repo, false, err
		}
		if now.repo, now.tag = h.repo(w), re.tag; now.repo.ID != r.ID {
			return was.repo, false, codehost.ErrNotFound
		}
	}
	h.names.Store(r.Key(), now)
	return now.repo, now.repo.String() != was.repo.String(), nil
}

// nameGood is how long a name is taken for that of the repository.
const nameGood = time.Minute

// confirmed is the present name of a repository. It is for what goes by names alone:
// git. A name may become that of another repository, which everybody may read.
func (h *Host) confirmed(ctx context.Context, r codehost.Repo) (codehost.Repo, error) {
	if found, ok := h.names.Load(r.Key()); ok && h.cfg.Now().Sub(found.(named).at) < nameGood {
		return found.(named).repo, nil
	}
	now, _, err := h.rename(ctx, r)
	return now, err
}

// byID is the path of a repository, which is the same under each of its names. It is
// where GitHub redirects to from a former name. A repository without an ID has the
// path of its name.
func byID(r codehost.Repo) string {
	if r.ID == "" {
		return "/repos/" + r.Owner + "/" + r.Name
	}
	return "/repositories/" + url.PathEscape(r.ID)
}

// ours tells whether the repository is at this host and has a name that may stand in
// an address.
func (h *Host) ours(r codehost.Repo) error {
	if r.Host != h.cfg.Name || r.Validate() != nil {
		return codehost.ErrNotFound
	}
	return nil
}

// botLogin is the name of the App's bot.
func (h *Host) botLogin() string { return cmp.Or(h.cfg.Slug, "?") + "[bot]" }
