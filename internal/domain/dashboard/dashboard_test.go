package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

type repos struct{}

func (repos) ByName(_ *db.Tx, owner, name string) (string, bool, error) {
	return name, owner == "acme", nil
}
func (repos) Name(_ *db.Tx, repoID string) (string, error) { return "acme/" + repoID, nil }

var now = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)

// onBoth has an account with work of each kind in two repositories, and another account.
func onBoth(t *testing.T, fn func(t *testing.T, s *Service, as func(policy.Set) context.Context)) {
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return now }}, func(t *testing.T, d *db.DB) {
		s := New(Needs{DB: d, Due: duetest.New(d, event.NewHub()), Repos: repos{}, Logger: slog.New(slog.DiscardHandler)})
		as := func(scopes policy.Set) context.Context {
			return policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.PAT, UserID: "ada", Scopes: scopes})
		}
		at := func(back time.Duration) *int64 { n := db.Micros(now.Add(-back)); return &n }
		rows := []seed.Row{seed.Account{ID: "acme"}, seed.Account{ID: "other"}, seed.User{ID: "ada"}, seed.Box{ID: "box", Account: "acme"}}
		micros := int64(2_500_000)
		rows = append(rows, seed.Repo{ID: "ops", Account: "acme", Owner: "acme", Name: "ops"},
			seed.Session{ID: "s", Account: "acme", Repo: "ops", Model: "m"},
			seed.Spend{Account: "acme", Session: "s", Minute: *at(time.Hour), Calls: 3, Micros: &micros},
			seed.Spend{Account: "acme", Session: "s", Minute: *at(2 * time.Hour), Calls: 4, Unpriced: 4})
		for i, r := range []string{"web", "api"} {
			rows = append(rows, seed.Repo{ID: r, Account: "acme", Owner: "acme", Name: r})
			for n := range 12 {
				number, name := 100*i+n+1, fmt.Sprintf("%s-%02d", r, n)
				back := time.Duration(n) * time.Hour
				rows = append(rows,
					seed.Pull{ID: name + "m", Account: "acme", Repo: r, Number: number, State: "merged", Merged: at(back)},
					seed.Task{ID: name + "f", Account: "acme", Repo: r, Status: "failed", Finished: at(back), Created: *at(back)},
					seed.Task{ID: name + "d", Account: "acme", Repo: r, Status: "completed", Finished: at(back), Created: *at(back)})
			}
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return seed.Add(tx, rows...) }); err != nil {
			t.Fatal(err)
		}
		fn(t, s, as)
	})
}

// everything is a board with a widget of each source and kind.
func everything() (in createIn) {
	in.Name = "Everything"
	for _, from := range sources() {
		for _, kind := range from.kinds {
			in.Widgets = append(in.Widgets, widgetIn{Kind: Kind(kind), Source: from.name})
		}
	}
	in.Widgets = append(in.Widgets, widgetIn{Kind: Markdown, Text: "**hello**"})
	return in
}

const allScopes = ^policy.Set(0)

// A widget shows a reader nothing that their credential may not see, whoever made the board: for
// each source and kind, by each role, and without each single scope that it asks for. What it
// may see it shows.
func TestReaderSeesWhatTheyMay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, as func(policy.Set) context.Context) {
		board, err := s.create(as(allScopes), everything())
		if err != nil {
			t.Fatal(err)
		}
		readers := map[string]policy.Set{"everything": allScopes, "nothing but boards": policy.Scopes(policy.ReadDashboards)}
		for _, r := range []policy.Role{policy.Viewer, policy.Member, policy.Admin, policy.Owner} {
			readers[string(r)] = r.Ceiling()
		}
		for _, scope := range policy.Vocabulary() {
			readers["without "+string(scope)] = allScopes &^ policy.Scopes(scope)
		}
		for name, scopes := range readers {
			seen, err := s.get(as(scopes), idIn{board.ID})
			if err != nil {
				t.Fatal(err)
			}
			billing := scopes.Has(policy.Scopes(policy.ReadBilling))
			for _, w := range seen.Widgets {
				page, err := s.page(as(scopes), widgetPageIn{ID: board.ID, Widget: w.ID})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range []Data{w.Data, page} {
					text, err := json.Marshal(d)
					if err != nil {
						t.Fatal(err)
					}
					shows := d.Value != nil || len(d.Points)+len(d.Rows) > 0
					if w.Kind == Markdown {
						continue
					}
					from, _ := sourceOf(*w.Source)
					may := scopes.Has(from.scopes)
					if shows != may && (shows || !empty(*w.Source, w.Kind)) || may != (len(d.Missing) == 0) {
						t.Errorf("%s: %s as %s shows %s", name, *w.Source, w.Kind, text)
					}
					if money := strings.Contains(string(text), `"usd":"`); money && !billing {
						t.Errorf("%s sees money: %s as %s shows %s", name, *w.Source, w.Kind, text)
					}
				}
			}
		}
	})
}

