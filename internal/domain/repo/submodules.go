package repo

import (
	"context"
	"errors"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/gitmodules"
)

// modulesAt reads the file .gitmodules of a repository at a rev; nil if it has none that
// counts.
func modulesAt(ctx context.Context, host codehost.Host, r codehost.Repo, rev string) (*string, error) {
	b, _, err := host.ReadFile(ctx, r, rev, gitmodules.Name)
	switch {
	case errors.Is(err, codehost.ErrNotFound), errors.Is(err, codehost.ErrTooLarge):
		return nil, nil
	case err != nil:
		return nil, err
	case len(gitmodules.Parse(b)) == 0:
		return nil, nil
	}
	text := storable(string(b))
	return &text, nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Module is a repository that another one has as a submodule, or as one of a submodule.
type Module struct {
	Ref Ref
	Key string // see package gitmodules
}

// elsewhere begins the names of hosts that are a GitHub; the rest is their address.
const elsewhere = "github:"

// Key is the key of a repository in addresses of submodules; "" if it has none.
func Key(hosts *codehost.Hosts, r codehost.Repo) string {
	if at, ok := strings.CutPrefix(r.Host, elsewhere); ok {
		return at + "/" + r.Owner + "/" + r.Name
	}
	return gitmodules.Key(hosts.CloneURL(r))
}

// placeOf is the place that a key means, beside that of the built-in host.
func placeOf(key, builtIn string) (r codehost.Repo, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 3 {
		return r, false
	}
	at := strings.Join(parts[:len(parts)-2], "/")
	r = codehost.Repo{Host: elsewhere + at, Owner: parts[len(parts)-2], Name: parts[len(parts)-1]}
	if at == builtIn {
		r.Host = codehost.BuiltIn
	}
	return r, true
}

// Modules are the repositories of the account of one that it has as submodules, and those
// that these have. What counts is what .gitmodules says on the default branch of each: so
// nobody is given a repository because somebody has asked for it in a pull request.
func Modules(tx *db.Tx, hosts *codehost.Hosts, id string) (out []Module, err error) {
	builtIn := strings.TrimSuffix(Key(hosts, codehost.Repo{Host: codehost.BuiltIn, Owner: "o", Name: "r"}), "/o/r")
	first, ok, err := byIDAnywhere.Maybe(tx, id)
	if err != nil || !ok {
		return nil, err
	}
	seen := map[string]bool{first.ID: true}
	level := []row{first}
	for range gitmodules.Deepest {
		var next []row
		for _, r := range level {
			super := Key(hosts, r.ref().HostRepo())
			for _, m := range gitmodules.Parse([]byte(textOf(r.Gitmodules))) {
				key := gitmodules.Of(super, m.URL)
				at, ok := placeOf(key, builtIn)
				if !ok {
					continue
				}
				found, ok, err := byPlace.Maybe(tx, at.Host, at.Owner, at.Name)
				if err != nil {
					return nil, err
				}
				if !ok || found.AccountID != first.AccountID || found.GoneAt != nil || seen[found.ID] {
					continue
				}
				if seen[found.ID] = true; len(out) == gitmodules.Most {
					return out, nil
				}
				next, out = append(next, found), append(out, Module{Ref: found.ref(), Key: key})
			}
		}
		level = next
	}
	return out, nil
}

// borrowed is the access of an attempt to a repository that is not its own: it reads it if
// it is a submodule.
func (s *Service) borrowed(ctx context.Context, a Attempt, own row, r codehost.Repo) (out codehost.Access, err error) {
	if a.Late || r == (codehost.Repo{}) || !own.ref().Policy.Checkout.Submodules {
		return out, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = codehost.Access{}
		may, err := s.Attempts.Borrows(tx, a)
		if err != nil || !may {
			return err
		}
		all, err := Modules(tx, s.Hosts, own.ID)
		for _, m := range all {
			at := m.Ref.HostRepo()
			if at.Host == r.Host && at.Owner == r.Owner && at.Name == r.Name {
				out = codehost.Access{Read: true, Who: a.Who, Credential: a.Who, Account: own.AccountID, Person: a.Person}
			}
		}
		return err
	})
	return out, err
}
