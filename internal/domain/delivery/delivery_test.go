package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var stateOf = db.Q[struct {
	State string
	Tries int64
}](`SELECT state, tries FROM host_deliveries WHERE guid = $1`)

// yard is the service beside a host whose deliveries are signed with "sig" and tell one
// event for each word of their body.
type yard struct {
	*Service
	kernel *due.Kernel
	t      *testing.T
	ctx    context.Context

	mu      sync.Mutex
	now     time.Time
	applied []string
	fails   error  // of Apply
	poison  string // that Apply always refuses
	changed []codehost.Event
	since   time.Time // of the marks
	asked   int       // how often a repository was asked about
	again   int       // how often failed deliveries were asked for
}

func onBoth(t *testing.T, fn func(*yard)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0)}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			y.ctx = policy.With(t.Context(), policy.Actor{Credential: policy.System})
			y.Service, y.kernel = y.node(d)
			y.write(func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere"})
			})
			fn(y)
		})
	}
}

func (y *yard) node(d *db.DB) (*Service, *due.Kernel) {
	hosts := codehost.NewHosts(map[string]codehost.Sides{
		codehost.BuiltIn: {Host: &builtin.Host{}, Forge: codehost.NoForge{}},
		"elsewhere":      {Host: &builtin.Host{}, Forge: codehost.NoForge{}, Feed: y},
	})
	hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
	k := due.New(due.Config{DB: d, Hub: hub, Logger: log})
	return New(Needs{DB: d, Hub: hub, Due: k, Hosts: hosts, Receiver: y, Logger: log, Clock: y.clock}), k
}

// pass applies what is due.
func (y *yard) pass() {
	y.t.Helper()
	if err := y.kernel.Drain(y.ctx); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) wait(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(db.WithAccount(y.ctx, "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

// Accept implements codehost.Feed.
func (*yard) Accept(header func(string) string, body []byte) (codehost.Delivery, error) {
	switch {
	case header("X-App") != "ours":
		return codehost.Delivery{}, codehost.ErrForeign
	case header("X-Signature") != "sig":
		return codehost.Delivery{}, codehost.ErrForged
	}
	return codehost.Delivery{GUID: header("X-GUID"), Kind: cmp.Or(header("X-Kind"), "words"), Body: body}, nil
}

type word struct {
	codehost.Happening
	text string
}

// Events implements codehost.Feed.
func (*yard) Events(d codehost.Delivery) (out []codehost.Event, err error) {
	for w := range strings.FieldsSeq(strings.Trim(string(d.Body), `"`)) {
		out = append(out, word{text: w})
	}
	return out, nil
}

// Apply implements Receiver.
func (y *yard) Apply(_ context.Context, host string, e codehost.Event) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.fails != nil {
		return y.fails
	}
	switch e := e.(type) {
	case codehost.PullChanged:
		y.applied = append(y.applied, fmt.Sprint("pull ", e.Pull.Number))
		return nil
	case codehost.ThreadChanged:
		y.applied = append(y.applied, fmt.Sprint("threads of ", e.Number, " since ", e.At.Unix()))
		return nil
	}
	if e.(word).text == y.poison {
		return errors.New("it cannot be applied")
	}
	y.applied = append(y.applied, host+" "+e.(word).text)
	return nil
}

// Installations implements codehost.Feed.
func (*yard) Installations(context.Context, string) ([]codehost.Installation, string, error) {
	return nil, "", nil
}

// InstalledRepos implements codehost.Feed.
func (*yard) InstalledRepos(context.Context, string, string) ([]codehost.RepoInfo, string, error) {
	return nil, "", nil
}

// Changed implements codehost.Feed.
func (y *yard) Changed(_ context.Context, _ codehost.Repo, m codehost.Marks) (codehost.Marks, []codehost.Event, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked++
	m.Turn++
	m.Since = y.since
	return m, y.changed, nil
}

// Redeliver implements codehost.Feed.
func (y *yard) Redeliver(context.Context, time.Time) (int, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.again++
	return 1, nil
}

// headers are the headers of a call.
type headers map[string]string

func (headers) Path(string) string          { return "" }
func (h headers) Header(name string) string { return h[name] }

// deliver sends a delivery, and answers the status.
func (y *yard) deliver(guid, body string, more ...string) int {
	y.t.Helper()
	h := headers{"X-App": "ours", "X-Signature": "sig", "X-GUID": guid}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	row := y.Ops()[0]
	p := &op.Pipeline{BaseURL: "http://yard"}
	a := p.Do(y.ctx, &op.Call{Op: &row, Sent: op.Sent{
		Texts: h, Body: strings.NewReader(body), Length: int64(len(body)), ContentType: "application/json",
	}})
	return a.Status
}

// A delivery is stored once, and applied once.
func TestDelivered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for i, want := range []int{200, 200} {
			if got := y.deliver("1", `"a b"`); got != want {
				t.Fatalf("delivery %d is answered %d", i, got)
			}
		}
		y.deliver("2", `""`)
		y.pass()
		y.pass()
		if !slices.Equal(y.applied, []string{"elsewhere a", "elsewhere b"}) {
			t.Errorf("%q", y.applied)
		}
		for guid, want := range map[string]string{"1": Applied, "2": Ignored} {
			y.write(func(tx *db.Tx) error {
				s, err := stateOf.One(tx, guid)
				if s.State != want {
					t.Errorf("%s is %s", guid, s.State)
				}
				return err
			})
		}
	})
}

