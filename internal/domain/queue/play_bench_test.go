package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

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
