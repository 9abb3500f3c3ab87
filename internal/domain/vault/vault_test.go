package vault

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	stored = db.Q[string](`SELECT sealed FROM secrets WHERE account_id = $1 ORDER BY name`)
	swap   = db.S(`UPDATE secrets SET sealed = $2 WHERE name = $1`)
)

// noRepos finds no repository: these tests name repositories by id.
type noRepos struct{}

func (noRepos) ID(*db.Tx, string, string) (string, bool, error) { return "", false, nil }

func onBoth(t *testing.T, fn func(*testing.T, *Service, func(func(*db.Tx) error) error)) {
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in := func(fn func(*db.Tx) error) error { return d.Write(db.WithAccount(t.Context(), "acme"), fn) }
		for _, acct := range []string{"acme", "rival"} {
			if err := in(func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: acct}); return err }); err != nil {
				t.Fatal(err)
			}
		}
		fn(t, New(Needs{DB: d, Ring: ring, Repos: noRepos{}, Guard: dial.NewGuard(nil)}), in)
	})
}

func TestForRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, in func(func(*db.Tx) error) error) {
		var got map[string]string
		err := in(func(tx *db.Tx) error {
			for _, it := range []Item{
				{Name: "A", Value: "the account's"},
				{Name: "B", Value: "the account's"},
				{RepoID: "r1", Name: "A", Value: "the repository's"},
				{RepoID: "r1", Name: "A", Environment: "eu-1.staging", Value: "for staging"},
				{RepoID: "r2", Name: "C", Value: "another repository's"},
				{RepoID: "r1", Name: "KEY", Value: "of a host", Delivery: protocol.DeliverBroker, Hosts: []string{"api.example.com"}},
			} {
				if err := s.Put(tx, "test", it); err != nil {
					return err
				}
			}
			tx.Account = "rival"
			if err := s.Put(tx, "test", Item{RepoID: "r1", Name: "A", Value: "a rival's"}); err != nil {
				return err
			}
			tx.Account = "acme"
			list, err := s.ForRun(tx, "r1")
			got = map[string]string{}
			for _, v := range list {
				got[v.Name] = string(v.Value) + " " + v.Prefix
			}
			sealed, err2 := stored.All(tx, "acme")
			for _, text := range sealed {
				if strings.Contains(text, "account") || !strings.HasPrefix(text, "v2.") {
					t.Errorf("stored as %q", text)
				}
			}
			if err == nil {
				err = err2
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"A": "the repository's ", "B": "the account's ", "A__EU_1_STAGING": "for staging ",
			"KEY": "of a host Bearer "}
		if len(got) != len(want) {
			t.Errorf("a run gets %v", got)
		}
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s is %q, want %q", name, got[name], v)
			}
		}
		// A value opens only where it was put.
		err = in(func(tx *db.Tx) error {
			sealed, err := stored.All(tx, "rival")
			if err != nil {
				return err
			}
			if _, err := swap.Exec(tx, "B", sealed[0]); err != nil {
				return err
			}
			_, err = s.ForRun(tx, "r1")
			return err
		})
		if err == nil {
			t.Error("a value that was moved opens")
		}
	})
}

func TestVaultsAreBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, in func(func(*db.Tx) error) error) {
		put := func(name string) error {
			return in(func(tx *db.Tx) error {
				return s.Put(tx, "test", Item{Name: name, Value: strings.Repeat("x", maxValue)})
			})
		}
		for _, name := range []string{"A", "B", "C", "A"} {
			if err := put(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := put("D"); fault.From(err).Slug != "vault-full" {
			t.Error("a vault takes more than it may:", err)
		}
		err := in(func(tx *db.Tx) error {
			n, err := size.One(tx, tx.Account, "")
			if n.Count != 3 {
				t.Errorf("what was refused is kept: %+v", n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "1A", "A-B", "A B", "PATH", "home", "LD_PRELOAD", "https_proxy", "GIT_SSH_COMMAND",
		"YARDMASTER_REPORT",
		"node_options"} {
		if NameFault(name) == "" {
			t.Errorf("%q may be a secret's name", name)
		}
	}
	for _, name := range []string{"A", "DATABASE_URL", "npm_token", "_X9", "GITHUB_TOKEN"} {
		if why := NameFault(name); why != "" {
			t.Errorf("%q may not be a secret's name: %s", name, why)
		}
	}
}
