package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/chance"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// The rows of these tests are templates: they have an account, a name and a body, and
// no other row refers to them.
var (
	whole = db.Q[pair](`SELECT name, body FROM templates WHERE account_id = $1`)
)

var (
	pairTopic   = &event.Topic{Name: "pairs", Scope: policy.ReadTasks}
	pairChanged = event.Declare[event.None]("pair.changed", pairTopic, "A pair was put or taken.")
)

type pair struct{ Name, Body string }

func pairs(tx *db.Tx, ids []string, limit int) ([]pair, error) {
	b := db.Build(`SELECT name, body FROM templates WHERE account_id = `, tx.Account)
	if ids != nil {
		b.In("name", ids)
	}
	return db.Select[pair](tx, b.SQL(" ORDER BY name LIMIT ", limit))
}

type pairsIn struct{}

func (pairsIn) NewestIn(tx *db.Tx, repo string, limit int) ([]string, error) {
	return db.Select[string](tx, db.Build(`SELECT name FROM templates WHERE account_id = `, tx.Account).
		And("body LIKE ", repo+":%").SQL(" ORDER BY name LIMIT ", limit))
}

type noRepos struct{}

func (noRepos) RepoID(*db.Tx, string, string) (string, bool, error) { return "", false, nil }

type names struct{}

func (names) RepoID(_ *db.Tx, owner, name string) (string, bool, error) {
	return owner + "/" + name, true, nil
}

func node(d *db.DB) *Service {
	return New(Needs{
		DB:    d,
		Hub:   event.NewHub(),
		Repos: names{},
		Topics: []Topic{{Topic: pairTopic, In: pairsIn{}, Rows: RepoRows(pairs, func(p pair) string { return p.Name },
			func(p pair) []string { repo, _, _ := strings.Cut(p.Body, ":"); return []string{repo} })}},
	})
}

func in(t testing.TB, d *db.DB, account string, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(db.WithAccount(context.Background(), account), fn); err != nil {
		t.Error(err)
	}
}

// edit sets or deletes a row and records the event.
func edit(t testing.TB, d *db.DB, account, name, body string) {
	in(t, d, account, func(tx *db.Tx) error {
		if body == "" {
			if _, err := seed.DeleteTemplate.Exec(tx, account, name); err != nil {
				return err
			}
		} else if _, err := seed.PutTemplate.Exec(tx, account, name, body); err != nil {
			return err
		}
		return pairChanged.Record(tx, event.Subject{ID: name}, event.None{})
	})
}

// view is the state that a listener has built from its frames.
type view struct {
	mu   sync.Mutex
	rows map[string]string
	cut  bool
}

func (v *view) apply(t testing.TB, frames []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for s := bufio.NewScanner(bytes.NewReader(frames)); s.Scan(); {
		text, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		var p struct {
			Op, ID string
			Row    *pair
		}
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if p.Op == "remove" {
			delete(v.rows, p.ID)
		} else {
			v.rows[p.ID] = p.Row.Body
		}
	}
}

func (v *view) is(want map[string]string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Equal(v.rows, want)
}

// follow listens like a connection.
func follow(t testing.TB, s *Service, account string) *view { return followRepo(t, s, account, "") }

func followRepo(t testing.TB, s *Service, account, repo string) *view {
	t.Helper()
	f, l, err := s.listen(context.Background(), account, repo, []*Topic{&s.Topics[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.leave(account, f, l) })
	v := &view{rows: map[string]string{}}
	rows, err := f.snapshot(&s.Topics[0], repo)
	if err != nil {
		t.Fatal(err)
	}
	first, n := rows.of(&s.Topics[0], repo)
	v.apply(t, first)
	if n != bytes.Count(first, []byte("event: patch")) {
		t.Errorf("%d patches are announced of %s", n, first)
	}
	go func() {
		for frames := range l.frames {
			v.apply(t, frames)
		}
		v.mu.Lock()
		v.cut = true
		v.mu.Unlock()
	}()
	return v
}

// TestListenersConverge holds that every listener, from whatever moment and on
// whatever node, ends with the rows of the database and with no rows of another
// account.
func TestListenersConverge(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for _, a := range []string{"acme", "rival"} {
			in(t, d, a, func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: a}); return err })
		}
		nodes := []*Service{node(d), node(d)} // their hubs are not connected
		seed := chance.Seed(t)
		var wg sync.WaitGroup
		for w := range 4 {
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			account := []string{"acme", "rival"}[w%2]
			wg.Go(func() {
				for i := range 60 {
					body := fmt.Sprint(account, w, i)
					if rnd.IntN(4) == 0 {
						body = ""
					}
					edit(t, d, account, fmt.Sprint("p", rnd.IntN(10)), body)
				}
			})
		}
		views := map[string][]*view{}
		for i := range 6 {
			for _, account := range []string{"acme", "rival"} {
				views[account] = append(views[account], follow(t, nodes[i%2], account))
			}
		}
		wg.Wait()
		for account, all := range views {
			want := map[string]string{}
			if err := d.Read(context.Background(), func(tx *db.Tx) error {
				rows, err := whole.All(tx, account)
				for _, r := range rows {
					want[r.Name] = r.Body
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for i, v := range all {
				what := fmt.Sprintf("seed %d: listener %d of %s has %v", seed, i, account, want)
				patience.Until(t, what, func() bool { return v.is(want) })
			}
		}
	})
}

