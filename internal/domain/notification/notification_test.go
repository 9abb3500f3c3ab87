package notification

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// post is the service with channels that remember.
type post struct {
	*Service
	t       *testing.T
	now     time.Time
	letters []mail.Letter
	refuses bool // of letters
	pushed  []Message
	routed  []Message
	hooked  []Message
}

type remembers struct{ all *[]Message }

func (r remembers) Deliver(_ *db.Tx, m Message) error {
	*r.all = append(*r.all, m)
	return nil
}

// Send implements mail.Transport.
func (p *post) Send(_ context.Context, l mail.Letter) error {
	if p.refuses {
		return mail.ErrAddress
	}
	p.letters = append(p.letters, l)
	return nil
}

// onBoth runs a test on both databases: acme has the owner ann and the member bob, eve is
// in another account.
func onBoth(t *testing.T, fn func(*post)) {
	t.Helper()
	shared := &post{now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return shared.now }}, func(t *testing.T, d *db.DB) {
		*shared = post{t: t, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
		p := shared
		hub, log, ring := event.NewHub(), slog.New(slog.DiscardHandler), seal.New()
		outbox := &mail.Outbox{DB: d, Hub: hub, Ring: ring, Transport: p, From: "ym@example.com", Logger: log, Hears: people.Hears}
		p.Service = New(Needs{
			DB: d, Hub: hub, Ring: ring, Mail: outbox, BaseURL: "https://ym.example.com", Logger: log,
			Push: remembers{&p.pushed}, Webhook: remembers{&p.hooked}, Routes: remembers{&p.routed},
		})
		p.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
				seed.User{ID: "ann", Email: "ann@example.com"}, seed.User{ID: "bob", Email: "bob@example.com"},
				seed.User{ID: "eve", Email: "eve@example.com"},
				seed.Member{Account: "acme", User: "ann", Role: "owner"}, seed.Member{Account: "acme", User: "bob", Role: "member"},
				seed.Member{Account: "rival", User: "eve", Role: "owner"})
		})
		fn(p)
	})
}

func (p *post) ctx() context.Context {
	return policy.With(db.WithAccount(p.t.Context(), "acme"), policy.Actor{Credential: policy.System})
}

func (p *post) write(fn func(*db.Tx) error) {
	p.t.Helper()
	if err := p.DB.Write(p.ctx(), fn); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) as(userID string) context.Context {
	return policy.With(p.ctx(), policy.Actor{Credential: policy.Session, UserID: userID, AccountID: "acme"})
}

// tell tells a notice, and sends the mails that are due.
func (p *post) tell(n Notice) {
	p.t.Helper()
	p.write(func(tx *db.Tx) error { return p.Tell(tx, n) })
	p.send()
}

func (p *post) send() {
	p.t.Helper()
	if err := p.Mail.Pass(p.ctx()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) inbox(userID string) (rows []Notification) {
	p.t.Helper()
	p.write(func(tx *db.Tx) (err error) {
		rows, _, err = p.Newest(tx, userID, 50)
		return err
	})
	return rows
}

func waits(subject string) Notice {
	return Notice{
		Kind: TaskFailed, Noun: "task", Subject: subject, Repo: "acme/web", Title: "Failed: mend it", Text: "It broke.",
		Path: "/ui/tasks/" + subject, To: []string{"ann", "bob", "bob", "eve", ""}, Actor: "user:ann",
	}
}

// Who acted, and who is no member, is told nothing; everybody else once.
func TestWho(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.tell(waits("t1"))
		if rows := p.inbox("bob"); len(rows) != 1 || rows[0].URL != "https://ym.example.com/ui/tasks/t1" {
			p.t.Errorf("bob has %+v", rows)
		}
		if rows := append(p.inbox("ann"), p.inbox("eve")...); len(rows) != 0 {
			p.t.Errorf("others have %+v", rows)
		}
		if len(p.letters) != 1 || p.letters[0].To != "bob@example.com" || len(p.pushed) != 1 || p.pushed[0].UserID != "bob" {
			p.t.Errorf("mails %+v, pushed %+v", p.letters, p.pushed)
		}
		// The account's channels hear of it once; bob has no webhook of his own.
		if len(p.hooked) != 1 || p.hooked[0].UserID != "" {
			p.t.Errorf("webhooks %+v", p.hooked)
		}
	})
}

