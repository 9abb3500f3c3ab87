package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

const host = "host:one"

var places = db.Q[struct {
	AccountID  string
	Owner      string
	Name       string
	Enabled    bool
	HostRepoID string
}](`SELECT account_id, owner, name, enabled, host_repo_id FROM repos ORDER BY host_repo_id, name`)

// yard is the service with a maker that makes what it is told to.
type yard struct {
	*Service
	t         *testing.T
	ctx       context.Context // of ada, an operator
	now       time.Time
	code      string // that Convert takes
	app       App
	connected []string
	toldAt    time.Time // when the host has told something last
}

func onBoth(t *testing.T, fn func(*yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0), code: "good", app: App{
				ID: "7", Slug: "yard", OwnerID: "100", OwnerLogin: "Acme", Secrets: Secrets{Key: "pem", WebhookSecret: "hush"},
			}}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return y.now }})
			y.Service = y.node(d, "")
			y.ctx = as("ada")
			y.write(func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ada"})
			})
			fn(y)
		})
	}
}

// as is the context of a person who acts for acme.
func as(user string) context.Context {
	return policy.With(
		db.WithAccount(context.Background(), "acme"),
		policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme"},
	)
}

func (y *yard) node(d *db.DB, home string) *Service {
	hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: &builtin.Host{}, Forge: codehost.NoForge{}}})
	return New(Needs{
		DB: d, Hub: event.NewHub(), Ring: seal.New(), Hosts: hosts, Maker: y, Logger: slog.New(slog.DiscardHandler), Seats: 2, Home: home,
		Owners: []string{"new"},
		Told:   y,
	})
}

