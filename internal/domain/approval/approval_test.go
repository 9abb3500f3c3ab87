package approval

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// desk has one question, and those who may answer it: olga the owner, adam the admin,
// mia a member and vic a viewer.
type desk struct {
	*Service
	t     *testing.T
	clock atomic.Int64 // Unix microseconds

	mu      sync.Mutex
	q       Question
	asker   string
	change  Change
	unread  error
	decides error    // of Decide
	decided []string // actor, verb
	last    sealed   // of posted
}

func (d *desk) now() time.Time { return time.UnixMicro(d.clock.Load()).UTC() }

func (d *desk) later(by time.Duration) { d.clock.Add(by.Microseconds()) }

func (d *desk) ByID(tx *db.Tx, actionID string) (Question, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.q, tx.Account == "acme" && actionID == d.q.ID, nil
}

func (d *desk) Decide(tx *db.Tx, q Question, yes bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decides != nil {
		return d.decides
	}
	by := policy.From(tx.Context()).Label()
	verb := map[bool]string{true: "yes", false: "no"}[yes]
	tx.AfterCommit(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.q.State, d.q.DecidedBy = Decided, &by
		d.decided = append(d.decided, by+" "+verb+" "+q.HeadSHA)
	})
	return nil
}

func (d *desk) RequestedBy(*db.Tx, Question) (string, error) { return d.asker, nil }

// Mailed implements Wishes: everybody wants mails, at once.
func (d *desk) Mailed(tx *db.Tx, userID string) (Wish, error) {
	return Wish{Wanted: true, From: tx.Now, Unsubscribe: "https://yard.example/unsubscribe?token=" + userID}, nil
}

func (d *desk) Change(context.Context, string) (Change, error) { return d.change, d.unread }

const head = "3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b"

func onBoth(t *testing.T, fn func(*testing.T, *desk)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			d := &desk{t: t}
			d.clock.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
			d.q = Question{
				ID: "0199d3a4-5b6c-7d8e-9f01-23456789abcd", PRID: "pr", State: Pending, HeadSHA: head, Present: head, Looked: true,
				Repo: "acme/web", Number: 7, Title: "Fix the date", URL: "https://yard.example/ui/prs/pr", Text: "Merge this head?",
				Cost:      "1.25",
				ExpiresAt: d.now().Add(14 * 24 * time.Hour),
			}
			base := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: d.now})
			ring, hub := seal.New(), event.NewHub()
			d.Service = New(Needs{
				DB: base, Hub: hub, Due: duetest.New(base, hub), Ring: ring, BaseURL: "https://yard.example",
				Logger: slog.New(slog.DiscardHandler), Questions: d,
				Mail: &mail.Outbox{DB: base, Hub: hub, Ring: ring}, Wishes: d,
			})
			d.write(func(tx *db.Tx) error {
				rows := []seed.Row{seed.Account{ID: "acme"}}
				for login, role := range map[string]string{"olga": "owner", "adam": "admin", "mia": "member", "vic": "viewer"} {
					rows = append(rows, seed.User{ID: login}, seed.Member{Account: "acme", User: login, Role: role})
				}
				rows = append(rows, seed.User{ID: "wanda", Waiting: true}, seed.Member{Account: "acme", User: "wanda", Role: "owner"})
				return seed.Add(tx, rows...)
			})
			fn(t, d)
		})
	}
}

func (d *desk) ctx() context.Context { return db.WithAccount(context.Background(), "acme") }

func (d *desk) write(fn func(*db.Tx) error) {
	d.t.Helper()
	if err := d.DB.Write(d.ctx(), fn); err != nil {
		d.t.Fatal(err)
	}
}

var (
	mails = db.Q[struct{ ID, Recipient, Subject, Sealed string }](`SELECT id, recipient, subject, sealed FROM mails ORDER BY recipient`)
	waits = db.Q[int64](`SELECT COUNT(*) FROM approval_mails`)
	used  = db.Q[int64](`SELECT COUNT(*) FROM action_links WHERE redeemed_at IS NOT NULL`)
)

// sealed is what a row keeps of a mail.
type sealed struct{ Text, HTML, Unsubscribe, Thread string }

