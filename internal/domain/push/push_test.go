package push

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
	"yardmaster/internal/webpush"
	"yardmaster/internal/webpush/pushtest"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// yard is two nodes, and a push service.
type yard struct {
	t       *testing.T
	now     time.Time
	nodes   [2]*Service
	kernels []*due.Kernel
	service *pushtest.Service
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	keys, err := webpush.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	shared := &yard{}
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return shared.now }}, func(t *testing.T, d *db.DB) {
		*shared = yard{t: t, now: time.Now(), service: pushtest.New(t)}
		ring, guard := seal.New(), dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		for i := range shared.nodes {
			shared.kernels = append(shared.kernels, duetest.New(d, event.NewHub()))
			shared.nodes[i] = New(Needs{
				DB: d, Due: shared.kernels[i], Ring: ring, Guard: guard, Logger: slog.New(slog.DiscardHandler),
				Sender: webpush.NewSender(guard, keys, "https://ym.example.com"),
			})
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ann"}, seed.User{ID: "bob"},
				seed.Member{Account: "acme", User: "ann", Role: "member"}, seed.Member{Account: "acme", User: "bob", Role: "member"})
		})
		if err != nil {
			t.Fatal(err)
		}
		fn(shared)
	})
}

func (y *yard) as(userID string) context.Context {
	return policy.With(db.WithAccount(y.t.Context(), "acme"), policy.Actor{Credential: policy.Session, UserID: userID, AccountID: "acme"})
}

func (y *yard) subscribe(userID string, sub webpush.Subscription) Browser {
	y.t.Helper()
	b, err := y.nodes[0].subscribe(y.as(userID), subscribeIn{
		Endpoint: sub.Endpoint, Keys: keysIn{P256DH: sub.P256DH, Auth: sub.Auth}, Label: "Firefox \u202eat home",
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return b
}

func (y *yard) tell(topic, title string, after time.Duration) {
	y.t.Helper()
	err := y.nodes[0].DB.Write(y.as("ann"), func(tx *db.Tx) error {
		return y.nodes[0].Tell(tx, Notice{
			UserID: "ann", Topic: topic, Title: title, Text: strings.Repeat("é", 5000), After: tx.Now.Add(after),
		})
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// pass has both nodes send what is due.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.kernels...)
}

// Each browser of a person gets a message once; a later one about the same subject takes
// the place of one that waits.
func TestTell(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.tell("nobody", "No browser", 0)
		one, two := y.service.Browser(), y.service.Browser()
		y.subscribe("ann", one)
		y.subscribe("ann", two)
		y.subscribe("ann", one) // again
		y.subscribe("bob", y.service.Browser())
		y.tell("a", "First", 0)
		y.pass()
		if got := y.service.Messages(); len(got) != 2 || !strings.Contains(string(got[0].Body), `"title":"First"`) {
			y.t.Fatalf("%+v", got)
		}
		y.tell("a", "In the morning", time.Hour)
		y.tell("b", "Another", time.Hour)
		y.tell("a", "Rather this", time.Hour)
		y.pass()
		if len(y.service.Messages()) != 2 {
			y.t.Error("sent before its time")
		}
		y.now = y.now.Add(time.Hour)
		y.pass()
		all := fmt.Sprint(y.service.Messages())
		if got := y.service.Messages(); len(got) != 6 || strings.Contains(all, "In the morning") {
			y.t.Errorf("%d messages", len(got))
		}
		list, err := y.nodes[1].list(y.as("ann"), listIn{op.FirstPage("push.list", paging)})
		if err != nil || len(list.Data) != 2 || list.Data[0].SentAt == nil || strings.Contains(list.Data[0].Label, "\u202e") ||
			list.Data[0].Service != "127.0.0.1" {
			y.t.Errorf("%+v %v", list, err)
		}
	})
}

// What a service refuses for now is tried again, for a day; a browser that is gone is
// forgotten with all that was on its way.
func TestRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.subscribe("ann", y.service.Browser())
		asked := 0
		status := http.StatusServiceUnavailable
		y.service.Answer(func(w http.ResponseWriter) {
			asked++
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(status)
		})
		y.tell("a", "First", 0)
		for _, wait := range []time.Duration{0, ladder.First, 100 * time.Second, 3 * time.Minute, 3 * time.Minute} {
			y.now = y.now.Add(wait)
			y.pass()
		}
		if asked != 3 { // the service asked for two minutes
			y.t.Errorf("asked %d times", asked)
		}
		y.service.Answer(nil)
		y.now = y.now.Add(8 * time.Minute)
		y.pass()
		if len(y.service.Messages()) != 1 {
			y.t.Error("it never came")
		}
		y.service.Answer(func(w http.ResponseWriter) { asked++; w.WriteHeader(status) })
		y.tell("b", "Too late", 0)
		for range 40 {
			y.pass()
			y.now = y.now.Add(time.Hour)
		}
		before := asked
		y.now = y.now.Add(48 * time.Hour)
		y.pass()
		if asked != before || len(y.service.Messages()) != 1 {
			y.t.Errorf("a message of the day before is tried still")
		}
		status = http.StatusGone
		y.tell("c", "Gone", 0)
		y.tell("d", "Gone too", time.Hour)
		y.pass()
		if list, err := y.nodes[0].list(y.as("ann"), listIn{op.FirstPage("push.list", paging)}); err != nil || len(list.Data) != 0 {
			y.t.Errorf("%+v %v", list, err)
		}
		before = asked
		y.now = y.now.Add(2 * time.Hour)
		if y.pass(); asked != before {
			y.t.Error("something is sent to a browser that is gone")
		}
	})
}

