// Package builtin is the built-in code host: bare repositories in a folder, served
// to git clients over smart HTTP, and read and merged with the git program.
//
// The hook Authorize decides the access of a credential; this package enforces it.
// It parses the commands of a push before git sees them, refuses in band so that
// the client prints the reason, and tells the hook Pushed afterwards which refs
// have really changed.
//
// Package gitfolder answers the questions and makes the merges. Each question runs a
// git process (about 2 ms). The package keeps no state between two calls other than
// Missing's, so several servers may share the folder.
//
//   - builtin.go: repositories
//   - git.go: their branches, files and merges
//   - forge.go: the records beside git, of which there are none
//   - http.go, push.go, first.go, room.go: smart HTTP, pushes, those that make a
//     repository, and those that an account has no room for
//   - maintain.go: upkeep, and the lock that keeps it from pushes
package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
)

// Config is the configuration of a Host.
type Config struct {
	Name    string // of the host in codehost.Hosts; codehost.BuiltIn if empty
	Root    string // folder of the repositories: Root/owner/name.git; made if missing
	BaseURL string // of this server, without a slash at the end
	Git     string // the git program, 2.39 or later; "git" if empty
	Logger  *slog.Logger
	// Deleting is asked before objects of repositories are packed anew or removed, and its done is
	// called after it. May is false while nothing may be. Nil: it always may.
	Deleting func() (done func(), may bool, err error)
}

// Host implements codehost.Host and codehost.Forge. It has the repositories that
// bear its name; a repository of another host is codehost.ErrNotFound.
type Host struct {
	name, root, baseURL string
	git                 *gitfolder.Git
	log                 *slog.Logger
	transferLimit       smarthttp.Limit
	deleting            func() (done func(), may bool, err error)
	lost                sync.Map // codehost.Key -> codehost.Repo, see Missing
	flows               flows
}

var (
	_ codehost.Host      = (*Host)(nil)
	_ codehost.Branches  = (*Host)(nil)
	_ codehost.Defaulter = (*Host)(nil)
	_ codehost.Searcher  = (*Host)(nil)
)

// New makes a Host. It fails unless git is installed and can merge without a work
// tree (2.39).
func New(cfg Config) (*Host, error) {
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("code host root: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("code host root: %w", err)
	}
	git, err := gitfolder.New(cfg.Git, root)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Deleting == nil {
		cfg.Deleting = func() (func(), bool, error) { return func() {}, true, nil }
	}
	return &Host{
		deleting: cfg.Deleting,
		name:     cmp.Or(cfg.Name, codehost.BuiltIn), root: root, baseURL: strings.TrimSuffix(cfg.BaseURL, "/"), git: git, log: cfg.Logger,
	}, nil
}

// CloneURL implements codehost.Host.
func (h *Host) CloneURL(r codehost.Repo) string {
	return h.baseURL + "/git/" + r.Owner + "/" + r.Name + ".git"
}

func (h *Host) path(r codehost.Repo) string {
	return filepath.Join(h.root, r.Owner, r.Name+".git")
}

// open returns the folder of an existing repository. It fails with
// codehost.ErrNotFound or codehost.ErrLost.
func (h *Host) open(r codehost.Repo) (dir gitfolder.Folder, err error) {
	if r.Host != h.name || r.Validate() != nil {
		return dir, codehost.ErrNotFound
	}
	path := h.path(r)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, lost := h.lost.Load(r.Key()); lost {
			return dir, codehost.ErrLost
		}
		return dir, codehost.ErrNotFound
	} else if err != nil {
		return dir, fmt.Errorf("open repository %s: %w", r, err)
	}
	return h.git.At(path, r.String()), nil
}

// Missing returns the repositories that have no folder, and remembers them: until
// a folder is back, Create and every read of its repository fail with
// codehost.ErrLost.
func (h *Host) Missing(all []codehost.Repo) (missing []codehost.Repo) {
	for _, r := range all {
		if _, err := os.Stat(h.path(r)); errors.Is(err, fs.ErrNotExist) {
			h.lost.Store(r.Key(), r)
			missing = append(missing, r)
		}
	}
	return missing
}

// Stored are the repositories that have a folder.
func (h *Host) Stored() (all []codehost.Repo, err error) {
	owners, err := os.ReadDir(h.root)
	if err != nil {
		return nil, err
	}
	for _, o := range owners {
		names, err := os.ReadDir(filepath.Join(h.root, o.Name()))
		if err != nil {
			continue // no folder of an owner
		}
		for _, n := range names {
			r := codehost.Repo{Host: h.name, Owner: o.Name(), Name: strings.TrimSuffix(n.Name(), ".git")}
			if strings.HasSuffix(n.Name(), ".git") && r.Validate() == nil {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// Lost are the repositories that Missing has returned and that still have no folder.
func (h *Host) Lost() (lost []codehost.Repo) {
	h.lost.Range(func(k, v any) bool {
		r := v.(codehost.Repo)
		if _, err := h.open(r); errors.Is(err, codehost.ErrLost) {
			lost = append(lost, r)
		} else {
			h.lost.Delete(k)
		}
		return true
	})
	return lost
}

// Create implements codehost.Host. Authorize guards every repository here, so
// CreateOptions.Private changes nothing.
func (h *Host) Create(ctx context.Context, r codehost.Repo, o codehost.CreateOptions) error {
	if r.Host != h.name {
		return codehost.ErrNotFound
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if o.DefaultBranch == "" {
		o.DefaultBranch = "main"
	}
	if !codehost.ValidBranch(o.DefaultBranch) {
		return fault.Field("default_branch", "is not a valid branch name")
	}
	dir := h.path(r)
	if _, err := h.open(r); errors.Is(err, codehost.ErrLost) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	made, err := h.git.Init(ctx, o.DefaultBranch)
	if err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	defer os.RemoveAll(made)
	// The repository appears whole or not at all: renaming onto an existing one
	// fails, because its folder is not empty.
	if err := os.Rename(made, dir); errors.Is(err, fs.ErrExist) {
		return codehost.ErrExists
	} else if err != nil {
		return fmt.Errorf("create repository %s: %w", r, err)
	}
	return nil
}
