package digest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// yard is two nodes with digests on one database. It keeps the mails that were committed.
type yard struct {
	t     *testing.T
	mu    sync.Mutex
	at    time.Time
	nodes [2]*Service
	mails []Letter
	fail  error // of the next mail, after it was taken
}

func (y *yard) now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

func (y *yard) set(text string) {
	y.t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	y.at = instant(y.t, text)
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func micros(t *testing.T, text string) *int64 {
	t.Helper()
	m := db.Micros(instant(t, text))
	return &m
}

// Mail implements Mails.
func (y *yard) Mail(tx *db.Tx, l Letter) error {
	tx.AfterCommit(func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.mails = append(y.mails, l)
	})
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.fail
}

// callers says who did something as package actor does, but for its rows.
type callers struct{}

func (callers) InWords(_ *db.Tx, labels []string) (map[string]string, error) {
	out := map[string]string{}
	for _, l := range labels {
		out[l] = strings.TrimPrefix(l, "user:")
	}
	return out, nil
}

func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	y := &yard{}
	dbtest.RunWith(t, db.Options{Clock: y.now}, func(t *testing.T, d *db.DB) {
		y.t, y.mails, y.fail = t, nil, nil
		y.set("2026-03-03T12:00:00Z") // a Tuesday
		for i := range y.nodes {
			y.nodes[i] = New(Needs{
				DB: d, Due: duetest.New(d, event.NewHub()), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Mails: y,
				BaseURL: "https://yard.example", Actors: callers{},
			})
		}
		people.Placed.On(d, y.nodes[0].Plan)
		y.add(seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"}, seed.User{ID: "ada"})
		y.plan("acme")
		fn(y)
	})
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.nodes[0].DB.Write(db.WithAccount(y.t.Context(), "acme"), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) add(rows ...seed.Row) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return seed.Add(tx, rows...) })
}

// pass has both nodes look at once.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due, y.nodes[1].Due)
}

// plan is what follows from a new account.
func (y *yard) plan(accountID string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { return people.Placed.Send(tx, accountID) })
}

func (y *yard) as() context.Context { return db.WithAccount(y.t.Context(), "acme") }

// heads are the digests of acme, newest first: kind, period, from and to.
func (y *yard) heads() (out []string) {
	y.t.Helper()
	page, err := y.nodes[1].list(y.as(), listIn{op.PageIn{Limit: 100}})
	if err != nil {
		y.t.Fatal(err)
	}
	for _, h := range page.Data {
		out = append(out, strings.Join([]string{string(h.Kind), h.Period, h.From.Format(time.RFC3339), h.To.Format(time.RFC3339)}, " "))
	}
	return out
}

func (y *yard) want(heads ...string) {
	y.t.Helper()
	got := y.heads()
	slices.Sort(got)
	slices.Sort(heads)
	if !slices.Equal(got, heads) {
		y.t.Errorf("at %s there are\n%s, want\n%s", y.now().Format(time.RFC3339), strings.Join(got, "\n"), strings.Join(heads, "\n"))
	}
}

func (y *yard) newest() Digest {
	y.t.Helper()
	page, err := y.nodes[1].list(y.as(), listIn{op.PageIn{Limit: 1}})
	if err != nil || len(page.Data) == 0 {
		y.t.Fatalf("%+v (%v)", page, err)
	}
	d, err := y.nodes[0].get(y.as(), idIn{page.Data[0].ID})
	if err != nil {
		y.t.Fatal(err)
	}
	return d
}

// When a digest is due, in zones whose clocks change.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, zone, at, period, next string }{
		{Daily, "UTC", "2026-03-03T08:00:00Z", "2026-03-03", "2026-03-04T08:00:00Z"},
		{Daily, "UTC", "2026-03-03T07:59:59Z", "2026-03-02", "2026-03-03T08:00:00Z"},
		{Weekly, "UTC", "2026-03-03T12:00:00Z", "2026-03-02", "2026-03-09T08:00:00Z"},
		{Weekly, "UTC", "2026-03-02T07:00:00Z", "2026-02-23", "2026-03-02T08:00:00Z"},
		{Daily, "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-28", "2026-03-29T06:00:00Z"},
		{Weekly, "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-19", "2026-10-26T07:00:00Z"},
		{Daily, "Asia/Kolkata", "2026-03-03T02:30:00Z", "2026-03-03", "2026-03-04T02:30:00Z"},
		{Daily, "Pacific/Kiritimati", "2026-03-02T18:00:00Z", "2026-03-03", "2026-03-03T18:00:00Z"},
	} {
		zone, err := calendar.Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at := instant(t, c.at)
		if got, n := before(c.kind, at, zone).String(), next(c.kind, at, zone).Format(time.RFC3339); got != c.period || n != c.next {
			t.Errorf("%s in %s at %s: %s, then %s, want %s and %s", c.kind, c.zone, c.at, got, n, c.period, c.next)
		}
	}
}