// TestSlowListenerIsCut holds that a listener that does not read delays no other
// listener, and is dropped.
func TestSlowListenerIsCut(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		f, slow, err := s.listen(t.Context(), "acme", "", []*Topic{&s.Topics[0]})
		if err != nil {
			t.Fatal(err)
		}
		defer s.leave("acme", f, slow)
		quick := follow(t, s, "acme")
		for i := range backlog + 2 {
			body := fmt.Sprint("v", i)
			edit(t, d, "acme", "p", body)
			patience.Until(t, "the quick listener has "+body, func() bool { return quick.is(map[string]string{"p": body}) })
		}
		n := 0
		for range slow.frames {
			n++
		}
		if n != backlog || quick.cut {
			t.Errorf("the slow listener was handed %d frames, want %d; the quick one was cut: %v", n, backlog, quick.cut)
		}
	})
}

// TestListenerComesWhileTheFeedReads holds that a listener gets a change if it comes
// after the feed has collected the followed topics and before the feed reads the
// changes.
func TestListenerComesWhileTheFeedReads(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		ctx, stop := context.WithCancel(db.WithAccount(t.Context(), "acme"))
		defer stop()
		f := &feed{s: s, ctx: ctx, stop: stop, listeners: map[*listener]struct{}{}}
		s.feeds = map[string]*feed{"acme": f}
		before := f.followed()
		_, l, err := s.listen(ctx, "acme", "", []*Topic{&s.Topics[0]})
		if err != nil {
			t.Fatal(err)
		}
		edit(t, d, "acme", "p", "v")
		if _, err := f.advance(before); err != nil {
			t.Fatal(err)
		}
		if err := f.catchUp(); err != nil {
			t.Fatal(err)
		}
		select {
		case frame := <-l.frames:
			if !strings.Contains(string(frame), `"v"`) {
				t.Errorf("%s", frame)
			}
		default:
			t.Error("the change is lost")
		}
	})
}

// TestFeedEndsWithItsLastListener holds that a feed without listeners ends.
func TestFeedEndsWithItsLastListener(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		var all []*listener
		var f *feed
		for range 3 {
			one, l, err := s.listen(t.Context(), "acme", "", nil)
			if err != nil || f != nil && f != one {
				t.Fatal(err, "or a second feed")
			}
			f, all = one, append(all, l)
		}
		for i, l := range all {
			if f.ctx.Err() != nil {
				t.Errorf("the feed ended before listener %d left", i)
			}
			s.leave("acme", f, l)
			s.leave("acme", f, l) // leaving twice is harmless
		}
		if f.ctx.Err() == nil || len(s.feeds) > 0 {
			t.Error("the feed goes on without listeners")
		}
	})
}

// TestStreamOfARepository holds that a narrowed stream has the rows of its repository
// alone, from the snapshot on, and still loses those that are removed.
func TestStreamOfARepository(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		edit(t, d, "acme", "old", "acme/web:1")
		edit(t, d, "acme", "other", "acme/api:1")
		web, all := followRepo(t, s, "acme", "acme/web"), follow(t, s, "acme")
		edit(t, d, "acme", "new", "acme/web:2")
		edit(t, d, "acme", "more", "acme/api:2")
		edit(t, d, "acme", "old", "")
		edit(t, d, "acme", "last", "acme/web:3")
		patience.Until(t, "all rows are those of two repositories", func() bool {
			return all.is(map[string]string{"other": "acme/api:1", "new": "acme/web:2", "more": "acme/api:2", "last": "acme/web:3"})
		})
		patience.Until(t, "the rows of one repository", func() bool {
			return web.is(map[string]string{"new": "acme/web:2", "last": "acme/web:3"})
		})
	})
}

// TestSnapshotOfARepository holds that a narrowed stream begins with the newest rows of its
// repository, however many newer ones there are of others.
func TestSnapshotOfARepository(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		for i := range snapshotRows + 1 { // the topic's rows are in the order of their names
			edit(t, d, "acme", fmt.Sprint("a", i), "acme/api:1")
		}
		edit(t, d, "acme", "z", "acme/web:1")
		if web := followRepo(t, s, "acme", "acme/web"); !web.is(map[string]string{"z": "acme/web:1"}) {
			t.Errorf("the stream of acme/web begins with %v", web.rows)
		}
		if api := followRepo(t, s, "acme", "acme/api"); len(api.rows) != snapshotRows || api.rows["z"] != "" {
			t.Errorf("the stream of acme/api begins with %d rows", len(api.rows))
		}
	})
}

// bodies are marks: the bodies of all pairs.
type bodies struct{}

func (bodies) Marks(tx *db.Tx) (map[string]string, error) {
	rows, err := whole.All(tx, tx.Account)
	out := map[string]string{}
	for _, r := range rows {
		out[r.Name] = r.Body
	}
	return out, err
}

// TestMarksAreFollowed holds that a row that changes without an event is sent again.
func TestMarksAreFollowed(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { err := seed.Add(tx, seed.Account{ID: "acme"}); return err })
		s := node(d)
		s.Topics[0].Marks = bodies{}
		edit(t, d, "acme", "p", "acme/web:1")
		all, web, api := follow(t, s, "acme"), followRepo(t, s, "acme", "acme/web"), followRepo(t, s, "acme", "acme/api")
		in(t, d, "acme", func(tx *db.Tx) error {
			_, err := seed.PutTemplate.Exec(tx, "acme", "p", "acme/web:2")
			return err
		})
		want := map[string]string{"p": "acme/web:2"}
		patience.Until(t, "the changed row", func() bool { return all.is(want) && web.is(want) })
		if !api.is(map[string]string{}) {
			t.Error("a row of another repository was sent")
		}
	})
}