// empty tells whether the account of these tests has nothing for a widget to show.
func empty(source string, kind Kind) bool {
	return kind == Feed && source == "waiting" || kind == Table && slices.Contains([]string{"checks_ended", "sessions"}, source)
}

// Rates show n and d, also of nothing; counts have no d; a series has each of its parts.
func TestNumbers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, as func(policy.Set) context.Context) {
		board, err := s.create(as(allScopes), createIn{Name: "n", Widgets: []widgetIn{
			{Kind: Stat, Source: "tasks_ended", Window: "24h"}, {Kind: Stat, Source: "pulls_merged", Window: "24h"},
			{Kind: Stat, Source: "checks_ended"}, {Kind: Stat, Source: "tasks_ended", Window: "24h", Repo: "acme/web"},
			{Kind: Stat, Source: "cost"}, {Kind: Series, Source: "pulls_merged", Window: "24h"},
			{Kind: Table, Source: "tasks_ended", Window: "24h"},
			{Kind: Table, Source: "health"}, {Kind: Series, Source: "cost", Window: "90d"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		said := func(v Value) string {
			text := func(n *int64) string {
				if n == nil {
					return "-"
				}
				return fmt.Sprint(*n)
			}
			usd := "-"
			if v.USD != nil {
				usd = *v.USD
			}
			return text(v.N) + "/" + text(v.D) + " " + usd + " " + text(v.Unpriced)
		}
		for i, want := range []string{"24/48 - -", "24/- - -", "0/0 - -", "12/24 - -", "-/- 2.50 4"} {
			if v := board.Widgets[i].Data.Value; v == nil || said(*v) != want {
				t.Errorf("widget %d: %+v, want %s", i, v, want)
			}
		}
		var all int64
		points := board.Widgets[5].Data.Points
		for _, p := range points {
			all += *p.N
		}
		if all != 24 || len(points) != 24 || len(board.Widgets[8].Data.Points) != 90 {
			t.Errorf("%d in %d points", all, len(points))
		}
		if rows := board.Widgets[6].Data.Rows; len(rows) != 2 || rows[0].Label != "acme/api" || said(rows[0].Value) != "12/24 - -" {
			t.Errorf("%+v", rows)
		}
		if rows := board.Widgets[7].Data.Rows; len(rows) != 3 || said(rows[0].Value) != "24/48 - -" || said(rows[2].Value) != "0/0 - -" {
			t.Errorf("%+v", rows)
		}
	})
}

// A cost that no call has a price of is unknown, which is null and not 0; what is known is not
// more than that.
func TestUnknownCost(t *testing.T) {
	t.Parallel()
	of, _ := sourceOf("cost")
	known := int64(1_500_000)
	for want, v := range map[string]Value{
		"null 3": of.value(3, 3, nil, 3), `"1.50" 2`: of.value(3, 3, &known, 2), `"0.00" 0`: of.value(0, 0, nil, 0),
	} {
		usd, err := json.Marshal(v.USD)
		if got := fmt.Sprintf("%s %d", usd, *v.Unpriced); err != nil || got != want || v.N != nil || v.D != nil {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A feed is paged to its end: each row once, the newest first.
func TestFeedIsPaged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, as func(policy.Set) context.Context) {
		board, err := s.create(as(allScopes), createIn{Name: "f", Widgets: []widgetIn{{Kind: Feed, Source: "pulls_merged"}}})
		if err != nil || len(board.Widgets[0].Data.Rows) != firstRows || board.Widgets[0].Data.NextCursor == nil {
			t.Fatal(board, err)
		}
		seen := map[string]bool{}
		var last time.Time
		few := 7
		for cursor := ""; ; {
			d, err := s.page(as(allScopes), widgetPageIn{ID: board.ID, Widget: board.Widgets[0].ID, Cursor: cursor, PerPage: &few})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range d.Rows {
				if seen[*r.ID] || !last.IsZero() && r.At.After(last) {
					t.Errorf("%+v is twice, or not in its place", r)
				}
				seen[*r.ID], last = true, *r.At
			}
			if d.NextCursor == nil {
				break
			}
			cursor = *d.NextCursor
		}
		if len(seen) != 24 {
			t.Errorf("%d rows", len(seen))
		}
		_, err = s.page(as(allScopes), widgetPageIn{ID: board.ID, Widget: board.Widgets[0].ID, Cursor: "%"})
		if fault.From(err).Kind != fault.Invalid {
			t.Error(err)
		}
	})
}

// Every row is on one page, whichever order the rows were read in and whatever their keys are: costs
// of no repository have an empty one.
func TestEveryRowIsOnOnePage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringN(0, 2, -1), 0, 12, rapid.ID[string]).Draw(t, "keys")
		most := rapid.IntRange(1, 4).Draw(t, "most")
		var got []string
		for cursor := ""; len(got) <= len(keys); {
			all := make([]keyed, len(keys))
			for i, k := range keys {
				all[i] = keyed{k, Row{Label: k}}
			}
			after, err := from(cursor)
			if err != nil {
				t.Fatal(err)
			}
			rows, next := cut(all, page{after, most})
			for _, r := range rows {
				got = append(got, r.Label)
			}
			if next == nil {
				break
			}
			cursor = *next
		}
		if want := slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
			t.Fatalf("the pages have %q, want %q", got, want)
		}
	})
}

