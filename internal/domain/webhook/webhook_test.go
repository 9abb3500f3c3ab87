package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/hook"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// yard is two nodes with webhooks on one database, and a receiver.
type yard struct {
	t     *testing.T
	mu    sync.Mutex
	at    time.Time
	nodes [2]*Service
	srv   *httptest.Server
	// answer answers a request of the receiver; nil is 200.
	answer   func(http.ResponseWriter, *http.Request)
	received []received
}

// received is what the receiver got.
type received struct {
	header http.Header
	body   []byte
}

func (y *yard) now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) wait(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.at = y.at.Add(d)
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	y := &yard{at: time.Unix(1_800_000_000, 0)}
	y.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		y.mu.Lock()
		y.received = append(y.received, received{r.Header, body})
		answer := y.answer
		y.mu.Unlock()
		if answer != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			answer(w, r)
		}
	}))
	t.Cleanup(y.srv.Close)
	dbtest.RunWith(t, db.Options{Clock: y.now}, func(t *testing.T, d *db.DB) {
		y.t, y.answer, y.received, y.at = t, nil, nil, time.Unix(1_800_000_000, 0)
		ring := seal.New()
		guard := dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		for i := range y.nodes {
			y.nodes[i] = New(Needs{
				DB: d, Hub: event.NewHub(), Ring: ring, Guard: guard,
				Sender: hook.NewSender(guard, "test", y.now), Logger: slog.New(slog.DiscardHandler),
				Process: fmt.Sprint("process", i),
			})
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
				seed.Member{Account: "acme", User: "ada", Role: "member"}, seed.Member{Account: "acme", User: "bob", Role: "member"})
		})
		if err != nil {
			t.Fatal(err)
		}
		fn(y)
	})
}

// as is a context of a person of an account.
func (y *yard) as(account string) context.Context {
	ctx := policy.With(y.t.Context(), policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada"})
	return db.WithAccount(ctx, account)
}

func (y *yard) hook(name string, events ...string) Created {
	y.t.Helper()
	made, err := y.nodes[0].create(y.as("acme"), createIn{Name: name, URL: y.srv.URL + "/" + name + "?token=x", Events: events})
	if err != nil {
		y.t.Fatal(err)
	}
	return made
}

func (y *yard) send(n News) {
	y.t.Helper()
	if n.At.IsZero() {
		n.At = y.now()
	}
	err := y.nodes[0].DB.Write(y.as("acme"), func(tx *db.Tx) error { return y.nodes[0].Send(tx, n) })
	if err != nil {
		y.t.Fatal(err)
	}
}

// pass has both nodes do what is due, to the end.
func (y *yard) pass() {
	ctx := policy.With(y.t.Context(), policy.Actor{Credential: policy.System})
	for _, n := range y.nodes {
		n.pass(ctx, ctx)
	}
	for _, n := range y.nodes {
		n.working.all.Wait()
	}
}

func (y *yard) ledger() []Attempt {
	y.t.Helper()
	out, err := y.nodes[1].deliveries(y.as("acme"), ledgerIn{op.PageIn{PerPage: maxLedger}})
	if err != nil {
		y.t.Fatal(err)
	}
	return out.Data
}

func merged(source string) News {
	return News{Type: PullMerged, Source: source, Data: []byte(`{"number": 7, "a": {"z": 1, "b": "ü"}}`)}
}

// What is sent is signed anew for each attempt, and has the same bytes.
func TestLadder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		made := y.hook("coder")
		y.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			fmt.Fprint(w, strings.Repeat("x", hook.Excerpt+1))
		}
		y.send(merged("one"))
		y.send(merged("one")) // the same event again
		steps := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
			12 * time.Hour, 24 * time.Hour}
		var sum time.Duration
		for i := range 9 {
			y.pass()
			if len(y.received) != i+1 {
				y.t.Fatalf("%d attempts, want %d", len(y.received), i+1)
			}
			a := y.ledger()[0]
			want := Retrying
			if i == 8 {
				want = Exhausted
			}
			if a.Attempt != int64(i+1) || string(a.Status) != want || *a.ResponseStatus != 503 || len(a.Response) != hook.Excerpt ||
				a.HookName != "coder" ||
				(a.NextAttemptAt != nil) != (i < 8) {
				y.t.Errorf("%+v", a)
			}
			if i < 8 {
				sum += steps[i]
				y.wait(steps[i] - time.Microsecond)
				y.pass()
				if len(y.received) != i+1 {
					y.t.Fatalf("attempt %d is early", i+2)
				}
				y.wait(time.Microsecond)
			}
		}
		if sum != 38*time.Hour+35*time.Minute+36*time.Second {
			y.t.Errorf("the steps sum to %s", sum)
		}
		seen := map[string]bool{}
		for _, r := range y.received {
			stamp, sign := r.header.Get("X-Service-Timestamp"), r.header.Get("X-Service-Signature")
			at, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil || !hmac.Equal([]byte(sign), []byte(hook.Sign(made.Secret, at, r.body))) ||
				r.header.Get("X-Service-Event-Version") != "1" ||
				string(r.body) != string(y.received[0].body) ||
				seen[stamp] {
				y.t.Errorf("%v, %v", r.header, err)
			}
			seen[stamp] = true
		}
		body := string(y.received[0].body)
		if !strings.HasPrefix(body, `{"data":{"a":{"b":"ü","z":1},"number":7},"id":"evt_`) ||
			!strings.HasSuffix(body, `,"occurred_at":"2027-01-15T08:00:00.000Z","type":"pr.merged"}`) {
			y.t.Error(body)
		}
		y.send(merged("two"))
		y.pass()
		if a := y.ledger()[0]; a.Status != Skipped || a.Attempt != 0 || len(y.received) != 9 {
			y.t.Errorf("an unhealthy webhook: %+v, %d attempts", a, len(y.received))
		}
		y.answer = nil
		if _, err := y.nodes[0].test(y.as("acme"), idIn{ID: made.ID}); err != nil {
			y.t.Fatal(err)
		}
		y.pass()
		if a := y.ledger()[0]; a.Status != OK || a.Type != TestPing {
			y.t.Errorf("%+v", a)
		}
		if h, err := y.nodes[0].revive(y.as("acme"), idIn{ID: made.ID}); err != nil || !h.Healthy {
			y.t.Errorf("%+v, %v", h, err)
		}
		if _, err := y.nodes[0].redeliver(y.as("acme"), attemptIn{ID: y.ledger()[1].ID}); err != nil {
			y.t.Fatal(err)
		}
		y.pass()
		if a := y.ledger()[0]; a.Status != OK || a.Type != PullMerged {
			y.t.Errorf("%+v", a)
		}
	})
}