// What waits for somebody is told to who caused it, if nobody else can settle it.
func TestAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		asks := []string{Escalation, Approval, Blocker}
		for i, kind := range asks {
			n := waits("beside " + kind)
			n.Kind, n.To = kind, []string{"ann", "bob"}
			p.tell(n)
			if rows := p.inbox("ann"); len(rows) != i {
				p.t.Errorf("beside bob, ann is told of what she did: %+v", rows)
			}
			n = waits("alone " + kind)
			n.Kind, n.To = kind, []string{"ann", ""}
			p.tell(n)
			if rows := p.inbox("ann"); len(rows) != i+1 || rows[i].Subject != n.Subject {
				p.t.Errorf("alone, ann has %+v", rows)
			}
		}
		n := waits("t3")
		n.To = []string{"ann"}
		p.tell(n)
		if rows := p.inbox("ann"); len(rows) != len(asks) {
			p.t.Errorf("ann is told of what she need not settle: %+v", rows)
		}
	})
}

// What concerns one person alone goes to no channel of the account.
func TestPersonal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		n := waits("t1")
		n.Personal = true
		p.tell(n)
		if len(p.hooked) != 0 || len(p.pushed) != 1 || len(p.inbox("bob")) != 1 {
			p.t.Errorf("webhooks %+v, pushed %+v", p.hooked, p.pushed)
		}
	})
}

// Unread rows about one subject are one row with a count, and one mail an hour.
func TestCollapse(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.tell(waits("t1"))
		p.tell(waits("t1"))
		p.tell(waits("t2"))
		rows := p.inbox("bob")
		if len(rows) != 2 || rows[0].Count != 2 || rows[1].Count != 1 || len(p.letters) != 2 {
			p.t.Fatalf("%+v, %d mails", rows, len(p.letters))
		}
		p.now = p.now.Add(mailEvery)
		p.tell(waits("t1"))
		if len(p.letters) != 3 || p.letters[2].Thread != p.letters[0].Thread || p.letters[2].Thread == p.letters[1].Thread {
			p.t.Errorf("%d mails", len(p.letters))
		}
		if _, err := p.read(p.as("bob"), oneIn{ID: rows[0].ID}); err != nil {
			p.t.Fatal(err)
		}
		p.tell(waits("t1"))
		if rows := p.inbox("bob"); len(rows) != 3 || rows[2].Count != 1 || rows[2].ReadAt != nil {
			p.t.Errorf("after it was read: %+v", rows)
		}
		p.write(func(tx *db.Tx) error { return p.Settle(tx, TaskFailed, "task", "t1") })
		if c, err := p.counts(p.as("bob"), struct{}{}); err != nil || c.Unread != 1 {
			p.t.Errorf("%+v %v", c, err)
		}
		// Nobody reads or marks the rows of another person.
		if _, err := p.read(p.as("ann"), oneIn{ID: rows[0].ID}); err == nil {
			p.t.Error("ann has read bob's row")
		}
	})
}

// Who leaves the account in the night, or is suspended, gets no mail of it in the morning.
func TestQuietUntilGone(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]func(tx *db.Tx) error{
		"removed": func(tx *db.Tx) error { return people.Remove(tx, "acme", "bob") },
		"suspended": func(tx *db.Tx) error {
			_, err := people.Suspend(tx, "bob")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(p *post) {
				p.set("bob", setIn{Quiet: new("22:00-07:00 Europe/Berlin")})
				p.now = time.Date(2026, 3, 2, 22, 30, 0, 0, time.UTC)
				p.tell(waits("t1"))
				p.write(leaves)
				p.now = time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
				p.send()
				if len(p.letters) != 0 {
					p.t.Errorf("mailed %+v", p.letters)
				}
			})
		})
	}
}

// Addresses of teams get each notice once, however many people it concerns, and none that is
// for a person.
func TestRouted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		n := waits("t1")
		n.To, n.Actor = []string{"ann", "bob", "bob"}, "user:ann"
		p.tell(n)
		n.To = nil
		p.tell(n)
		if len(p.routed) != 2 || p.routed[0].UserID != "" || p.routed[0].Title != n.Title || p.routed[0].URL == "" {
			p.t.Errorf("%+v", p.routed)
		}
	})
}

