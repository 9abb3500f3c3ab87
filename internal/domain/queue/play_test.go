package queue

import (
	"fmt"
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
		for at := int64(0); len(record) < 80 || len(claimed) < len(record); {
			next := arrives // the next thing that happens
			if len(record) == 80 {
				next = 1 << 62
			}
			for _, end := range ends {
				next = min(next, end)
			}
			at = next
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
					Repo: []string{"big", "small", "web"}[rnd.IntN(3)], Priority: []int64{10, 50, 50, 100}[rnd.IntN(4)], Template: "default",
					Takes: time.Duration(1+rnd.IntN(9000)) * time.Millisecond,
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
				claimed, ends[id] = append(claimed, Played{id, time.UnixMicro(begin + at)}), at+record[is].Takes.Microseconds()
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

// A week of 10,000 tasks is played in less than ten seconds, and twice in the same way.
func TestPlayAWeek(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	begin := time.Unix(1_800_000_000, 0)
	var record []Waiting
	for i := range 10_000 {
		at := begin.Add(time.Duration(rnd.Int64N(int64(7 * 24 * time.Hour))))
		record = append(record, Waiting{
			ID: fmt.Sprint(i), TaskID: fmt.Sprint(i), Repo: fmt.Sprint(rnd.IntN(40)), Template: "default", Priority: int64(rnd.IntN(101)),
			CreatedAt: at, ReadyAt: at, Takes: time.Duration(rnd.IntN(3600)) * time.Second,
		})
	}
	began := time.Now()
	one := Play(record, Machines{Slots: 4})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	} else {
		t.Logf("it took %s", took)
	}
	rnd.Shuffle(len(record), func(i, j int) { record[i], record[j] = record[j], record[i] })
	if two := Play(record, Machines{Slots: 4}); len(one) != 10_000 || !slices.Equal(one, two) {
		t.Errorf("%d played, and otherwise from a record in another order", len(one))
	}
	if none := Play(record, Machines{}); len(none) != 0 {
		t.Errorf("%d began without a slot", len(none))
	}
}