// Two nodes make each digest once; each begins where the one before it ended.
func TestOnceEach(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		y.want()
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		y.pass()
		wednesday := "daily 2026-03-04 2026-03-03T08:00:00Z 2026-03-04T08:00:00Z"
		y.want(wednesday)
		y.set("2026-03-09T08:30:00Z") // a server that was off until Monday
		y.pass()
		weekly := "weekly 2026-03-09 2026-03-02T08:00:00Z 2026-03-09T08:00:00Z"
		monday := "daily 2026-03-09 2026-03-04T08:00:00Z 2026-03-09T08:00:00Z"
		y.want(wednesday, monday, weekly)
		y.set("2026-04-01T09:00:00Z") // off for more than a week
		y.pass()
		y.want(wednesday, monday, weekly, "daily 2026-04-01 2026-03-31T08:00:00Z 2026-04-01T08:00:00Z",
			"weekly 2026-03-30 2026-03-09T08:00:00Z 2026-03-30T08:00:00Z")
		if len(y.mails) != 0 {
			t.Errorf("%d mails about nothing", len(y.mails))
		}
		if d := y.newest(); !d.Quiet || d.Headline != "Nothing happened." || !strings.Contains(d.HTML, "Nothing happened.") ||
			strings.Contains(d.HTML, "<h2>") {
			t.Errorf("%+v", d)
		}
	})
}

// A node that dies before the end of a digest has made and mailed none; another does.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		y.add(seed.Pull{ID: "p", Account: "acme", Repo: "web", State: "merged", Merged: micros(y.t, "2026-03-04T07:00:00Z")})
		y.set("2026-03-04T08:00:10Z")
		y.fail = errors.New("killed") // a transaction that fails beside others may be tried again at once, alone
		duetest.Pass(y.t.Context(), y.t, y.nodes[0].Due)
		y.fail = nil
		y.want()
		y.set("2026-03-04T08:00:30Z")
		y.pass()
		y.want("daily 2026-03-04 2026-03-03T08:00:00Z 2026-03-04T08:00:00Z")
		if len(y.mails) != 1 {
			t.Errorf("%d mails", len(y.mails))
		}
	})
}

// A clock that is set back makes no digest twice, and puts none off.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		y.set("2026-03-03T20:00:00Z")
		y.pass()
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		first := "daily 2026-03-04 2026-03-03T08:00:00Z 2026-03-04T08:00:00Z"
		y.want(first)
		y.set("2026-03-05T08:00:10Z")
		y.pass()
		y.want(first, "daily 2026-03-05 2026-03-04T08:00:00Z 2026-03-05T08:00:00Z")
	})
}

// Another zone moves the hour; nothing is left out in between, and nothing told twice.
func TestZones(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		move := func(zone string) {
			y.write(func(tx *db.Tx) error { _, err := people.SetZone(tx, "acme", zone); return err })
			y.pass()
		}
		y.pass()
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		first := "daily 2026-03-04 2026-03-03T08:00:00Z 2026-03-04T08:00:00Z"
		move("America/Los_Angeles")
		y.set("2026-03-04T16:00:10Z") // 08:00 there, of the same date
		y.pass()
		y.want(first)
		y.set("2026-03-05T16:00:10Z")
		y.pass()
		second := "daily 2026-03-05 2026-03-04T08:00:00Z 2026-03-05T16:00:00Z"
		y.want(first, second)
		move("Asia/Tokyo")
		y.set("2026-03-05T23:00:10Z")
		y.pass()
		y.want(first, second, "daily 2026-03-06 2026-03-05T16:00:00Z 2026-03-05T23:00:00Z")
	})
}