// Nobody touches the browser of another person, and an address inside is refused.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		b := y.subscribe("ann", y.service.Browser())
		if _, err := y.nodes[0].unsubscribe(y.as("bob"), idIn{ID: b.ID}); err == nil {
			y.t.Error("bob has unsubscribed ann's browser")
		}
		if _, err := y.nodes[0].unsubscribe(y.as("ann"), idIn{ID: b.ID}); err != nil {
			y.t.Error(err)
		}
		inside := y.service.Browser()
		inside.Endpoint = "http://10.0.0.1/push"
		if _, err := y.nodes[0].subscribe(y.as("ann"), subscribeIn{
			Endpoint: inside.Endpoint, Keys: keysIn{P256DH: inside.P256DH, Auth: inside.Auth},
		}); err == nil {
			y.t.Error("an address inside is taken")
		}
		for range maxBrowsers {
			y.subscribe("ann", y.service.Browser())
		}
		more := y.service.Browser()
		if _, err := y.nodes[0].subscribe(y.as("ann"), subscribeIn{
			Endpoint: more.Endpoint, Keys: keysIn{P256DH: more.P256DH, Auth: more.Auth},
		}); err == nil || !strings.Contains(err.Error(), "too-many-browsers") {
			y.t.Error(err)
		}
		if out, err := y.nodes[0].test(y.as("ann"), struct{}{}); err != nil || out.Browsers != maxBrowsers {
			y.t.Errorf("%+v %v", out, err)
		}
		y.pass()
		if got := y.service.Messages(); len(got) != maxBrowsers {
			y.t.Errorf("%d messages", len(got))
		}
	})
}

// A browser that two people share is that of the last one who has subscribed: nothing of the
// other's is sent there any more, of whatever account. Another browser of theirs stays.
func TestShared(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		rival := policy.With(db.WithAccount(y.t.Context(), "rival"),
			policy.Actor{Credential: policy.Session, UserID: "ann", AccountID: "rival"})
		if err := y.nodes[0].DB.Write(y.t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "rival"}, seed.Member{Account: "rival", User: "ann", Role: "member"})
		}); err != nil {
			y.t.Fatal(err)
		}
		shared, own := y.service.Browser(), y.service.Browser()
		y.subscribe("ann", shared)
		y.subscribe("ann", own)
		if _, err := y.nodes[0].subscribe(rival, subscribeIn{
			Endpoint: shared.Endpoint, Keys: keysIn{P256DH: shared.P256DH, Auth: shared.Auth},
		}); err != nil {
			y.t.Fatal(err)
		}
		browsers := func(ctx context.Context) int {
			y.t.Helper()
			all, err := y.nodes[0].list(ctx, listIn{op.FirstPage("push.list", paging)})
			if err != nil {
				y.t.Fatal(err)
			}
			return len(all.Data)
		}
		if a, b := browsers(y.as("ann")), browsers(rival); a != 2 || b != 1 {
			y.t.Fatalf("ann has %d browsers in one account, %d in the other", a, b)
		}
		y.tell("t1", "Ann's", time.Hour)
		y.subscribe("bob", shared)
		if a, b, bob := browsers(y.as("ann")), browsers(rival), browsers(y.as("bob")); a != 1 || b != 0 || bob != 1 {
			y.t.Errorf("ann has %d and %d browsers, bob %d", a, b, bob)
		}
		y.now = y.now.Add(2 * time.Hour)
		y.pass()
		if got := y.service.Messages(); len(got) != 1 {
			y.t.Errorf("ann's message went to %d browsers", len(got))
		}
		y.subscribe("ann", shared) // she is back at it
		if a, bob := browsers(y.as("ann")), browsers(y.as("bob")); a != 2 || bob != 0 {
			y.t.Errorf("ann has %d browsers, bob %d", a, bob)
		}
	})
}

// What waits for the end of quiet hours is not sent to somebody who has left by then.
func TestLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.subscribe("ann", y.service.Browser())
		y.tell("t1", "Failed", time.Hour)
		if err := y.nodes[0].DB.Write(y.as("bob"), func(tx *db.Tx) error { return people.Remove(tx, "acme", "ann") }); err != nil {
			y.t.Fatal(err)
		}
		y.now = y.now.Add(2 * time.Hour)
		y.pass()
		if got := y.service.Messages(); len(got) != 0 {
			y.t.Errorf("%+v", got)
		}
	})
}

// What takes the place of a message is sent at its own time: at once although the one before
// it waits after a failure, and later although that one was due.
func TestPlaces(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.subscribe("ann", y.service.Browser())
		y.service.Answer(func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) })
		y.tell("a", "Refused", 0)
		y.pass()
		y.service.Answer(nil)
		y.pass()
		if got := y.service.Messages(); len(got) != 0 {
			y.t.Fatal("it does not wait after a failure")
		}
		y.tell("a", "Now", 0)
		y.pass()
		if got := y.service.Messages(); len(got) != 1 || !strings.Contains(string(got[0].Body), `"title":"Now"`) {
			y.t.Fatalf("%+v", got)
		}
		y.tell("b", "Due", 0)
		y.tell("b", "In the morning", time.Hour)
		y.pass()
		if got := y.service.Messages(); len(got) != 1 {
			y.t.Fatal("sent before its time")
		}
		y.now = y.now.Add(time.Hour)
		y.pass()
		if got := y.service.Messages(); len(got) != 2 || !strings.Contains(string(got[1].Body), "In the morning") {
			y.t.Fatalf("%+v", got)
		}
	})
}