// An account comes with the built-in boards, as one that is older gets them, once. They keep clear of names that are in use, and a
// pass that was asked for makes all of them anew.
func TestBuiltins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Service, as func(policy.Set) context.Context) {
		mine, err := s.create(as(allScopes), createIn{Name: "work", Widgets: []widgetIn{{Kind: Markdown, Text: "mine"}}})
		if err != nil {
			t.Fatal(err)
		}
		names := func() string {
			t.Helper()
			out, err := s.list(as(allScopes), listIn{op.FirstPage("dashboard.list", &op.Paging{Default: 25})})
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, h := range out.Data {
				all = append(all, fmt.Sprint(h.Name, h.Builtin))
			}
			slices.Sort(all)
			return strings.Join(all, ", ")
		}
		const want = "Deliverytrue, Spendingtrue, Work (built-in)true, workfalse"
		widgets := func() (ids []string) {
			t.Helper()
			if err := s.DB.Read(as(allScopes), func(tx *db.Tx) (err error) {
				ids, err = db.Select[string](tx, db.Build(`SELECT id FROM dashboard_widgets WHERE account_id = `, "acme").SQL(" ORDER BY id"))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return ids
		}
		for range 2 {
			if err := s.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := names(); got != want {
				t.Fatal(got)
			}
		}
		before := widgets()
		if _, err := s.enqueue(as(allScopes), enqueueIn{Confirm: true, Why: "w"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.enqueue(as(allScopes), enqueueIn{Confirm: true, Why: "w"}); fault.From(err).Slug != "import_in_flight" {
			t.Errorf("two at once: %v", err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		_ = s.Due.Drain(stopped) // cut off
		duetest.Pass(t.Context(), t, s.Due)
		after := widgets()
		if len(after) != len(before) || slices.Equal(after, before) || names() != want {
			t.Errorf("%d widgets, then %d; %s", len(before), len(after), names())
		}
		if _, err := s.enqueue(as(allScopes), enqueueIn{Confirm: true, Why: "w"}); err != nil {
			t.Errorf("the next one: %v", err)
		}
		placed := func() int64 {
			t.Helper()
			var n int64
			if err := s.DB.Write(as(allScopes), func(tx *db.Tx) (err error) { // of another account
				if err = s.Placed(tx, "other"); err == nil {
					n, err = countOf.One(tx, "other", "")
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := placed(); n != 3 || names() != want {
			t.Errorf("another account has %d boards when it is placed; this one %s", n, names())
		}
		if own, err := s.get(as(allScopes), idIn{mine.ID}); err != nil || len(own.Widgets) != 1 {
			t.Errorf("%+v %v", own, err)
		}
	})
}