// A digest tells what happened within its time and what waits now, and of no other account.
func TestContent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		ada, at, before := "ada", micros(y.t, "2026-03-03T09:00:00Z"), micros(y.t, "2026-03-03T07:59:59Z")
		after := micros(y.t, "2026-03-04T08:00:00Z")
		from := micros(y.t, "2026-03-03T08:00:00Z")
		task, cost := "work", int64(2_500_000)
		y.add(
			seed.Account{ID: "rival"}, seed.Repo{ID: "theirs", Account: "rival"},
			seed.Task{ID: "work", Account: "acme", Repo: "web", Status: "merged", Finished: at, By: &ada},
			seed.Pull{ID: "p1", Account: "acme", Repo: "web", Number: 1, State: "merged", Merged: from, Title: "Show the year", Task: &task,
				MergedBy: "user:ada"},
			seed.Pull{ID: "p2", Account: "acme", Repo: "web", Number: 2, State: "merged", Merged: before},
			seed.Pull{ID: "p3", Account: "acme", Repo: "web", Number: 3, State: "merged", Merged: after},
			seed.Pull{ID: "p4", Account: "rival", Repo: "theirs", Number: 4, State: "merged", Merged: at, Title: "Theirs"},
			seed.Pull{ID: "p5", Account: "acme", Repo: "web", Number: 5, State: "closed", Closed: at},
			seed.Pull{ID: "p6", Account: "acme", Repo: "web", Number: 6, Task: &task, Title: "May it?", Needs: "declined"},
			seed.Pull{ID: "p7", Account: "acme", Repo: "web", Number: 7, Title: "Stuck", Needs: "declined"},
			seed.Action{ID: "a6", Account: "acme", Pull: "p6", Kind: "merge"},
			seed.Task{ID: "failed", Account: "acme", Repo: "web", Status: "failed", Finished: at, Title: "Fail", Failure: "run_timeout",
				Why: "Too long."},
			seed.Task{ID: "old", Account: "acme", Repo: "web", Status: "failed", Finished: before, Title: "Old"},
			seed.Task{ID: "theirs", Account: "rival", Repo: "theirs", Status: "failed", Finished: at, Title: "Theirs"},
			seed.Task{ID: "held", Account: "acme", Repo: "web", Status: "held", Title: "Hold", Failure: "budget_exhausted"},
			seed.Task{ID: "blocked", Account: "acme", Repo: "web", Status: "held", Failure: "blocked"},
			seed.Escalation{ID: "e", Account: "acme", Title: "Decide", Created: *before},
			seed.Check{ID: "c1", Account: "acme", Repo: "web", Status: "passed", Finished: *at},
			seed.Check{ID: "c2", Account: "acme", Repo: "web", Status: "failed", Finished: *at},
			seed.Check{ID: "c3", Account: "acme", Repo: "web", Status: "lost", Finished: *at},
			seed.Spend{Account: "acme", Session: "s1", Minute: *at, Calls: 3, Micros: &cost},
			seed.Spend{Account: "acme", Session: "s2", Minute: *at, Calls: 2, Unpriced: 1},
			seed.Spend{Account: "acme", Session: "s1", Minute: *before, Calls: 9, Micros: &cost},
		)
		y.set("2026-03-04T08:00:10Z")
		y.plan("rival")
		y.pass()
		d := y.newest()
		c := d.Content
		if c.Merged.Total != 1 || len(c.Merged.Rows) != 1 || c.Merged.Rows[0].PRID != "p1" || *c.Merged.Rows[0].MergedBy != "ada" ||
			*c.Merged.Rows[0].RequestedBy != "ada" || c.Merged.Rows[0].Repo != "acme/web" {
			t.Errorf("merged %+v", c.Merged)
		}
		if c.Failed.Total != 1 || c.Failed.Rows[0].TaskID != "failed" || *c.Failed.Rows[0].Failure != "run_timeout" ||
			c.Failed.Rows[0].Why != "Too long." {
			t.Errorf("failed %+v", c.Failed)
		}
		var waits []string
		for _, w := range c.Waiting.Rows {
			waits = append(waits, w.Kind+" "+w.ID+" "+w.Why)
		}
		slices.Sort(waits)
		want := []string{"approval p6 merge", "escalation e unclear", "pr p7 declined", "task held budget_exhausted"}
		if !slices.Equal(waits, want) || c.Waiting.Total != 4 {
			t.Errorf("waiting %v, %d", waits, c.Waiting.Total)
		}
		if c.Cost.CostUSD == nil || *c.Cost.CostUSD != "2.50" || c.Cost.Sessions != 2 || c.Cost.Calls != 5 || c.Cost.Unpriced != 1 {
			t.Errorf("%+v", c.Cost)
		}
		rates := []Rate{{Name: "tasks_succeeded", N: 1, D: 2}, {Name: "prs_merged", N: 1, D: 2}, {Name: "checks_passed", N: 1, D: 2}}
		if !slices.Equal(c.Rates, rates) {
			t.Errorf("%+v", c.Rates)
		}
		if d.Headline != "1 merged, 4 waiting, 1 failed, $2.50" || len(y.mails) != 1 {
			t.Fatalf("%s, %d mails", d.Headline, len(y.mails))
		}
		m := y.mails[0]
		for _, text := range []string{m.Text, d.HTML} {
			for _, says := range []string{
				"Show the year", "Too long.", "run timeout", "for ada", "2.50", "1 of 2 tasks", "https://yard.example/ui/prs/p1",
				"https://yard.example/ui/prs/p6", "https://yard.example/ui/prs/p7", "https://yard.example/ui/escalations/e",
				"https://yard.example/ui/tasks/held",
			} {
				if !strings.Contains(text, says) {
					t.Errorf("lacks %q:\n%s", says, text)
				}
			}
			if strings.Contains(text, "Theirs") {
				t.Errorf("tells of another account:\n%s", text)
			}
		}
		if !strings.Contains(m.HTML, "as a member of acme") || strings.Contains(d.HTML, "as a member") {
			t.Errorf("the reason of a mail: %s", m.HTML)
		}
		if m.Subject != "acme, 2026-03-04: "+d.Headline || m.DigestID != d.ID || m.Kind != Daily {
			t.Errorf("%+v", m)
		}
	})
}