// posted are the mails so far: address, subject and text.
func (d *desk) posted() (to []string, texts map[string]string) {
	d.t.Helper()
	texts = map[string]string{}
	d.write(func(tx *db.Tx) error {
		to = nil
		rows, err := mails.All(tx)
		for _, m := range rows {
			opened, bad := d.Ring.Unseal("mail/"+m.ID, m.Sealed)
			if bad != nil {
				return bad
			}
			var l sealed
			if bad := json.Unmarshal(opened, &l); bad != nil {
				return bad
			}
			d.last = l
			to = append(to, strings.TrimSuffix(m.Recipient, "@example.com"))
			texts[to[len(to)-1]] = m.Subject + "\n" + l.Text
		}
		return err
	})
	return to, texts
}

// pass writes the mails that are due.
func (d *desk) pass() {
	d.t.Helper()
	duetest.Pass(d.t.Context(), d.t, d.Due)
}

// ask orders the mails and writes them.
func (d *desk) ask() {
	d.t.Helper()
	d.write(func(tx *db.Tx) error { return d.Ask(tx, d.q.ID) })
	d.pass()
}

var linkForm = regexp.MustCompile(`(?m)^https://yard\.example(/actions/\S+)$`)

// links are the paths of the links in the mail to a person.
func (d *desk) links(to string) (approve, skip string) {
	d.t.Helper()
	_, texts := d.posted()
	found := linkForm.FindAllStringSubmatch(texts[to], -1)
	if len(found) != 2 {
		d.t.Fatalf("%d links in the mail to %s:\n%s", len(found), to, texts[to])
	}
	return found[0][1], found[1][1]
}

func (d *desk) call(method, path, accept string) *httptest.ResponseRecorder {
	d.t.Helper()
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "https://yard.example"}}, d.Ops())
	req := httptest.NewRequestWithContext(d.t.Context(), method, path, nil)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// wantRefused fails unless both methods answer the status; slug is that of the POST.
func (d *desk) wantRefused(path string, get, post int, slug string) string {
	d.t.Helper()
	if w := d.call("GET", path, "application/json"); w.Code != get {
		d.t.Errorf("GET: %d %s", w.Code, w.Body)
	}
	w := d.call("POST", path, "application/json")
	if w.Code != post || !strings.Contains(w.Body.String(), "/problems/"+slug+`"`) {
		d.t.Errorf("POST: %d %s, want %s", w.Code, w.Body, slug)
	}
	return w.Body.String()
}

func (d *desk) wantDecided(want ...string) {
	d.t.Helper()
	if !slices.Equal(d.decided, want) {
		d.t.Errorf("decided %q, want %q", d.decided, want)
	}
}

// Who asked for the work is asked; if they may not decide, the owners and admins are.
func TestRecipients(t *testing.T) {
	t.Parallel()
	for asker, want := range map[string]string{
		"mia": "mia", "": "adam olga", "vic": "adam olga", "gone": "adam olga", "wanda": "adam olga",
	} {
		t.Run("asked by "+asker, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, d *desk) {
				d.asker = asker
				d.ask()
				to, texts := d.posted()
				if strings.Join(to, " ") != want {
					t.Errorf("written to %q", to)
				}
				for _, login := range to { // others are told whose work it is
					known := asker != "" && asker != "gone" && asker != login
					if strings.Contains(texts[login], "asked by") != known || known && !strings.Contains(texts[login], asker) {
						t.Errorf("%s is told:\n%s", login, texts[login])
					}
				}
			})
		})
	}
}

// A question is mailed once, whoever looks, and one that needs no answer never.
func TestOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.asker = "mia"
		d.write(func(tx *db.Tx) error { return errors.Join(d.Ask(tx, d.q.ID), d.Ask(tx, d.q.ID)) })
		other := d.Needs
		other.Due = duetest.New(d.DB, d.Hub)
		New(other)
		duetest.Pass(t.Context(), t, d.Due, other.Due)
		d.later(time.Hour)
		d.pass()
		if to, _ := d.posted(); len(to) != 1 {
			t.Errorf("written to %q", to)
		}
		d.q.State = Decided // by the policy
		d.ask()
		if to, _ := d.posted(); len(to) != 1 {
			t.Errorf("written to %q", to)
		}
		d.write(func(tx *db.Tx) error {
			n, err := waits.One(tx)
			if n != 0 {
				t.Errorf("%d mails wait", n)
			}
			return err
		})
	})
}

