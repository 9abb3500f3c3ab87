package issue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// yard is the service beside a host that keeps issues.
type yard struct {
	*Service
	codehost.NoForge
	t        *testing.T
	now      time.Time
	open     []codehost.Issue // of walks
	pages    int              // read so far
	during   func()           // called once, by the next question to the host
	may      map[string]codehost.Permission
	away     error
	there    map[int64]codehost.Issue
	said     []string
	edits    []codehost.IssueEdit
	asks     map[string]Filing // by id
	keys     map[string]string // ids by key
	webhooks []string
	obstacle Obstacle
	raised   []Question
	ended    []string // questions that were ended
	decided  []string // asks whose triage was ended
}

// Can implements codehost.Forge.
func (y *yard) Can(c codehost.Capability) bool { return c == codehost.KeepIssues }

// IssuesSince implements codehost.Forge. A page has 100 issues.
func (y *yard) IssuesSince(_ context.Context, _ codehost.Repo, _ time.Time, _ bool, cursor string) ([]codehost.Issue, string, error) {
	y.pages++
	if during := y.during; during != nil {
		y.during = nil
		during()
	}
	begin, _ := strconv.Atoi(cursor)
	end := min(begin+100, len(y.open))
	next := ""
	if end < len(y.open) {
		next = strconv.Itoa(end)
	}
	return y.open[begin:end], next, y.away
}

// Issue implements codehost.Forge.
func (y *yard) Issue(_ context.Context, _ codehost.Repo, n int64, _ codehost.Tag) (codehost.Issue, codehost.Tag, error) {
	i, ok := y.there[n]
	if during := y.during; during != nil {
		y.during = nil
		during()
	}
	if !ok {
		return i, "", codehost.ErrNotFound
	}
	return i, "", nil
}

// Permission implements codehost.Forge.
func (y *yard) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	return y.may[login], y.away
}

// AddComment implements codehost.Forge.
func (y *yard) AddComment(_ context.Context, _ codehost.Repo, _ codehost.Once, n int64, body string) (codehost.Comment, error) {
	y.said = append(y.said, fmt.Sprintf("#%d %s", n, body))
	return codehost.Comment{}, nil
}

// EditIssue implements codehost.Forge.
func (y *yard) EditIssue(_ context.Context, _ codehost.Repo, _ codehost.Once, _ int64, e codehost.IssueEdit) error {
	y.edits = append(y.edits, e)
	return nil
}

// OpenIssue implements codehost.Forge.
func (y *yard) OpenIssue(_ context.Context, _ codehost.Repo, _ codehost.Once, title, body string, _ []string) (codehost.Issue, error) {
	return codehost.Issue{
		Key: "99", Number: 99, Title: title, Body: body, Open: true, Author: codehost.User{Login: "ym[bot]", Own: true}, UpdatedAt: y.now,
	}, y.away
}

// File implements Asks.
func (y *yard) File(_ *db.Tx, f Filing) (string, bool, error) {
	if known, ok := y.keys[f.Key]; ok {
		return known, true, nil
	}
	askID := "ask" + strconv.Itoa(len(y.asks)+1)
	y.keys[f.Key], y.asks[askID] = askID, f
	return askID, false, nil
}

// Lock implements Asks.
func (y *yard) Lock(*db.Tx, string) error { return nil }

// Decide implements Asks.
func (y *yard) Decide(_ *db.Tx, askID string, d Decision) error {
	y.decided = append(y.decided, askID+" "+d.Category+d.EscalationID)
	return nil
}

// TakesHandoff implements Webhooks.
func (y *yard) TakesHandoff(tx *db.Tx, name string) (bool, Obstacle, error) {
	return tx.Account == "acme" && len(y.webhooks) > 0 && y.webhooks[0] == name, y.obstacle, nil
}

// Raise implements Escalations.
func (y *yard) Raise(_ *db.Tx, q Question) (string, error) {
	y.raised = append(y.raised, q)
	return "escalation", nil
}

// End implements Escalations.
func (y *yard) End(_ *db.Tx, escalationID, _ string) error {
	y.ended = append(y.ended, escalationID)
	return nil
}

// onBoth runs a test on both databases, where acme has the repository web with a policy.
func onBoth(t *testing.T, policyFile string, fn func(*yard)) {
	t.Helper()
	shared := &yard{now: time.Unix(1_700_000_000, 0)}
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return shared.now }}, func(t *testing.T, d *db.DB) {
		*shared = yard{
			t: t, now: shared.now, may: map[string]codehost.Permission{}, there: map[int64]codehost.Issue{}, asks: map[string]Filing{},
			keys: map[string]string{},
		}
		y := shared
		y.Service = y.node(d)
		y.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
				seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere", Policy: policyFile})
		})
		fn(y)
	})
}

// node is the service as a node of a database has it.
func (y *yard) node(d *db.DB) *Service {
	hosts := codehost.NewHosts(map[string]codehost.Sides{"elsewhere": {Host: &builtin.Host{}, Forge: y}})
	hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
	intents := intent.New(intent.Needs{DB: d, Due: duetest.New(d, hub), Hosts: hosts, Logger: log})
	intent.LineMoved.On(d, intents.FollowLine)
	return New(Needs{
		DB: d, Due: duetest.New(d, hub), Hosts: hosts, Logger: log, Asks: y, Webhooks: y, Escalations: y, Intents: intents,
	})
}

func (y *yard) ctx() context.Context {
	return policy.With(db.WithAccount(y.t.Context(), "acme"), policy.Actor{Credential: policy.System})
}

func (y *yard) write(fn func(*db.Tx) error) {
	y.t.Helper()
	if err := y.DB.Write(y.ctx(), fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) web() (r repo.Ref) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, "r1")
		return err
	})
	return r
}

// tells has the host tell of an issue, and does what is due.
func (y *yard) tells(e codehost.IssueChanged) {
	y.t.Helper()
	if err := y.HostChanged(y.ctx(), y.web(), e); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) pass() { duetest.Pass(y.ctx(), y.t, y.Due); duetest.Pass(y.ctx(), y.t, y.Intents.Due) }

// at is an issue as it is recorded.
func (y *yard) at(number int64) (r row, ok bool) {
	y.t.Helper()
	y.write(func(tx *db.Tx) (err error) {
		r, ok, err = byNumber.Maybe(tx, "acme", "r1", number)
		return err
	})
	return r, ok
}

// bug is an open issue of a person.
func (y *yard) bug(number int64, labels ...string) codehost.Issue {
	return codehost.Issue{
		Key: strconv.FormatInt(1000+number, 10), Number: number, Title: "It fails", Body: "Always.", URL: "https://elsewhere/1", Open: true,
		Author: codehost.User{Login: "bob"}, Labels: labels, CreatedAt: y.now, UpdatedAt: y.now,
	}
}

func event1(action codehost.Action, by string, i codehost.Issue) codehost.IssueChanged {
	e := codehost.IssueChanged{Happening: codehost.Happening{Action: action, By: codehost.User{Login: by}, At: i.UpdatedAt}, Issue: i}
	if action == codehost.ActionLabeled {
		e.Label = "yardmaster"
	}
	return e
}

var errAway = errors.New("connection refused")