// Whatever agents and people write, a digest is inert.
func TestInert(t *testing.T) {
	t.Parallel()
	const evil = `<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1)) https://evil.example www.evil.example` +
		"\u202egnp.exe\r\nSubject: x"
	onBoth(t, func(y *yard) {
		y.pass()
		at := micros(y.t, "2026-03-03T09:00:00Z")
		y.add(
			seed.Pull{ID: "p1", Account: "acme", Repo: "web", Number: 1, State: "merged", Merged: at, Title: evil, MergedBy: evil},
			seed.Task{ID: "f", Account: "acme", Repo: "web", Status: "failed", Finished: at, Title: evil, Failure: "gave_up", Why: evil},
			seed.Escalation{ID: "e", Account: "acme", Title: evil + strings.Repeat("long ", 100)},
			seed.Task{ID: "g", Account: "acme", Repo: "web", Status: "failed", Finished: at, Why: "token ghp_" + strings.Repeat("a1B2", 9)},
		)
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		d := y.newest()
		for _, bad := range []string{
			"<script", "<img", "javascript:", "https://evil", "www.evil", "evil.example", "\u202e", "ghp_a1B2", strings.Repeat("long ", 60),
		} {
			if strings.Contains(d.HTML, bad) {
				t.Errorf("the page has %q:\n%s", bad, d.HTML)
			}
		}
		text := y.mails[0].Text
		for _, bad := range []string{"https://evil", "www.evil", "\u202e", "\r", "\nSubject", "ghp_a1B2"} {
			if strings.Contains(text, bad) {
				t.Errorf("the mail has %q:\n%s", bad, text)
			}
		}
		if strings.ContainsAny(y.mails[0].Subject, "<>\r\n") {
			t.Errorf("%q", y.mails[0].Subject)
		}
	})
}

// A list shows 50 rows and says how many there are.
func TestManyRows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		var rows []seed.Row
		for i := range 60 {
			at := *micros(y.t, "2026-03-03T09:00:00Z") + int64(i)
			id := "p" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			rows = append(rows, seed.Pull{ID: id, Account: "acme", Repo: "web", Number: i + 1, State: "merged", Merged: &at},
				seed.Escalation{ID: id, Account: "acme", Title: id, Created: int64(i)})
		}
		y.add(rows...)
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		c := y.newest().Content
		if c.Merged.Total != 60 || len(c.Merged.Rows) != 50 || c.Merged.Rows[0].Number != 60 ||
			c.Waiting.Total != 60 || len(c.Waiting.Rows) != 50 || c.Waiting.Rows[0].Title != "paa" {
			t.Errorf("%d of %d merged, %d of %d waiting", len(c.Merged.Rows), c.Merged.Total, len(c.Waiting.Rows), c.Waiting.Total)
		}
	})
}

// Digests are kept for 400 days.
func TestForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.pass()
		y.set("2026-03-04T08:00:10Z")
		y.pass()
		y.set("2027-04-08T07:00:00Z")
		y.pass()
		if n := len(y.heads()); n != 3 { // the first, and those of the day and the week before
			t.Errorf("%d digests", n)
		}
		y.set("2027-04-08T08:30:00Z")
		y.pass()
		for _, h := range y.heads() {
			if strings.Contains(h, "2026-03-04") {
				t.Errorf("kept %s", h)
			}
		}
	})
}
