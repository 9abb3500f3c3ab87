package cli

import (
	"testing"
	"time"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// The status has all that the dashboard's home shows as waiting, running and wrong, and says that there is
// nothing only if there is none of it.
func TestStatusOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"README": "hello\n"}); err != nil {
		t.Fatal(err)
	}
	repos := db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND name = 'web'`)
	add := func(rows func(repo string, now int64) []seed.Row) {
		t.Helper()
		y.Write(y.Account, func(tx *db.Tx) error {
			repo, err := repos.One(tx, y.Account)
			if err != nil {
				return err
			}
			return seed.Add(tx, rows(repo, tx.Micros())...)
		})
	}
	task := func(repo, id, status, title string, ended *int64) seed.Task {
		return seed.Task{ID: id, Account: y.Account, Repo: repo, Status: status, Title: title, Finished: ended}
	}
	pull := func(repo, id, needs string, number int) seed.Pull {
		return seed.Pull{ID: id, Account: y.Account, Repo: repo, Number: number, Title: "Pull of " + needs, Needs: needs}
	}
	ago := func(now int64, d time.Duration) *int64 { return new(now - d.Microseconds()) }
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1")
	add(func(repo string, now int64) []seed.Row {
		return []seed.Row{task(repo, "t-old", "failed", "Failed long ago", ago(now, 72*time.Hour)),
			seed.Box{ID: "fine", Account: y.Account}, seed.Box{ID: "never", Account: y.Account}}
	})
	y.Write(y.Account, func(tx *db.Tx) error {
		_, err := setBeat.Exec(tx, "never", "offline", (*int64)(nil))
		if err == nil {
			_, err = setBeat.Exec(tx, "fine", "online", new(tx.Micros()))
		}
		return err
	})
	p.holds("status", 0, "Nothing waits or runs, and nothing went wrong in the last 24 h.", "!Failed long ago")
	add(func(repo string, now int64) []seed.Row {
		doubled := task(repo, "t-double", "awaiting_review", "Told of by its pull request", nil)
		doubled.Pull = new("p-spent")
		recent := task(repo, "t-new", "failed", "Failed today", ago(now, time.Hour))
		behind := task(repo, "t-dep", "failed", "Behind it", ago(now, time.Minute))
		recent.Failure, behind.Failure = "agent_crashed", noun.DependencyFailed
		return []seed.Row{recent, behind, task(repo, "t-held", "held", "Parked", nil),
			task(repo, "t-claimed", "claimed", "Just claimed", nil), task(repo, "t-stuck", "awaiting_ci", "No way on", nil),
			pull(repo, "p-spent", "spent", 3), pull(repo, "p-left", "left_to_people", 4), doubled, seed.Box{ID: "gone", Account: y.Account}}
	})
	y.Write(y.Account, func(tx *db.Tx) error {
		_, err := setBeat.Exec(tx, "gone", "offline", new(tx.Micros()-time.Hour.Microseconds()))
		if err == nil {
			_, err = setStuck.Exec(tx)
		}
		if err == nil {
			_, err = addDeadHook.Exec(tx, y.Account, tx.Micros())
		}
		return err
	})
	p.holds("status", 0, "!Nothing", "!Failed long ago", "!never", "!fine",
		"\npull requests that wait for a person\n", "Pull of left_to_people", "\ntasks that wait for a person\n", "Parked",
		"\nruns now\n", "Just claimed", "\nboxes that are gone\n", "gone", "\nwebhooks to which nothing is sent any more\n",
		"yardmaster webhook revive ID", "\npull requests whose repair is spent\n", "Pull of spent", "\nis stuck\n", "No way on",
		"!Told of by", "\nwent wrong in the last 24 h\n", "Failed today", "Behind it",
		"yardmaster task redispatch ID; of one whose dependency failed, yardmaster task view ID")
	for name, want := range map[string]string{"pulls": "[\"p-left\"]", "held": "[\"t-held\"]", "running": "[\"t-claimed\"]",
		"offline_boxes": "[\"gone\"]", "dead_webhooks": "[\"h-dead\"]", "spent_pulls": "[\"p-spent\"]", "stuck": "[\"t-stuck\"]",
		"failed": "[\"t-dep\",\"t-new\"]"} {
		p.holds("status --jq '."+name+"|map(.id)|sort'", 0, want+"\n")
	}
}

var (
	setBeat     = db.S(`UPDATE boxes SET presence = $2, last_beat_at = $3 WHERE id = $1`)
	setStuck    = db.S(`UPDATE tasks SET stuck = TRUE WHERE id IN ('t-stuck', 't-double')`)
	addDeadHook = db.S(`INSERT INTO webhooks (id, account_id, name, masked, sealed, types, created_by, created_at, unhealthy_at)
		VALUES ('h-dead', $1, 'ci', 'https://ci.example.com', '', '[]', 'system', 0, $2)`)
)
