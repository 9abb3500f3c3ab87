package rollout

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

const target = "linux/amd64"

// yard is a service on a database, with boxes, releases and runs that the test tells.
type yard struct {
	*Service
	t      *testing.T
	mu     sync.Mutex
	at     time.Time
	boxes  []box.Standing
	builds []release.Build
	runs   []Outcome
	sent   map[string][]protocol.Command // by box
	off    error                         // of Stock
	own    []release.Build               // that PublishOwn adds
}

func (y *yard) now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) pass(d time.Duration) {
	y.t.Helper()
	y.mu.Lock()
	y.at = y.at.Add(d)
	y.mu.Unlock()
	duetest.Pass(y.t.Context(), y.t, y.Due)
}

func (y *yard) Standings(*db.Tx) ([]box.Standing, error)            { return y.boxes, nil }
func (y *yard) Builds(_ *db.Tx, of string) ([]release.Build, error) { return y.of(of), nil }
func (y *yard) Stock(context.Context, string, string) error         { return y.off }
func (y *yard) Outcomes(_ *db.Tx, s time.Time) ([]Outcome, error)   { return y.ended(s), nil }
func (y *yard) Signers(string) []ed25519.PrivateKey                 { return []ed25519.PrivateKey{key} }
func (y *yard) Enqueue(_ *db.Tx, id string, c protocol.Command) error {
	y.sent[id] = append(y.sent[id], c)
	return nil
}

var key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))

func (y *yard) of(channel string) (out []release.Build) {
	for _, b := range y.builds {
		if b.Channel == channel {
			out = append(out, b)
		}
	}
	return out
}

func (y *yard) ended(since time.Time) (out []Outcome) {
	for _, r := range y.runs {
		if !r.Began.Before(since) {
			out = append(out, r)
		}
	}
	return out
}

func build(version, oldest string) release.Build {
	return release.Build{Here: true, Update: protocol.Update{
		Release: "r-" + version, Channel: release.BuiltIn, Version: version, Target: target, Oldest: oldest,
	}}
}

func standing(id, version string) box.Standing {
	return box.Standing{ID: id, Name: id, State: box.Enrolled, Presence: box.Online, Version: version, Target: target,
		Update: &protocol.UpdateReport{State: protocol.UpdateNone, Keys: 1}}
}

// onBoth begins with so many boxes of v1.0.0, and the release v1.1.0.
func onBoth(t *testing.T, boxes int, fn func(*yard)) {
	t.Helper()
	y := &yard{}
	dbtest.RunWith(t, db.Options{Clock: y.now}, func(t *testing.T, d *db.DB) {
		*y = yard{t: t, at: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), sent: map[string][]protocol.Command{},
			builds: []release.Build{build("v1.1.0", "")}}
		y.Service = New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.DiscardHandler), Ring: y, Boxes: y,
			Releases: y, Runs: y})
		y.write(func(tx *db.Tx) error {
			rows := []seed.Row{seed.Account{ID: "acme"}, seed.Account{ID: "rival"}}
			for i := range boxes {
				b := standing(id.New(), "v1.0.0")
				b.Name = fmt.Sprint("box-", i)
				y.boxes = append(y.boxes, b)
				rows = append(rows, seed.Box{ID: b.ID, Account: "acme"})
			}
			return seed.Add(tx, rows...)
		})
		fn(y)
	})
}