// A webhook hears of what it asks for; a hand-off is for the one that it names.
func TestWho(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("all")
		y.hook("merges", PullMerged)
		y.send(News{Type: PullMerged, Source: "before", At: y.now().Add(-time.Second), Data: []byte(`{}`)})
		y.send(merged("one"))
		y.send(News{Type: IssueHandoff, Source: "two", Data: []byte(`{}`), Hook: "all"})
		y.send(News{Type: IssueHandoff, Source: "three", Data: []byte(`{}`), Hook: "merges"})
		y.pass()
		got := map[string]int{}
		for _, a := range y.ledger() {
			got[a.HookName+" "+string(a.Type)]++
		}
		if len(y.received) != 3 || got["all pr.merged"] != 1 || got["merges pr.merged"] != 1 || got["all issue.handoff"] != 1 {
			y.t.Errorf("%v", got)
		}
	})
}

// Two nodes send each event once; the ledger keeps a hundred.
func TestMany(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("many")
		for i := range 300 {
			y.send(merged(strconv.Itoa(i)))
		}
		y.pass()
		ids := map[string]bool{}
		for _, r := range y.received {
			var e struct{ ID string }
			if err := json.Unmarshal(r.body, &e); err != nil || ids[e.ID] {
				y.t.Errorf("%s twice, %v", e.ID, err)
			}
			ids[e.ID] = true
		}
		if len(ids) != 300 || len(y.ledger()) != maxLedger {
			y.t.Errorf("%d events, %d in the ledger", len(ids), len(y.ledger()))
		}
	})
}

// A node that dies in the middle of an attempt leaves it to another after the lease.
func TestKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		h := y.hook("one")
		y.send(merged("one"))
		if _, _, jobs, err := y.nodes[0].take(y.as("acme"), h.ID, atOnce); err != nil || len(jobs) != 1 {
			y.t.Fatalf("%v, %v", jobs, err)
		}
		y.pass()
		if len(y.received) != 0 {
			y.t.Fatal("two nodes have one delivery")
		}
		y.wait(lease)
		y.pass()
		if a := y.ledger()[0]; len(y.received) != 1 || a.Attempt != 1 || a.Status != OK {
			y.t.Errorf("%+v", a)
		}
	})
}

