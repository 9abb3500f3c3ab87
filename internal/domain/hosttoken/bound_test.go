package hosttoken

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// far lets every token push everywhere, and has something happen while it is asked.
type far struct {
	codehost.People

	meanwhile func()
}

// CheckToken implements codehost.People.
func (f *far) CheckToken(context.Context, string, codehost.Repo) (codehost.PersonToken, error) {
	f.meanwhile()
	return codehost.PersonToken{User: codehost.User{Login: "ann"}, Read: true, Push: true}, nil
}

// named has every repository that somebody names.
type named struct{}

func (named) ByName(_ *db.Tx, host, owner, name string) (Repo, bool, error) {
	return Repo{ID: name, Account: "acme", At: codehost.Repo{Host: host, Owner: owner, Name: name}}, true, nil
}
func (named) Newest(*db.Tx, string, int) ([]Repo, error) { return nil, nil }
func (named) ByIDs(tx *db.Tx, ids []string) (out []Repo, err error) {
	for _, name := range ids {
		r, _, _ := named{}.ByName(tx, "elsewhere", "acme", name)
		out = append(out, r)
	}
	return out, nil
}
func (named) At(*db.Tx, codehost.Repo) (Repo, bool, error) { return Repo{}, false, nil }

// A person binds so many repositories and no more, and none with a token that was replaced
// while its host was asked about it.
func TestBindingsAreBounded(t *testing.T) {
	t.Parallel()
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	host, err := builtin.New(builtin.Config{Name: "elsewhere", Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ctx := policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.PAT, UserID: "ann", AccountID: "acme"})
		there := &far{meanwhile: func() {}}
		s := New(Needs{
			DB: d, Ring: ring, Repos: named{}, Logger: slog.New(slog.DiscardHandler),
			Hosts: codehost.NewHosts(map[string]codehost.Sides{"elsewhere": {Host: host, Forge: builtin.Forge{}, People: there}}),
		})
		if err := d.Write(ctx, func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ann"})
		}); err != nil {
			t.Fatal(err)
		}
		store := func() {
			if _, err := s.set(ctx, setIn{Token: "a-token-of-ann"}); err != nil {
				t.Error(err)
			}
		}
		bind := func(i int) string {
			if _, err := s.bind(ctx, bindIn{Repo: fmt.Sprint("acme/r", i)}); err != nil {
				return fault.From(err).Slug
			}
			return ""
		}
		store()
		for i := range mostBindings {
			if slug := bind(i); slug != "" {
				t.Fatal(i, slug)
			}
		}
		if slug := bind(mostBindings); slug != "too-many-bindings" {
			t.Errorf("one more: %q", slug)
		}
		if slug := bind(0); slug != "" {
			t.Errorf("one that there is: %q", slug)
		}
		there.meanwhile = func() { there.meanwhile = func() {}; store() }
		if slug := bind(0); slug != "token-replaced" {
			t.Errorf("with a token that was replaced: %q", slug)
		}
	})
}