func (y *yard) as() context.Context {
	return db.WithAccount(policy.With(y.t.Context(), policy.Actor{Credential: policy.PAT, UserID: "ada", AccountID: "acme",
		Scopes: policy.Scopes(policy.WriteRunners)}), "acme")
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(db.WithAccount(y.t.Context(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) begins() Started {
	y.t.Helper()
	out, err := y.start(y.as(), startIn{})
	if err != nil {
		y.t.Fatal(err)
	}
	return out
}

func (y *yard) is() Rollout {
	y.t.Helper()
	out, err := y.get(y.as(), struct{}{})
	if err != nil || out.Rollout == nil {
		y.t.Fatal(out, err)
	}
	return *out.Rollout
}

// told are the boxes whose command is not carried out yet, with the command.
func (y *yard) told() (out []int) {
	for i, b := range y.boxes {
		if all := y.sent[b.ID]; len(all) > 0 && all[len(all)-1].Update != nil && all[len(all)-1].Update.Version != b.Version {
			out = append(out, i)
		}
	}
	return out
}

// takes has a box run what it was told and give its test run back.
func (y *yard) takes(i int) {
	y.t.Helper()
	b := &y.boxes[i]
	all := y.sent[b.ID]
	b.Version = all[len(all)-1].Update.Version
	b.Update = &protocol.UpdateReport{State: protocol.UpdateGood, Command: all[len(all)-1].ID, Version: b.Version, Keys: 1}
	y.write(func(tx *db.Tx) error { return y.passed(tx, b.ID, b.Version) })
}

// A fleet goes through a canary, the soak and the waves, each after the one before has done its
// test run; another trigger joins; and at its end another one has nothing to do.
func TestWaves(t *testing.T) {
	t.Parallel()
	onBoth(t, 20, func(y *yard) {
		if got := y.begins(); got.Kind != "started" || got.Boxes.Waits != 20 || got.Rollout.State != Preparing {
			y.t.Fatalf("%+v", got)
		}
		if got := y.begins(); got.Kind != "joined" || got.Rollout == nil {
			y.t.Fatalf("%+v", got)
		}
		for wave, size := range []int{1, 5, 5, 9} {
			y.pass(0)
			if now := y.is(); now.Wave != int64(wave+1) || now.Waves != 4 || len(y.told()) != size {
				y.t.Fatalf("wave %d: %d boxes, %+v", wave+1, len(y.told()), now)
			}
			for left := y.told(); len(left) > 0; left = y.told() {
				y.pass(look)
				if now := y.is(); now.Wave != int64(wave+1) {
					y.t.Fatalf("wave %d began before the one before had ended", now.Wave)
				}
				y.takes(left[0])
			}
			y.pass(look)
			if wave == 0 {
				if now := y.is(); now.State != Soaking || now.SoakUntil == nil {
					y.t.Fatalf("%+v", now)
				}
				y.pass(defaultSoak*time.Second - 2*look)
				if now := y.is(); now.State != Soaking {
					y.t.Fatalf("the soak was too short: %+v", now)
				}
				y.pass(2 * look)
			}
		}
		if now := y.is(); now.State != Done || now.Counts.Good != 20 || now.EndedAt == nil {
			y.t.Fatalf("%+v", now)
		}
		if got := y.begins(); got.Kind != "nothing" || got.Boxes.Current != 20 {
			y.t.Fatalf("%+v", got)
		}
		for kind, want := range map[string]int64{
			"rollout.started": 1, "rollout.moved": 5, "rollout.ended": 1, "box.update_told": 20, "box.updated": 20,
		} {
			y.write(func(tx *db.Tx) error {
				if n, err := countAudit.One(tx, kind); err != nil || n != want {
					y.t.Errorf("%d rows of %s, want %d, %v", n, kind, want, err)
				}
				return nil
			})
		}
	})
}

// A rollout halts itself, says why with numbers, and has who was told forget it.
func TestHalts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, why string
		do        func(y *yard)
	}{
		{"a box that goes back", "1 of 1 boxes did not come up with it: exit code 3", func(y *yard) {
			b := &y.boxes[y.told()[0]]
			b.Update = &protocol.UpdateReport{State: protocol.UpdateFailed, Command: y.sent[b.ID][0].ID, Why: "exit code 3"}
		}},
		{"a silent box", "1 of 1 boxes were lost", func(y *yard) {
			b, beat := &y.boxes[y.told()[0]], y.at
			b.Presence, b.LastBeat = box.Offline, &beat
			y.pass(silence + look)
		}},
		{"a box that does not get there", "1 of 1 boxes were lost", func(y *yard) { y.pass(overdue + look) }},
		{"a halted release", "The release v1.1.0 was halted: it leaks.", func(y *yard) { y.builds[0].Halted = "halted: it leaks" }},
		{"a release that is gone", "taken out of the ledger", func(y *yard) { y.builds = nil }},
		{"a good box that runs the old program", "It runs v1.0.0 again", func(y *yard) {
			i := y.told()[0]
			y.takes(i)
			y.boxes[i].Version, y.boxes[i].Update = "v1.0.0", nil
		}},
		{"runs that fail", "3 of 5 runs failed on updated boxes, before it were 1 of 10", func(y *yard) {
			i := y.told()[0]
			y.takes(i)
			for n := range 5 {
				y.runs = append(y.runs, Outcome{BoxID: y.boxes[i].ID, Began: y.at.Add(time.Second), Failed: n < 3})
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			onBoth(t, 3, func(y *yard) {
				for n := range 10 {
					y.runs = append(y.runs, Outcome{BoxID: y.boxes[0].ID, Began: y.at.Add(-time.Hour), Failed: n == 0})
				}
				y.begins()
				y.pass(0)
				told := y.boxes[y.told()[0]].ID
				c.do(y)
				y.pass(look)
				now := y.is()
				if now.State != Halted || now.Why == nil || !strings.Contains(*now.Why+".", c.why) || now.Counts.Waits != 2 {
					y.t.Fatalf("%+v", now)
				}
				forgotten := slices.ContainsFunc(y.sent[told], func(c protocol.Command) bool { return c.Update == nil })
				if alone := now.Counts.Told == 1; alone != forgotten {
					y.t.Errorf("told to forget it: %v, %+v", forgotten, now.Counts)
				}
				if got := y.is(); got.EndedAt == nil {
					y.t.Errorf("%+v", got)
				}
			})
		})
	}
}

// Few runs, and runs that fail no more often than before, halt nothing.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   rates
		want bool
	}{
		{rates{}, false},
		{rates{0, 0, 4, 4}, false},
		{rates{0, 0, 5, 0}, false},
		{rates{0, 0, 5, 1}, true},
		{rates{100, 50, 10, 6}, false},
		{rates{100, 50, 10, 7}, true},
		{rates{100, 10, 100, 29}, false},
		{rates{100, 10, 100, 30}, true},
		{rates{10, 10, 10, 10}, false},
	} {
		if c.of.worse() != c.want {
			t.Errorf("%+v: %v", c.of, !c.want)
		}
	}
}