// Since implements Told.
func (y *yard) Since(_ *db.Tx, _ string, at time.Time) (bool, error) {
	return !y.toldAt.Before(at), nil
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(db.WithAccount(context.Background(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

// Name implements Maker.
func (*yard) Judge(context.Context, string) error { return nil }

func (*yard) Name(address string) (string, error) {
	if address != "https://one" {
		return "", fault.Field("address", "must be https://one")
	}
	return host, nil
}

// Permissions implements Maker.
func (*yard) Permissions() []Permission {
	return []Permission{{Name: "contents: write", Why: "to push"}, {Name: "workflows: write", Why: "to push them", Switch: "workflows"}}
}

// Hidden implements Maker.
func (*yard) Hidden() string { return "" }

// Form implements Maker.
func (*yard) Form(address, organisation, state string, s Switches) (action, manifest string, err error) {
	return address + "/new?state=" + state, `{"name": "yard"}`, nil
}

// Convert implements Maker.
func (y *yard) Convert(_ context.Context, _, code string) (App, error) {
	if code != y.code {
		return App{}, errors.New("no such code")
	}
	y.code = ""
	return y.app, nil
}

// Connect implements Maker.
func (y *yard) Connect(name, _ string, a App, s Switches) (codehost.Sides, error) {
	y.connected = append(y.connected, name+" "+a.Key+" "+a.WebhookSecret)
	return codehost.Sides{Host: &builtin.Host{}, Forge: codehost.NoForge{}}, nil
}

// InstallAddress implements Maker.
func (*yard) InstallAddress(address string, a App) string { return address + "/install/" + a.Slug }

// begun begins a set-up, and answers its state.
func (y *yard) begun(ctx context.Context) string {
	y.t.Helper()
	f, err := y.begin(ctx, "https://one", "", Switches{Workflows: true})
	if err != nil {
		y.t.Fatal(err)
	}
	_, state, _ := strings.Cut(f.Action, "state=")
	return state
}

// A set-up is ended once, within the hour, by the person who began it.
func TestSetup(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		refused := func(what string, err error, slug string) {
			t.Helper()
			if f := fault.From(err); err == nil || f.Slug != slug {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := y.complete(as("eve"), "good", y.begun(y.ctx))
		refused("by somebody else", err, "setup-unknown")
		_, err = y.complete(y.ctx, "good", "guess")
		refused("a guess", err, "setup-unknown")
		state := y.begun(y.ctx)
		y.now = y.now.Add(setupFor)
		_, err = y.complete(y.ctx, "good", state)
		refused("too late", err, "setup-unknown")
		state = y.begun(y.ctx)
		_, err = y.complete(y.ctx, "bad", state)
		refused("a code that is no good", err, "setup-refused")
		_, err = y.complete(y.ctx, "good", state)
		refused("used up", err, "setup-unknown")
		_, err = y.begin(y.ctx, "https://two", "", Switches{})
		refused("another address", err, "invalid")

		to, err := y.complete(y.ctx, "good", y.begun(y.ctx))
		if err != nil || to != "https://one/install/yard" {
			t.Fatal(to, err)
		}
		for range 2 {
			if err := y.Service.Connect(y.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(y.connected, []string{host + " pem hush"}) {
			t.Errorf("connected %q", y.connected)
		}
		y.write(func(tx *db.Tx) error {
			rows, err := all.All(tx)
			if err == nil && (len(rows) != 1 || strings.Contains(rows[0].Sealed, "hush") || rows[0].AccountID != "acme") {
				t.Errorf("%+v", rows)
			}
			return err
		})
	})
}

func (y *yard) told(i codehost.Installation, added []codehost.RepoInfo, removed ...codehost.Repo) {
	y.t.Helper()
	e := codehost.InstallationEvent{Installation: i, Added: added, Removed: removed}
	if err := y.Installation(context.Background(), host, e); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) want(what string, want ...string) {
	y.t.Helper()
	var got []string
	y.write(func(tx *db.Tx) error {
		rows, err := places.All(tx)
		for _, r := range rows {
			login, err := people.AccountLogin(tx, r.AccountID)
			if err != nil {
				return err
			}
			line := login + ": " + r.HostRepoID + " " + r.Owner + "/" + r.Name
			if name, rest, cut := strings.Cut(line, "~"); cut {
				line = name + "~" + strings.Repeat("", len(rest))
			}
			if r.Enabled {
				line += " enabled"
			}
			got = append(got, line)
		}
		return err
	})
	if !slices.Equal(got, want) {
		y.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// at is a repository of the host.
func at(id, name string) codehost.Repo {
	owner, name, _ := strings.Cut(name, "/")
	return codehost.Repo{Host: host, ID: id, Owner: owner, Name: name}
}

func info(id, name string) codehost.RepoInfo { return codehost.RepoInfo{Repo: at(id, name)} }

func (y *yard) changed(e codehost.RepoEvent) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return repo.Changed(tx, e) })
}

// Repositories come, change and go with what the host tells, in any order and twice.
func TestInstallation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { _, err := bind.Exec(tx, host, "100", "acme"); return err })
		i := codehost.Installation{ID: "1", Owner: codehost.User{Login: "Acme", ID: "100"}}
		two := []codehost.RepoInfo{info("11", "Acme/web"), info("12", "Acme/app")}
		for range 2 {
			y.told(i, two)
		}
		y.want("installed", "acme: 11 Acme/web enabled", "acme: 12 Acme/app enabled")
		y.changed(codehost.RepoEvent{Info: info("11", "Acme/shop"), Was: "Acme/web"})
		y.changed(codehost.RepoEvent{Info: info("13", "Acme/unknown")})
		y.want("renamed", "acme: 11 Acme/shop enabled", "acme: 12 Acme/app enabled")
		y.changed(codehost.RepoEvent{Info: info("12", "Acme/shop")}) // the news of 11 is yet to come
		y.changed(codehost.RepoEvent{Info: info("11", "Acme/web")})
		y.want("names change hands", "acme: 11 Acme/web enabled", "acme: 12 Acme/shop enabled")
		y.told(i, nil, at("12", "Acme/shop"))
		y.want("taken out", "acme: 11 Acme/web enabled", "acme: 12 Acme/shop")
		y.told(i, two[1:])
		y.want("put back", "acme: 11 Acme/web enabled", "acme: 12 Acme/app enabled")
		archived := info("12", "Acme/app")
		archived.Archived = true
		y.changed(codehost.RepoEvent{Info: archived})
		y.want("archived", "acme: 11 Acme/web enabled", "acme: 12 Acme/app")
		y.changed(codehost.RepoEvent{Info: info("12", "Acme/app")})
		suspended := i
		suspended.Suspended = true
		y.told(suspended, nil)
		y.want("suspended", "acme: 11 Acme/web", "acme: 12 Acme/app")
		y.told(i, two)
		y.want("lifted", "acme: 11 Acme/web enabled", "acme: 12 Acme/app enabled")
		y.changed(codehost.RepoEvent{Info: info("11", "Acme/web"), Gone: true})
		y.want("deleted", "acme: 11 Acme/web", "acme: 12 Acme/app enabled")
		gone := i
		gone.Gone = true
		y.told(gone, nil)
		y.told(gone, nil)
		y.want("removed", "acme: 11 Acme/web", "acme: 12 Acme/app")
	})
}

// installed is a feed of a host where the App has two installations, with three
// repositories each, a page at a time.
type installed struct{ codehost.Feed }

// Installations implements codehost.Feed.
func (installed) Installations(_ context.Context, cursor string) ([]codehost.Installation, string, error) {
	if cursor == "" {
		return []codehost.Installation{{ID: "1", Owner: codehost.User{Login: "Acme", ID: "100"}}}, "more", nil
	}
	return []codehost.Installation{{ID: "2", Owner: codehost.User{Login: "Other", ID: "200"}, Suspended: true}}, "", nil
}

// InstalledRepos implements codehost.Feed.
func (installed) InstalledRepos(_ context.Context, installation, cursor string) ([]codehost.RepoInfo, string, error) {
	if cursor == "" {
		return []codehost.RepoInfo{info(installation+"1", "Acme/a"), info(installation+"2", "Acme/b")}, "more", nil
	}
	return []codehost.RepoInfo{info(installation+"3", "Acme/c")}, "", nil
}

// What was installed before the server was connected is read from the host.
func TestReconcile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { _, err := bind.Exec(tx, host, "100", "acme"); return err })
		y.Hosts.Set(host, codehost.Sides{Host: &builtin.Host{}, Forge: codehost.NoForge{}, Feed: installed{}})
		for range 2 {
			if err := y.Reconcile(context.Background(), host); err != nil {
				y.t.Fatal(err)
			}
		}
		y.want("read", "acme: 11 Acme/a enabled", "acme: 12 Acme/b enabled", "acme: 13 Acme/c enabled")
	})
}

