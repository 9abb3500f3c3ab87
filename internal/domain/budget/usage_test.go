package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

// aLedger fills the ledger of March with calls of the account acme, and of another one.
func aLedger(tx *db.Tx) error {
	ann, plan, task, other := "ann", "the-plan", "the-task", "other-task"
	if err := seed.Add(tx, seed.Account{ID: "rival"}, seed.User{ID: "ann"}, seed.Repo{ID: "other", Account: "acme"},
		seed.Repo{ID: "theirs", Account: "rival"}, seed.Plan{ID: plan, Account: "acme", Repo: "repo"},
		seed.Task{ID: task, Account: "acme", Repo: "repo", Title: "=cmd()", By: &ann}, seed.Task{ID: other, Account: "acme", Repo: "repo"},
		seed.Session{ID: "m1", Account: "acme", Repo: "repo", Task: &task},
		seed.Session{ID: "m2", Account: "acme", Repo: "repo", Kind: "review", Task: &other},
		seed.Session{ID: "m4", Account: "acme", Repo: "other", By: &ann},
		seed.Session{ID: "m5", Account: "rival", Repo: "theirs"}); err != nil {
		return err
	}
	_, err := seed.SetPlan.Exec(tx, task, nil, plan)
	_, err1 := seed.AddKey.Exec(tx, "team", "acme", "ok")
	_, err2 := seed.AddKey.Exec(tx, "hers", "acme", "ok")
	_, err3 := seed.OwnKey.Exec(tx, "hers", "ann")
	_, err4 := seed.AddGift.Exec(tx, "a-gift", "acme", "team")
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		return err
	}
	march := dayOf(time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC))
	for _, d := range []addDayArgs{
		{AccountID: "acme", Day: march - 1, SessionID: "m4", Model: "large", Provider: "p", Calls: 3, Unpriced: 3},
		{AccountID: "acme", Day: march, SessionID: "m1", KeyID: "team", Model: "small", Calls: 2, CostMicros: 1_000_000},
		{AccountID: "acme", Day: march, SessionID: "m1", KeyID: "team", Model: "small", Calls: 1, Unpriced: 1},
		{AccountID: "acme", Day: march, SessionID: "m2", KeyID: "hers", Model: "large", Provider: "p", Calls: 1, CostMicros: 2_000_000},
		{AccountID: "acme", Day: march, SessionID: "m4", KeyID: "team", Model: "large", Provider: "p", Calls: 1, CostMicros: 500_000},
		{AccountID: "acme", Day: march, SessionID: "a-gift", KeyID: "team", Model: "small", Calls: 4, CostMicros: 250_000},
		{AccountID: "acme", Day: march + 31, SessionID: "m2", Model: "large", Calls: 9, CostMicros: 9_000_000},
		{AccountID: "rival", Day: march, SessionID: "m5", Model: "large", Calls: 7, CostMicros: 7_000_000},
	} {
		if _, err := addDay.Exec(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// TestUsageParts holds that the ledger of a month is added up by each of its parts, dearest
// first, with nothing of another month or account.
func TestUsageParts(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		w.write(func(tx *db.Tx) error {
			if err := aLedger(tx); err != nil {
				return err
			}
			from, s := dayOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)), w.node()
			tx.Account = "acme"
			l, err := addUp(tx, from, from+31)
			if err != nil {
				return err
			}
			for by, want := range map[string]string{
				"model": "p large 2.50 2 5 3, small 1.25 2 7 1",
				"repo":  "repo acme/repo 3.00 2 4 1, other acme/other 0.50 1 4 3, 0.25 1 4 0",
				"kind":  "review 2.00 1 1 0, triage 1.50 2 7 4, 0.25 1 4 0",
				"task":  "other-task other-task 2.00 1 1 0, the-task =cmd() 1.00 1 3 1, 0.75 2 8 3",
				"plan":  "2.75 3 9 3, the-plan t 1.00 1 3 1",
				"key":   "keys of members 2.00 1 1 0, team team 1.75 3 8 1, 0.00 1 3 3",
				"gift":  "a-gift pool 0.25 1 4 0",
			} {
				rows, err := l.first(s, tx, by)
				if err != nil {
					return err
				}
				var got []string
				for _, p := range rows {
					var words []string
					for _, word := range []*string{p.ID, p.Name} {
						if word != nil {
							words = append(words, *word)
						}
					}
					words = append(words, fmt.Sprintf("%s %d %d %d", p.Spent, p.Sessions, p.Calls, p.Unpriced))
					got = append(got, strings.Join(words, " "))
				}
				if got := strings.Join(got, ", "); got != want {
					t.Errorf("by %s: %s\nnot %s", by, got, want)
				}
			}
			var u BillingUsage
			u.addDays(l)
			of := []UsageDay{{Day: "2026-03-09", Spent: "0.00", Given: "0.00", Calls: 3, Unpriced: 3},
				{Day: "2026-03-10", Spent: "3.75", Given: "0.00", Calls: 9, Unpriced: 1}}
			if !slices.Equal(u.Days, of) || *u.Calls != 12 || *u.Unpriced != 4 || *u.Sessions != 4 {
				t.Errorf("%+v", u)
			}
			return nil
		})
	})
}