// Without a store of objects nothing can be handed out, and the rollout says so.
func TestNoObjects(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(y *yard) {
		y.off = blob.ErrOff
		y.begins()
		y.pass(0)
		if now := y.is(); now.State != Halted || !strings.Contains(*now.Why, "keeps no objects") || len(y.sent) != 0 {
			y.t.Errorf("%+v", now)
		}
	})
}

// From far behind a box is told the steps, one after the other.
func TestSteps(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(y *yard) {
		y.builds = []release.Build{build("v1.1.0", ""), build("v1.2.0", "v1.1.0"), build("v1.3.0", "v1.2.0")}
		y.begins()
		y.pass(0)
		for _, want := range []string{"v1.1.0", "v1.2.0", "v1.3.0"} {
			all := y.sent[y.boxes[0].ID]
			if got := all[len(all)-1].Update.Version; got != want {
				y.t.Fatalf("told %s, want %s", got, want)
			}
			y.takes(0)
		}
		y.pass(look)
		if now := y.is(); now.Counts.Good != 1 || now.State != Soaking {
			y.t.Errorf("%+v", now)
		}
	})
}

// A rollout that a person ends is over; its boxes are told to forget it, and another can begin.
func TestCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, 3, func(y *yard) {
		y.begins()
		y.pass(0)
		for range 2 {
			if got, err := y.cancel(y.as(), struct{}{}); err != nil || got.State != Cancelled {
				y.t.Fatalf("%+v, %v", got, err)
			}
		}
		if n := len(y.sent[y.boxes[0].ID]) + len(y.sent[y.boxes[1].ID]) + len(y.sent[y.boxes[2].ID]); n != 2 {
			y.t.Errorf("%d commands", n)
		}
		if got := y.begins(); got.Kind != "started" {
			y.t.Errorf("%+v", got)
		}
	})
}

// Who takes no part, and why.
func TestWhoTakesPart(t *testing.T) {
	t.Parallel()
	yes := true
	builds := []release.Build{build("v1.1.0", "v1.0.0")}
	for _, c := range []struct {
		want   string
		change func(*box.Standing)
	}{
		{Waits, func(*box.Standing) {}},
		{Current, func(b *box.Standing) { b.Version = "v1.1.0" }},
		{Current, func(b *box.Standing) { b.Version = "v2.0.0" }},
		{Pinned, func(b *box.Standing) { b.Labels = map[string]string{"zone": "audited"} }},
		{OtherChannel, func(b *box.Standing) { b.ID = "pre" }},
		{Away, func(b *box.Standing) { b.Presence = box.Offline }},
		{Away, func(b *box.Standing) { b.Presence = box.Stale }},
		{Away, func(b *box.Standing) { b.State = box.Draining }},
		{Unable, func(b *box.Standing) { b.Update = nil }},
		{Unable, func(b *box.Standing) { b.Update = &protocol.UpdateReport{} }},
		{Unable, func(b *box.Standing) { b.Version = "dev" }},
		{Unbuilt, func(b *box.Standing) { b.Target = "linux/riscv64" }},
		{Unreachable, func(b *box.Standing) { b.Version = "v0.9.0" }},
	} {
		b := standing("box", "v1.0.0")
		c.change(&b)
		p := policyOf{{Scope: OfLabel, Ref: "zone=audited", Pinned: &yes, Why: "audited"}, {Scope: OfBox, Ref: "pre", Channel: "next"}}
		got, why, steps := classify(b, p, release.BuiltIn, "v1.1.0", builds)
		if got != c.want || (got == Waits) != (len(steps) == 1) || (why == "") != (got == Waits || got == Current) {
			t.Errorf("%+v: %s (%s), want %s", b, got, why, c.want)
		}
	}
}