// Mails about one subject have one subject line, whatever their titles say.
func TestSubjectOfThread(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		n := waits("t1")
		n.Title, n.About, n.Repo = "Failed: Fix it", "Stopped: Fix it\r\nBcc: x", "acme/web"
		p.tell(n)
		p.now = p.now.Add(mailEvery)
		n.Title = "Waits for a person: Fix it"
		p.tell(n)
		if len(p.letters) != 2 || p.letters[0].Subject != "[acme/web] Stopped: Fix it Bcc: x" ||
			p.letters[1].Subject != p.letters[0].Subject ||
			p.letters[1].Thread != p.letters[0].Thread || p.letters[0].List != TaskFailed ||
			!strings.Contains(p.letters[1].Text, n.Title) || !strings.Contains(p.letters[1].HTML, n.Title) {
			p.t.Errorf("%+v", p.letters)
		}
	})
}

// A person whose address a mail server has refused reads so, and has their inbox as before.
func TestRefusedAddress(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		refusedAt := func(user string) *time.Time {
			got, err := p.prefs(p.as(user), struct{}{})
			if err != nil {
				p.t.Fatal(err)
			}
			return got.EmailRefusedAt
		}
		p.refuses = true
		p.tell(waits("t1"))
		p.refuses = false
		p.tell(waits("t2"))
		if at := refusedAt("bob"); at == nil || !at.Equal(p.now) || refusedAt("ann") != nil {
			p.t.Errorf("refused at %v", at)
		}
		if got, err := p.setPrefs(p.as("bob"), setIn{Quiet: new("")}); err != nil || got.EmailRefusedAt == nil {
			p.t.Errorf("prefs_set answers %+v, %v", got, err)
		}
		if len(p.inbox("bob")) != 2 || len(p.letters) != 0 {
			p.t.Errorf("%d rows, %d mails", len(p.inbox("bob")), len(p.letters))
		}
		p.write(func(tx *db.Tx) error {
			_, err := mail.Clear(tx, "bob@example.com")
			return err
		})
		p.tell(waits("t3"))
		if len(p.letters) != 1 || refusedAt("bob") != nil {
			p.t.Errorf("%d mails after it is cleared", len(p.letters))
		}
	})
}

func TestQuietEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ quiet, now, ends string }{
		{"22:00-07:00 Europe/Berlin", "2026-03-02T20:59:00Z", "2026-03-02T20:59:00Z"}, // 21:59
		{"22:00-07:00 Europe/Berlin", "2026-03-02T21:00:00Z", "2026-03-03T06:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-03-03T05:59:00Z", "2026-03-03T06:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-03-03T06:00:00Z", "2026-03-03T06:00:00Z"},
		{"22:00-07:00 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // the clock goes forward at night
		{"22:00-02:30 Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-29T01:30:00Z"}, // 02:30 is left out that night
		{"22:00-07:00 Europe/Berlin", "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"}, // and back
		{"09:00-17:00 Asia/Kolkata", "2026-03-02T03:30:00Z", "2026-03-02T11:30:00Z"},
		{"09:00-17:00 Asia/Kolkata", "2026-03-02T11:30:00Z", "2026-03-02T11:30:00Z"},
		{"23:00-06:00 America/St_Johns", "2026-12-31T03:00:00Z", "2026-12-31T09:30:00Z"},
	} {
		q, err := parseQuiet(c.quiet)
		if err != nil || q.String() != c.quiet {
			t.Fatalf("%s: %v %v", c.quiet, q, err)
		}
		now, _ := time.Parse(time.RFC3339, c.now)
		if got := q.ends(now).UTC().Format(time.RFC3339); got != c.ends {
			t.Errorf("%s at %s ends at %s, not %s", c.quiet, c.now, got, c.ends)
		}
	}
}

func (p *post) set(userID string, in setIn) {
	p.t.Helper()
	if _, err := p.setPrefs(p.as(userID), in); err != nil {
		p.t.Fatal(err)
	}
}

// What a person has switched off does not reach them by that channel, and by no other
// change; an escalation always does.
func TestChosen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		off := map[string]bool{Inbox: false, Email: false, Push: false, Webhook: true}
		p.set("bob", setIn{Matrix: map[string]map[string]bool{TaskFailed: off}})
		p.tell(waits("t1"))
		if len(p.inbox("bob")) != 0 || len(p.letters) != 0 || len(p.pushed) != 0 || len(p.hooked) != 2 || p.hooked[0].UserID != "bob" {
			p.t.Errorf("%+v %+v %+v", p.inbox("bob"), p.letters, p.hooked)
		}
		for _, kind := range Kinds() {
			for _, channel := range Channels() {
				_, err := p.setPrefs(p.as("bob"), setIn{Matrix: map[string]map[string]bool{kind: {channel: false}}})
				if (err != nil) != (kind == Escalation) {
					p.t.Errorf("%s off by %s: %v", kind, channel, err)
				}
			}
		}
		all := waits("e1")
		all.Kind = Escalation
		p.tell(all)
		if len(p.inbox("bob")) != 1 || len(p.letters) != 1 || p.letters[0].Unsubscribe != "" {
			p.t.Errorf("%+v %+v", p.inbox("bob"), p.letters)
		}
	})
}

