package talk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// yard has the conversation about one pull request of acme/web, which changes lines 3 to 5 of
// the file a and lines 3 and 4 of what it was before.
type yard struct {
	*Service
	t     *testing.T
	pr    Pull
	words []Words
	back  []string
}

var head = strings.Repeat("a", 40)

func open(t *testing.T, e db.Engine) *yard {
	y := &yard{t: t, pr: Pull{ID: id.New(), HeadSHA: head, Number: 1}}
	d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{})
	host, err := builtin.New(builtin.Config{Root: t.TempDir(), BaseURL: "http://host"})
	if err != nil {
		t.Fatal(err)
	}
	hub := event.NewHub()
	hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}})
	y.Service = New(Needs{DB: d, Hosts: hosts, Pulls: y,
		Intents: intent.New(intent.Needs{DB: d, Due: duetest.New(d, hub), Hosts: hosts, Logger: slog.New(slog.DiscardHandler)})})
	if err := d.Write(y.as("ada"), func(tx *db.Tx) (err error) {
		if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
			return err
		}
		y.pr.RepoID, err = repo.Install(tx, codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}, "main", true)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return y
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) { fn(t, open(t, e)) })
	}
}

func (y *yard) as(user string) context.Context {
	return policy.With(db.WithAccount(context.Background(), "acme"), policy.Actor{Credential: policy.PAT, UserID: user, AccountID: "acme"})
}

// Get implements Pulls.
func (y *yard) Get(_ *db.Tx, prID string) (Pull, bool, error) { return y.pr, prID == y.pr.ID, nil }

// At implements Pulls.
func (y *yard) At(_ *db.Tx, prID, headSHA string) (Pull, error) {
	switch {
	case prID != y.pr.ID:
		return Pull{}, fault.Missing("pull request")
	case headSHA != "" && headSHA != y.pr.HeadSHA:
		return Pull{}, fault.Reason("head_moved", "It has moved.")
	}
	return y.pr, nil
}

// Request implements Pulls.
func (y *yard) Request(_ *db.Tx, w Words) error {
	y.words = append(y.words, w)
	return nil
}

// TakeBack implements Pulls.
func (y *yard) TakeBack(_ *db.Tx, _, requestID string) ([]string, error) {
	y.back = append(y.back, requestID)
	return []string{requestID}, nil
}

// Hunks implements Pulls.
func (y *yard) Hunks(_ context.Context, _, _, path string) ([]codehost.Hunk, bool, error) {
	return []codehost.Hunk{{OldStart: 3, OldLines: 2, NewStart: 3, NewLines: 3}}, path == "a", nil
}

// Name implements Pulls.
func (y *yard) Name(_ *db.Tx, label string) (string, error) { return "Name of " + label, nil }

// wrong is the field that a fault names, or its slug.
func wrong(err error) string {
	f, is := errors.AsType[*fault.Error](err)
	if !is {
		return fmt.Sprint(err)
	}
	for field := range f.Fields {
		return field
	}
	return f.Slug
}

// What makes no sense, or is too much, names its field, and nothing changes.
func TestLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		long := strings.Repeat("x", maxBody)
		line := func(path, side, body string, n int) lineNote {
			return lineNote{Path: path, Line: n, Side: codehost.Side(side), Body: body}
		}
		for want, in := range map[string]requestIn{
			"body":            {},
			"head_moved":      {HeadSHA: strings.Repeat("b", 40), Body: "x"},
			"comments.0.body": {Comments: []lineNote{line("a", "", " ", 3)}},
			"comments.0.line": {Comments: []lineNote{line("a", "", "x", 6)}},
			"comments.1.line": {Comments: []lineNote{line("a", "LEFT", "x", 4), line("a", "LEFT", "x", 5)}},
			"comments.0.path": {Body: "x", Comments: []lineNote{line("b", "", "x", 3)}},
			"comments.2.body": {Body: long, Comments: []lineNote{
				line("a", "", long, 3), line("a", "", long[1:], 3), line("a", "", "xx", 3),
			}},
		} {
			in.ID = y.pr.ID
			if in.HeadSHA == "" {
				in.HeadSHA = head
			}
			if _, err := y.request(y.as("ada"), in); wrong(err) != want {
				t.Errorf("%s: %v", want, err)
			}
		}
		for want, in := range map[string]commentIn{
			"body":      {Body: long + "x"},
			"path":      {Body: "x", Line: 3},
			"line":      {Body: "x", Path: "a"},
			"not-found": {Body: "x", ThreadID: id.New()},
		} {
			in.ID = y.pr.ID
			if _, err := y.comment(y.as("ada"), in); wrong(err) != want {
				t.Errorf("%s: %v", want, err)
			}
		}
		page, err := y.list(y.as("ada"), listIn{ID: y.pr.ID, PageIn: op.PageIn{PerPage: 25}})
		if err != nil || len(page.Data)+len(y.words) != 0 {
			t.Errorf("%d threads, %d requests: %v", len(page.Data), len(y.words), err)
		}
	})
}

// A request is threads here and words for an agent; the head that answers it resolves what
// nobody has resolved.
func TestRequestIsAnswered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		got, err := y.request(y.as("ada"), requestIn{ID: y.pr.ID, HeadSHA: head, Body: " Not so. ", Comments: []lineNote{
			{Path: "a", Line: 3, Body: "This."}, {Path: "a", Line: 4, Side: "LEFT", Body: "That."},
		}})
		if err != nil || len(got.Threads) != 3 || got.Author != "user:ada" {
			t.Fatalf("%+v, %v", got, err)
		}
		if w := y.words[0]; w.ID != got.ID || w.Text != "Not so.\n\na:3\nThis.\n\na:4 before the change\nThat." {
			t.Errorf("words: %+v", w)
		}
		first, err := y.resolve(y.as("bob"), resolveIn{ID: y.pr.ID, ThreadID: got.Threads[1].ID})
		if err != nil || first.State != Resolved || *first.ResolvedBy != "user:bob" {
			t.Fatalf("%+v, %v", first, err)
		}
		if err := y.DB.Write(y.as("ada"), func(tx *db.Tx) error {
			return y.Answered(tx, Answer{PRID: y.pr.ID, RequestIDs: []string{got.ID}, SHA: strings.Repeat("c", 40)})
		}); err != nil {
			t.Fatal(err)
		}
		page, err := y.list(y.as("ada"), listIn{ID: y.pr.ID, PageIn: op.PageIn{PerPage: 25}})
		if err != nil || len(page.Data) != 3 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, at := range page.Data {
			byHead := at.ResolvedSHA != nil && at.ResolvedBy == nil
			if at.State != Resolved || byHead == (at.ID == first.ID) {
				t.Errorf("%+v", at)
			}
		}
	})
}

// A thread takes 50 comments.
func TestThreadIsFull(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		at, err := y.comment(y.as("ada"), commentIn{ID: y.pr.ID, Body: "0"})
		for n := 1; n < maxComments && err == nil; n++ {
			at, err = y.comment(y.as("bob"), commentIn{ID: y.pr.ID, Body: fmt.Sprint(n), ThreadID: at.ID})
		}
		if err != nil || len(at.Comments) != maxComments || at.Comments[maxComments-1].Body != "49" {
			t.Fatalf("%d comments: %v", len(at.Comments), err)
		}
		if _, err := y.comment(y.as("bob"), commentIn{ID: y.pr.ID, Body: "x", ThreadID: at.ID}); wrong(err) != "thread_full" {
			t.Error(err)
		}
	})
}