// What is said of a box goes before what is said of a label, and that before what is said of all.
func TestPins(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	b := standing("box", "v1.0.0")
	b.Labels = map[string]string{"a": "1", "b": "2"}
	account := pinRow{Scope: OfAccount, Channel: "stable", Pinned: &yes, Why: "account"}
	labelA := pinRow{Scope: OfLabel, Ref: "a=1", Channel: "next", Pinned: &no}
	labelB := pinRow{Scope: OfLabel, Ref: "b=2", Pinned: &yes, Why: "b"}
	this := pinRow{Scope: OfBox, Ref: "box", Pinned: &no}
	for _, c := range []struct {
		p       policyOf
		channel string
		pinned  bool
		why     string
	}{
		{nil, release.BuiltIn, false, ""},
		{policyOf{account}, "stable", true, "account"},
		{policyOf{account, labelA}, "next", false, ""},
		{policyOf{account, labelA, labelB}, "next", true, "b"},
		{policyOf{labelB, labelA}, "next", true, "b"},
		{policyOf{this, account, labelA, labelB}, "next", false, ""},
		{policyOf{{Scope: OfBox, Ref: "other", Pinned: &yes}, {Scope: OfLabel, Ref: "a=2", Pinned: &yes}}, release.BuiltIn, false, ""},
	} {
		if channel, pinned, why := c.p.of(b); channel != c.channel || pinned != c.pinned || why != c.why {
			t.Errorf("%+v: %s, %v, %q", c.p, channel, pinned, why)
		}
	}
}

// Every state of a rollout moves as the table says, whatever its boxes are.
func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(time.Hour)
	states := []string{Preparing, Canary, Soaking, Rolling, Done, Halted, Cancelled}
	each := []string{Waits, Told, Good, Failed, Lost, Current, Away}
	if len(moves) != len(states) {
		t.Fatalf("the table has %d rows", len(moves))
	}
	seen := map[string]bool{}
	for _, state := range states {
		for wave := range int64(4) {
			for _, until := range []*time.Time{nil, &now, &later} {
				for _, a := range each {
					for _, b := range each {
						r := row{State: state, Wave: wave, SoakUntil: until}
						got, next := next(r, []boxRow{{Wave: 1, State: a}, {Wave: 2, State: b}, {Wave: 0, State: Current}}, now)
						if got != state && !slices.Contains(moves[state], got) || state != Preparing && (next < wave || next > wave+1) {
							t.Fatalf("%s in wave %d of %s and %s: %s in wave %d", state, wave, a, b, got, next)
						}
						if a == Told && wave == 1 && state == Canary && next != 1 {
							t.Errorf("a wave began while the one before was under way")
						}
						seen[state+" "+got] = true
					}
				}
			}
		}
	}
	for from, all := range moves {
		for _, to := range all {
			if to != Halted && to != Cancelled && !seen[from+" "+to] {
				t.Errorf("nothing leads from %s to %s", from, to)
			}
		}
	}
}

// The sizes of the waves are bounded, and leave nobody out.
func TestSizes(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		sum := 0
		for i, size := range waves(n) {
			if sum += size; size < 1 || i == 0 && size != 1 || i == 1 && size > 5 || i == 2 && size > (n+3)/4 {
				t.Errorf("%d boxes: %v", n, waves(n))
			}
		}
		if sum != n || len(waves(n)) > 4 {
			t.Errorf("%d boxes: %v", n, waves(n))
		}
	}
}

// The word of a trial is of one box, one trial and one version, and of no other.
func TestWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, b := range []string{"a", "b"} {
		for _, trial := range []string{"1", "2"} {
			for _, v := range []string{"v1", "v2"} {
				w := word(key, b, trial, v)
				if seen[w] || w != word(key, b, trial, v) || len(w) != 64 {
					t.Error(w)
				}
				seen[w] = true
			}
		}
	}
}
