package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// Tasks of three repositories come and go at random on the real queue, as its boxes claim them.
// What was recorded of it, played with the same slots, is the same order at the same times.
func TestPlayedAsItWas(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		const slots = 3
		f.seats, f.box = 2, "large"
		f.write("", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Box{ID: "large", Account: "acme", Slots: slots}); err != nil {
				return err
			}
			_, err := seed.SetState.Exec(tx, "box", "draining")
			return err
		})
		f.repo("big")
		f.repo("small")
		rnd := rand.New(rand.NewPCG(1, 2))
		begin, arrives := f.clock.Load(), int64(0)
		var record []Waiting
		var claimed []Played
		ends := map[string]int64{}
		for len(record) < 80 || len(claimed) < len(record) {
			at := arrives // the next thing that happens
			if len(record) == 80 {
				at = 1 << 62
			}
			for _, end := range ends {
				at = min(at, end)
			}
			f.clock.Store(begin + at)
			for id, end := range ends {
				if end == at {
					f.change(id, f.MarkRunning)
					f.change(id, f.Complete)
					delete(ends, id)
				}
			}
			if arrives == at && len(record) < 80 {
				w := Waiting{
					Repo: []string{"big", "small", "web"}[rnd.IntN(3)], Priority: []int64{10, 50, 50, 100}[rnd.IntN(4)],
					Template: "default", Takes: time.Duration(1+rnd.IntN(9000)) * time.Millisecond,
				}
				f.clock.Add(-time.Millisecond.Microseconds()) // which create adds
				w.TaskID = f.create(object{"repo": "acme/" + w.Repo, "priority": w.Priority})
				if w.Repo == "web" {
					w.Repo = "acme-web" // its id
				}
				w.ID, w.CreatedAt, w.ReadyAt = w.TaskID, time.UnixMicro(begin+at), time.UnixMicro(begin+at)
				record = append(record, w)
				arrives += int64(1+rnd.IntN(2000)) * 1000
			}
			for {
				id := f.claim()
				if id == "" {
					break
				}
				is := slices.IndexFunc(record, func(w Waiting) bool { return w.ID == id })
				claimed = append(claimed, Played{id, time.UnixMicro(begin + at)})
				ends[id] = at + record[is].Takes.Microseconds()
			}
		}
		if played := Play(record, Machines{Slots: slots, Seats: 2}); !slices.Equal(played, claimed) {
			for i := range claimed {
				if i >= len(played) || played[i] != claimed[i] {
					f.t.Fatalf("%d of %d is another one, of %d played", i, len(claimed), len(played))
				}
			}
		}
	})
}