// TestUsageSeries holds that each part has its days, that no part loses one, and that what is
// of one name is one part on each day, too.
func TestUsageSeries(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		w.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			if err := aLedger(tx); err != nil {
				return err
			}
			from := dayOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
			for by, want := range map[string]string{
				"model":  "large 2.50 (2026-03-09 0.00 3 3) (2026-03-10 2.50 2 0), small 1.25 (2026-03-10 1.25 7 1)",
				"member": "- 2.25 (2026-03-10 2.25 5 0), ann 1.50 (2026-03-09 0.00 3 3) (2026-03-10 1.50 4 1)",
				"key": "keys of members 2.00 (2026-03-10 2.00 1 0), team 1.75 (2026-03-10 1.75 8 1), " +
					"- 0.00 (2026-03-09 0.00 3 3)",
			} {
				all, err := w.node().series(tx, by, from, from+31)
				if err != nil {
					return err
				}
				var got []string
				for _, p := range all {
					name := "-"
					for _, text := range []*string{p.ID, p.Name} { // nobody of the roster has that id
						if text != nil {
							name = *text
						}
					}
					name += " " + p.Spent
					for _, d := range p.Days {
						name += fmt.Sprintf(" (%s %s %d %d)", d.Day, d.Spent, d.Calls, d.Unpriced)
					}
					got = append(got, name)
				}
				if got := strings.Join(got, ", "); got != want {
					t.Errorf("by %s: %s\nnot %s", by, got, want)
				}
			}
			return nil
		})
	})
}

// TestSheets: a sheet has a row for each day and part, and nothing in it is a formula.
func TestSheets(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		w.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			if err := aLedger(tx); err != nil {
				return err
			}
			from := dayOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
			for by, want := range map[string]string{
				"day": "day,spent_usd,sessions,calls,unpriced_calls\n2026-03-09,0.00,1,3,3\n2026-03-10,3.75,4,9,1\n",
				"model": "day,provider,model,spent_usd,sessions,calls,unpriced_calls\n2026-03-09,p,large,0.00,1,3,3\n" +
					"2026-03-10,p,large,2.50,2,2,0\n2026-03-10,,small,1.25,2,7,1\n",
				"task": "day,task_id,task,spent_usd,sessions,calls,unpriced_calls\n2026-03-09,,,0.00,1,3,3\n" +
					"2026-03-10,other-task,other-task,2.00,1,1,0\n2026-03-10,the-task,'=cmd(),1.00,1,3,1\n2026-03-10,,,0.75,2,5,0\n",
			} {
				got, err := w.node().sheet(tx, by, from, from+31)
				if err != nil {
					return err
				}
				if got != want {
					t.Errorf("by %s:\n%s\nnot\n%s", by, got, want)
				}
			}
			short := w.node()
			short.mostRows = 3 // and a sheet is whole, or there is none
			if got, err := short.sheet(tx, "task", from, from+31); !fault.IsKind(err, fault.Invalid) || got != "" {
				t.Errorf("a sheet of four rows: %q, %v", got, err)
			}
			return nil
		})
	})
}

// A month of a million calls, twenty in a session and over a key.
var aMonth = db.S(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999)
	INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros)
	SELECT 'acme', 20513 + i % 31, 'session-' || i, 'key-' || (i % 20), 'anthropic', 'model-' || (i % 12), 20, 0, 1000 FROM n`)

// BenchmarkUsage adds a month of a million calls up by the day and by each kind of part.
func BenchmarkUsage(b *testing.B) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		b.Run(e.String(), func(b *testing.B) {
			d := dbtest.Open(b, dbtest.DSN(b, e), db.Options{})
			if err := d.Write(b.Context(), func(tx *db.Tx) error {
				_, err := aMonth.Exec(tx)
				return errors.Join(err, seed.Add(tx, seed.Account{ID: "acme"}))
			}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := d.Read(b.Context(), func(tx *db.Tx) (err error) {
					tx.Account = "acme"
					_, err = addUp(tx, 20513, 20544)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