// A link of a mail ends the mails of one kind, for its person and account; it can be
// neither changed nor used for ever.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.tell(waits("t1"))
		address, err := url.Parse(p.letters[0].Unsubscribe)
		if err != nil || address.Path != "/unsubscribe" {
			p.t.Fatal(p.letters[0].Unsubscribe, err)
		}
		token := address.Query().Get("token")
		page, err := p.unsubscribePage(p.t.Context(), pageIn{Token: token})
		if err != nil || !strings.Contains(page.Body.(string), "task failed") {
			p.t.Fatalf("%+v %v", page, err)
		}
		p.tell(waits("t2"))
		if len(p.letters) != 2 {
			p.t.Error("the page has changed something")
		}
		head, rest, _ := strings.Cut(token, ".")
		for _, forged := range []string{"", "x", token[:len(token)-2], head + "." + rest[1:], token + "A"} {
			if _, err := p.unsubscribe(p.t.Context(), unsubscribeIn{Token: forged}); err == nil ||
				!strings.Contains(err.Error(), errTampered.Slug) {
				p.t.Errorf("%q: %v", forged, err)
			}
		}
		for range 2 { // again is no error
			if r, err := p.unsubscribe(p.t.Context(), unsubscribeIn{Token: token, Click: "One-Click"}); err != nil ||
				r.Body != (Unsubscribed{Kind: TaskFailed}) {
				p.t.Fatalf("%+v %v", r, err)
			}
		}
		p.tell(waits("t3"))
		other := waits("t3")
		other.Kind = Blocker
		p.tell(other)
		if len(p.letters) != 3 || len(p.inbox("bob")) != 4 {
			p.t.Errorf("%d mails, %d rows", len(p.letters), len(p.inbox("bob")))
		}
		p.now = p.now.Add(linkLife)
		if _, err := p.unsubscribe(p.t.Context(), unsubscribeIn{Token: token}); err == nil ||
			fault.From(err).Slug != "unsubscribe-link-expired" {
			p.t.Errorf("expired: %v", err)
		}
	})
}

// Text of others cannot leave its place: no second header, no address to press, no markup.
func TestInert(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		n := waits("t1")
		n.Title = "<script>alert(1)</script>\r\nBcc: eve@example.com \u202e www.evil.example"
		n.Text = "<img src=x onerror=alert(1)> https://evil.example/ <!channel> ghp_" + strings.Repeat("a1B2", 9)
		p.tell(n)
		l := p.letters[0]
		for _, part := range []string{l.Subject, l.Text, l.HTML} {
			for _, bad := range []string{"\r", "<script", "<img", "https://evil", " www.evil", "\u202e", "ghp_a1B2"} {
				if strings.Contains(part, bad) && !(part != l.HTML && strings.HasPrefix(bad, "<")) {
					p.t.Errorf("%q is in %q", bad, part)
				}
			}
		}
	})
}

// A row is on the stream in the order of its changes, and those that are archived leave it.
func TestSince(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *post) {
		p.tell(waits("t1"))
		_, at := p.changed(0)
		p.tell(waits("t2"))
		p.tell(waits("t1"))
		rows, at := p.changed(at)
		if len(rows) != 2 || rows[0].Subject != "t2" || rows[1].Count != 2 {
			p.t.Fatalf("%+v", rows)
		}
		if _, err := p.archive(p.as("bob"), oneIn{ID: rows[0].ID}); err != nil {
			p.t.Fatal(err)
		}
		if rows, _ = p.changed(at); len(rows) != 1 || rows[0].ArchivedAt == nil || len(p.inbox("bob")) != 1 {
			p.t.Errorf("%+v", rows)
		}
	})
}

func (p *post) changed(after int64) (rows []Notification, at int64) {
	p.t.Helper()
	p.write(func(tx *db.Tx) (err error) {
		rows, at, err = p.Since(tx, "bob", after, 500)
		return err
	})
	return rows, at
}