// An installation that the host does not list any more has ended, although no delivery told
// so. One that is younger than the list stays.
func TestReconcileEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { _, err := bind.Exec(tx, host, "300", "acme"); return err })
		y.Hosts.Set(host, codehost.Sides{Host: &builtin.Host{}, Forge: codehost.NoForge{}, Feed: installed{}})
		y.told(codehost.Installation{ID: "9", Owner: codehost.User{Login: "Acme", ID: "300"}}, []codehost.RepoInfo{info("91", "Old/a")})
		for _, want := range []string{"acme: 91 Old/a enabled", "acme: 91 Old/a"} {
			if err := y.Reconcile(context.Background(), host); err != nil && !errors.Is(err, errNotYet) {
				y.t.Fatal(err)
			}
			var got []string
			y.write(func(tx *db.Tx) error {
				rows, err := places.All(tx)
				for _, r := range rows {
					if r.HostRepoID == "91" && r.Enabled {
						got = append(got, "acme: 91 Old/a enabled")
					} else if r.HostRepoID == "91" {
						got = append(got, "acme: 91 Old/a")
					}
				}
				return err
			})
			if !slices.Equal(got, []string{want}) {
				y.t.Errorf("%q, want %q", got, want)
			}
			y.now = y.now.Add(2 * newerThan)
		}
	})
}