// What a node has in work that is gone is another's at once; what others have stays theirs.
func TestGone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		mine, others := y.hook("mine"), y.hook("others")
		y.send(merged("one"))
		for i, h := range []Created{mine, others} {
			if _, _, jobs, err := y.nodes[i].take(y.as("acme"), h.ID, atOnce); err != nil || len(jobs) != 1 {
				y.t.Fatalf("%v, %v", jobs, err)
			}
		}
		is := func(fn func(*db.Tx) error, want int) {
			y.t.Helper()
			if err := y.nodes[1].DB.Write(y.as("acme"), fn); err != nil {
				y.t.Fatal(err)
			}
			y.pass()
			if len(y.received) != want {
				y.t.Errorf("%d are sent, not %d", len(y.received), want)
			}
		}
		is(func(tx *db.Tx) error { return Gone(tx, y.nodes[1].Hub, []string{"nobody"}) }, 0)
		is(func(tx *db.Tx) error { return Gone(tx, y.nodes[1].Hub, []string{"nobody", "process0"}) }, 1)
		is(func(tx *db.Tx) error { return Gone(tx, y.nodes[1].Hub, []string{"process0"}) }, 1) // it has nothing any more
		is(Restarted, 2)
	})
}

// No redirect is followed, and an answer that never ends does no harm.
func TestAnswers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("odd")
		inside := 0
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside++ }))
		defer other.Close()
		y.answer = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
		y.send(merged("redirect"))
		y.pass()
		if a := y.ledger()[0]; a.Status != Retrying || *a.ResponseStatus != 307 || inside > 0 || !strings.Contains(*a.Error, "redirect") {
			y.t.Errorf("%+v", a)
		}
		y.answer = func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}
		y.send(merged("endless"))
		y.pass()
		if a := y.ledger()[0]; a.Status != OK || len(a.Response) > 3*hook.Excerpt {
			y.t.Errorf("%+v", a)
		}
	})
}

// Another account sees and touches nothing.
func TestForeign(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		h := y.hook("ours")
		y.send(merged("one"))
		y.pass()
		s, rival := y.nodes[0], y.as("rival")
		if out, err := s.deliveries(rival, ledgerIn{op.PageIn{PerPage: maxLedger}}); err != nil || len(out.Data) > 0 {
			y.t.Errorf("%+v, %v", out, err)
		}
		for what, err := range map[string]error{
			"delete": second(s.delete(rival, idIn{ID: h.ID})), "test": second(s.test(rival, idIn{ID: h.ID})),
			"revive": second(s.revive(rival, idIn{ID: h.ID})), "redeliver": second(s.redeliver(rival, attemptIn{ID: y.ledger()[0].ID})),
		} {
			if !fault.IsKind(err, fault.NotFound) {
				y.t.Errorf("%s: %v", what, err)
			}
		}
		if d, err := s.delete(y.as("acme"), idIn{ID: h.ID}); err != nil || !d.Deleted {
			y.t.Errorf("%+v, %v", d, err)
		}
		if d, err := s.delete(y.as("acme"), idIn{ID: h.ID}); err != nil || d.Deleted {
			y.t.Errorf("%+v, %v", d, err)
		}
		y.hook("ours") // the name is free again
	})
}

func second[T any](_ T, err error) error { return err }

// A webhook whose attempts fail says so before it is unhealthy, and until one succeeds.
func TestFailing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		made := y.hook("a", PullMerged)
		state := func() (string, *time.Time) {
			page, err := y.nodes[1].list(y.as("acme"), listIn{op.PageIn{PerPage: 25}})
			if err != nil || len(page.Data) != 1 {
				y.t.Fatal(page, err)
			}
			return string(page.Data[0].State), page.Data[0].FailingAt
		}
		if now, since := state(); now != Healthy || since != nil || made.State != Healthy {
			y.t.Errorf("a new webhook is %s since %v", now, since)
		}
		y.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
		began := y.now()
		y.send(merged("one"))
		y.pass()
		y.wait(time.Second)
		y.pass()
		if now, since := state(); now != Failing || since == nil || !since.Equal(began) {
			y.t.Errorf("after two failures it is %s since %v", now, since)
		}
		y.answer = nil
		y.wait(5 * time.Second)
		y.pass()
		if now, since := state(); now != Healthy || since != nil {
			y.t.Errorf("after a success it is %s since %v", now, since)
		}
	})
}