// A mail says what is asked, and nothing that others wrote is an address, or a line of
// the mail's own.
func TestText(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.asker = "mia"
		d.q.Title = "Fix\nApprove the merge:\r\nhttps://evil.example/actions/x \u202eand www.evil.example " + strings.Repeat("x", 500)
		d.q.Protected, d.q.More = []string{".svc/policy.yml"}, 3
		d.change = Change{
			Files: []File{{Path: "README", Kind: "modified", Additions: 3, Deletions: 1}, {Path: "logo.png", Kind: "added", Binary: true}},
			More:  1, Additions: 3, Deletions: 1,
		}
		d.ask()
		_, texts := d.posted()
		text := texts["mia"]
		for _, want := range []string{
			"acme/web #7 waits for your decision: Fix Approve", "head " + head, "Merge this head?", ".svc/policy.yml", "and 3 more",
			"It changes 3 files, +3 -1:", "and 1 more", "modified     +3 -1  README", "added        binary  logo.png",
			"https://yard.example/ui/prs/pr",
			"2026-01-05 03:04 UTC",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in the mail:\n%s", want, text)
			}
		}
		for _, bad := range []string{"https://evil", "www.evil", "\u202e", strings.Repeat("x", 200)} {
			if strings.Contains(text, bad) {
				t.Errorf("%q is in the mail:\n%s", bad, text)
			}
		}
		if n := strings.Count(text, "\nApprove the merge:"); n != 1 {
			t.Errorf("%d lines offer the approval:\n%s", n, text)
		}
		approve, skip := d.links("mia")
		for _, link := range []string{approve, skip} {
			if strings.Count(d.last.HTML, `href="https://yard.example`+link+`"`) != 1 {
				t.Errorf("no button leads to %s:\n%s", link, d.last.HTML)
			}
		}
		if strings.Count(d.last.HTML, "href=") != 3 || strings.Contains(d.last.HTML, "https://evil") {
			t.Errorf("the HTML has other links:\n%s", d.last.HTML)
		}
		if d.last.Thread != "approval/pr/pr" || !strings.HasSuffix(d.last.Unsubscribe, "token=mia") {
			t.Errorf("the mail has the thread %q and the link %q", d.last.Thread, d.last.Unsubscribe)
		}
	})
}

// A link decides once, in the name of the person whom it was mailed to, and opening it
// decides nothing.
func TestRedeem(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.q.Title = "<b>Fix</b>"
		d.ask()
		approve, skip := d.links("olga")
		other, _ := d.links("adam")
		for range 2 {
			if w := d.call("GET", approve, "text/html"); w.Code != 200 || !strings.Contains(w.Body.String(), "&lt;b&gt;Fix") ||
				!strings.Contains(w.Body.String(), "You decide as olga") ||
				!strings.Contains(w.Body.String(), "cost $1.25 so far") || w.Header().Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
		}
		d.wantDecided()
		var all sync.WaitGroup
		codes := make([]int, 4)
		for i := range codes {
			all.Go(func() { codes[i] = d.call("POST", approve, "text/html").Code })
		}
		all.Wait()
		if slices.Sort(codes); !slices.Equal(codes, []int{200, 409, 409, 409}) {
			t.Errorf("%v", codes)
		}
		d.wantDecided("user:olga yes " + head)
		d.wantRefused(approve, 200, 409, "already_redeemed")
		if said := d.wantRefused(skip, 200, 409, "already_decided"); !strings.Contains(said, `"decided_by":"user:olga"`) {
			t.Error(said)
		}
		d.wantRefused(other, 200, 409, "already_decided")
	})
}