// Two deliveries of the first installation of an owner come at the same time: the owner has
// one account, and both are applied.
func TestInstalledAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for n := range 10 {
			owner := codehost.User{Login: fmt.Sprint("owner", n), ID: fmt.Sprint(1000 + n)}
			told := make(chan error, 2)
			for k := range 2 {
				at := fmt.Sprintf("%d%d", n, k)
				e := codehost.InstallationEvent{
					Installation: codehost.Installation{ID: fmt.Sprint(n), Owner: owner},
					Added:        []codehost.RepoInfo{info(at, owner.Login+"/r"+at), info(fmt.Sprint(n), owner.Login+"/same")},
				}
				go func() { told <- y.Installation(context.Background(), host, e) }()
			}
			if err := errors.Join(<-told, <-told); err != nil {
				y.t.Fatal(err)
			}
		}
		y.write(func(tx *db.Tx) error {
			rows, err := places.All(tx)
			accounts := map[string]string{}
			for _, r := range rows {
				if was, ok := accounts[r.Owner]; ok && was != r.AccountID {
					y.t.Errorf("%s has two accounts", r.Owner)
				}
				accounts[r.Owner] = r.AccountID
			}
			if len(rows) != 30 || len(accounts) != 10 {
				y.t.Errorf("%d repositories of %d owners", len(rows), len(accounts))
			}
			for n := range 10 {
				bound, err := accountOf.One(tx, host, fmt.Sprint(1000+n))
				if err != nil || bound != accounts[fmt.Sprint("owner", n)] {
					y.t.Errorf("owner%d is bound to %s, and has repositories of %s: %v", n, bound, accounts[fmt.Sprint("owner", n)], err)
				}
			}
			return err
		})
	})
}

// An owner who is called like an account does not come into it, and a repository that
// is given to another owner leaves its account.
func TestForeignOwners(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { _, err := bind.Exec(tx, host, "100", "acme"); return err })
		y.told(codehost.Installation{ID: "1", Owner: codehost.User{Login: "Acme", ID: "100"}}, []codehost.RepoInfo{info("11", "Acme/web")})
		y.told(
			codehost.Installation{ID: "2", Owner: codehost.User{Login: "rival", ID: "200"}},
			[]codehost.RepoInfo{info("21", "rival/app")},
		)
		y.want("a name proves nothing", "acme: 11 Acme/web enabled", "rival-2: 21 rival/app enabled")
		y.told(
			codehost.Installation{ID: "2", Owner: codehost.User{Login: "rival", ID: "200"}},
			[]codehost.RepoInfo{info("11", "rival/web")},
		)
		y.want("given away", "acme:  Acme/web~", "rival-2: 11 rival/web enabled", "rival-2: 21 rival/app enabled")
		early := y.node(y.DB, "later")
		if err := early.Installation(context.Background(), host, codehost.InstallationEvent{
			Installation: codehost.Installation{ID: "4", Owner: codehost.User{Login: "New", ID: "400"}},
		}); !errors.Is(err, errNotYet) {
			y.t.Errorf("a home that is yet to be made: %v", err)
		}
		other := y.node(y.DB, "acme")
		err := other.Installation(context.Background(), host, codehost.InstallationEvent{
			Installation: codehost.Installation{
				ID:    "3",
				Owner: codehost.User{Login: "new", ID: "300"},
			}, Added: []codehost.RepoInfo{info("31", "new/x")},
		})
		if err != nil {
			y.t.Fatal(err)
		}
		// Anybody installs a public App; what nobody has let in by name stays out, also when
		// its installations are read, and when it comes back.
		for _, login := range []string{"stranger", "newer", "acme", "", "new,acme"} {
			if err := other.Installation(context.Background(), host, codehost.InstallationEvent{
				Installation: codehost.Installation{ID: "5", Owner: codehost.User{Login: login, ID: "500"}},
				Added:        []codehost.RepoInfo{info("51", login+"/x")},
			}); err != nil {
				y.t.Errorf("%q: %v", login, err)
			}
		}
		y.want("a home", "acme:  Acme/web~", "rival-2: 11 rival/web enabled", "rival-2: 21 rival/app enabled", "acme: 31 new/x enabled")
	})
}