// What a host has told of installations and repositories is known from when it came, before it
// is applied.
func TestToldSince(t *testing.T) {
	t.Parallel()
	for kind, tells := range map[string]bool{
		"installation": true, "installation_repositories": true, "repository": true, "push": false, "words": false,
	} {
		onBoth(t, func(y *yard) {
			at := y.clock()
			y.deliver("1", `"a"`, "X-Kind", kind)
			y.write(func(tx *db.Tx) error {
				for _, c := range []struct {
					host  string
					since time.Time
					want  bool
				}{{"elsewhere", at, tells}, {"elsewhere", at.Add(time.Second), false}, {"other", at, false}} {
					if told, err := (Told{}).Since(tx, c.host, c.since); err != nil || told != c.want {
						t.Errorf("%s at %s since %s: %v, %v", kind, c.host, c.since, told, err)
					}
				}
				return nil
			})
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for name, c := range map[string]struct {
			more []string
			want int
		}{
			"forged":          {[]string{"X-Signature", "other"}, 401},
			"of another App":  {[]string{"X-App", "theirs"}, 401},
			"without headers": {[]string{"X-App", "", "X-Signature", "", "X-GUID", ""}, 401},
		} {
			if got := y.deliver(name, `"a"`, c.more...); got != c.want {
				t.Errorf("%s: %d", name, got)
			}
		}
		if got := y.deliver("big", `"`+strings.Repeat("a", maxBody)+`"`); got != 413 {
			t.Errorf("too large: %d", got)
		}
		y.pass()
		if len(y.applied) != 0 {
			t.Errorf("%q", y.applied)
		}
	})
}

// A delivery that cannot be applied is tried again, given up, and can be replayed.
func TestFailsAndReplayed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.fails = errors.New("no")
		y.deliver("1", `"a"`)
		for range 3 * maxTries {
			y.pass()
			y.wait(longest)
		}
		y.write(func(tx *db.Tx) error {
			s, err := stateOf.One(tx, "1")
			if s.State != Failed || s.Tries != maxTries {
				t.Errorf("%+v", s)
			}
			return err
		})
		y.fails = nil
		operator := policy.With(y.ctx, policy.Actor{Credential: policy.Operator, UserID: "u"})
		for _, want := range []bool{true, false} {
			if out, err := y.replay(operator, replayIn{GUID: "1"}); err != nil || out.Replayed != want {
				t.Errorf("%+v, %v", out, err)
			}
		}
		y.pass()
		if len(y.applied) != 1 {
			t.Errorf("%q", y.applied)
		}
		if _, err := y.replay(operator, replayIn{GUID: "2"}); err == nil {
			t.Error("an unknown one is replayed")
		}
	})
}