// A link ends with its time, with the head and the question that it is about, and with
// what its person may do.
func TestLinkEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil     func(*desk)
		get, post int
		slug      string
	}{
		"after 72 hours":         {func(d *desk) { d.later(72 * time.Hour) }, 410, 410, "action-link-expired"},
		"before":                 {func(d *desk) { d.later(72*time.Hour - 2*time.Second) }, 200, 200, ""},
		"with a newer head":      {func(d *desk) { d.q.State, d.q.Present = Stale, "beef" }, 200, 409, "head_moved"},
		"with another question":  {func(d *desk) { d.q.State = Stale }, 200, 409, "question_changed"},
		"declined elsewhere":     {func(d *desk) { d.q.State = Declined }, 200, 409, "already_decided"},
		"lapsed":                 {func(d *desk) { d.q.State = Lapsed }, 200, 409, "question_expired"},
		"with the membership":    {func(d *desk) { d.write(leave) }, 403, 403, "not-a-member"},
		"and is not revived":     {leaveAndComeBack, 403, 403, "not-a-member"},
		"with the role":          {func(d *desk) { d.write(demote) }, 403, 403, "not-a-member"},
		"with the approval":      {func(d *desk) { d.write(suspend) }, 403, 403, "not-a-member"},
		"with the question gone": {func(d *desk) { d.q.ID = "another" }, 410, 410, "action-link-expired"},
		"as the pull request says": {func(d *desk) { d.decides = fault.Reason("pr_not_open", "It is closed.") }, 200, 409,
			"pr_not_open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, d *desk) {
				d.asker = "mia"
				d.ask()
				_, skip := d.links("mia")
				c.spoil(d)
				if c.post == 200 {
					if w := d.call("POST", skip, "application/json"); w.Code != 200 || !strings.Contains(w.Body.String(), `"verb":"skip"`) {
						t.Errorf("%d %s", w.Code, w.Body)
					}
					d.wantDecided("user:mia no " + head)
					return
				}
				d.wantRefused(skip, c.get, c.post, c.slug)
				d.wantDecided()
				d.write(func(tx *db.Tx) error {
					n, err := used.One(tx)
					if n != 0 {
						t.Error("the link counts as used")
					}
					return err
				})
			})
		})
	}
}

// Ways in which mia ceases to be one who may decide.
func leave(tx *db.Tx) error { return people.Remove(tx, "acme", "mia") }
func comeBack(tx *db.Tx) error {
	_, err := people.Join(tx, "acme", "mia", policy.Member)
	return err
}
func leaveAndComeBack(d *desk) {
	d.write(leave)
	d.later(2 * people.Apart)
	d.write(comeBack)
}
func demote(tx *db.Tx) error { return people.SetRole(tx, "acme", "mia", policy.Viewer) }
func suspend(tx *db.Tx) error {
	_, err := people.Suspend(tx, "mia")
	return err
}

// A link does not outlive its question, and no other token is a link.
func TestTokens(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.asker = "mia"
		d.q.ExpiresAt = d.now().Add(time.Hour)
		d.ask()
		approve, _ := d.links("mia")
		d.later(time.Hour)
		d.wantRefused(approve, 410, 410, "action-link-expired")
		d.later(-time.Hour)
		soon := d.now().Add(time.Minute)
		link := seal.Link{Subject: d.q.ID, Account: "acme", Expires: soon}
		d.wantRefused("/actions/"+d.Ring.SignLink("blocker-fix", link), 400, 400, "invalid")
		d.wantRefused("/actions/"+seal.New().SignLink(linkPurpose, link), 400, 400, "invalid")
		d.wantRefused(approve[:len(approve)-1], 400, 400, "invalid")
		d.wantRefused("/actions/"+d.Ring.SignLink(linkPurpose, link), 410, 410, "action-link-expired") // signed, and of no row
		d.wantDecided()
	})
}

// Links that expired long ago are forgotten, and mails do not wait longer after the
// clock is set back.
func TestForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.asker = "mia"
		d.ask()
		approve, _ := d.links("mia")
		d.later(linkLife + keepLinks + time.Minute)
		d.q.Looked = false
		d.ask()
		d.tidy(t.Context())
		d.later(-linkLife - keepLinks - time.Hour)
		d.pass() // begins the wait anew
		d.q.Looked = true
		d.later(longestWait)
		d.pass()
		if to, _ := d.posted(); len(to) != 2 {
			t.Errorf("written to %q", to)
		}
		d.wantRefused(approve, 410, 410, "action-link-expired") // its row is gone
	})
}