// Nodes share what is stored.
func TestNodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		const n = 50
		for i := range n {
			y.deliver(fmt.Sprint(i), fmt.Sprintf(`"w%d"`, i))
		}
		_, other := y.node(y.DB)
		var both sync.WaitGroup
		both.Go(y.pass)
		both.Go(func() {
			if err := other.Drain(y.ctx); err != nil {
				y.t.Error(err)
			}
		})
		both.Wait()
		slices.Sort(y.applied)
		if got := len(slices.Compact(y.applied)); got != n || len(y.applied) != n {
			t.Errorf("%d of %d were applied, %d times", got, n, len(y.applied))
		}
	})
}

// The sweep asks about each repository that is due, on one node.
func TestSweep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { return Watch(tx, "r1") })
		y.changed = []codehost.Event{word{text: "lost"}}
		other, _ := y.node(y.DB)
		y.Look(y.ctx)
		other.Look(y.ctx)
		if y.asked != 1 || y.again != 1 || len(y.applied) != 1 {
			t.Errorf("asked %d times, for deliveries %d times, applied %q", y.asked, y.again, y.applied)
		}
		y.poison, y.changed = "bad", []codehost.Event{word{text: "bad"}, word{text: "good"}}
		y.wait(swept)
		y.Look(y.ctx)
		if !slices.Equal(y.applied, []string{"elsewhere lost", "elsewhere good"}) {
			t.Errorf("beside what cannot be applied: %q", y.applied)
		}
		y.asked, y.again, y.changed = 1, 1, nil
		y.wait(swept)
		other.Look(y.ctx)
		if y.asked != 2 || y.again != 2 {
			t.Errorf("asked %d times, for deliveries %d times", y.asked, y.again)
		}
		y.write(func(tx *db.Tx) error {
			off := seed.Repo{ID: "r2", Account: "acme", Name: "off", Host: "elsewhere", Disabled: true}
			return errors.Join(seed.Add(tx, off), Watch(tx, "r2"))
		})
		y.Look(y.ctx)
		if y.asked != 2 {
			t.Error("a disabled repository is asked about")
		}
	})
}

// Of an open pull request that a sweep finds, the threads are to be read, once there was a
// sweep before.
func TestSweepHears(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { return Watch(tx, "r1") })
		y.changed = []codehost.Event{
			codehost.PullChanged{Pull: codehost.Pull{Number: 7, Open: true}}, codehost.PullChanged{Pull: codehost.Pull{Number: 8}},
		}
		y.since = time.Unix(1_700_000_000, 0)
		y.Look(y.ctx)
		y.wait(swept)
		y.Look(y.ctx)
		if want := []string{"pull 7", "pull 8", "pull 7", "threads of 7 since 1700000000", "pull 8"}; !slices.Equal(y.applied, want) {
			y.t.Errorf("%q", y.applied)
		}
	})
}

// A clock that was set back puts nothing off.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { return Watch(tx, "r1") })
		y.Look(y.ctx)
		y.fails = errors.New("no")
		y.deliver("1", `"a"`)
		y.pass()
		y.fails = nil
		y.wait(-48 * time.Hour)
		y.pass()
		y.Look(y.ctx)
		if len(y.applied) != 0 || y.asked != 1 {
			t.Fatal("nothing was put off")
		}
		y.write(ClockSetBack)
		y.wait(2 * time.Second) // the wait that was begun anew
		y.pass()
		y.Look(y.ctx)
		if len(y.applied) != 1 || y.asked != 2 || y.again != 2 {
			t.Errorf("%q, %d, %d", y.applied, y.asked, y.again)
		}
	})
}

// What waits to be applied is what the queue has, whatever became of it.
func TestRowsAndEntries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		agree := func(when string) {
			y.t.Helper()
			y.write(func(tx *db.Tx) error {
				astray, err := y.kernel.Astray(tx)
				if len(astray) > 0 {
					t.Errorf("%s: %q", when, astray)
				}
				return err
			})
		}
		y.poison = "bad"
		for i, body := range []string{`"good"`, `"bad"`, `""`} {
			y.deliver(fmt.Sprint(i), body)
		}
		agree("stored")
		y.pass()
		agree("tried once")
		for range 3 * maxTries {
			y.wait(longest)
			y.pass()
		}
		agree("given up")
		operator := policy.With(y.ctx, policy.Actor{Credential: policy.Operator, UserID: "u"})
		if _, err := y.replay(operator, replayIn{GUID: "1"}); err != nil {
			t.Fatal(err)
		}
		agree("replayed")
	})
}
