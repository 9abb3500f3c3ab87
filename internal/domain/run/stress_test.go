package run

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// TestEverythingAtOnce runs working boxes, people's actions and the lease scan
// against each other at full speed: nothing deadlocks, and no change is done by
// halves.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const tasks = 24
		n := f.Tasks.Needs
		n.Backoff = []time.Duration{time.Microsecond}
		f.Tasks = task.New(n)
		var ids []string
		for range tasks {
			ids = append(ids, f.create(task.KindWork))
		}
		ctx := patience.Context(t)
		working, done := context.WithCancel(ctx)
		var boxes, others sync.WaitGroup
		for i := range 4 {
			box := f.boxes[i%2]
			boxes.Go(func() {
				for n := 0; ; n++ {
					f.pass(time.Second)
					reply, err := f.Claim(ctx, box, protocol.Claim{ID: id.New(), Free: 1})
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					if reply.Run == nil {
						return
					}
					end := protocol.Finished{State: protocol.Succeeded, Report: "done"}
					if n%5 == 4 {
						end = protocol.Finished{State: protocol.Halted}
					}
					for seq, batch := range [][]protocol.Event{started()[:1], started()[3:], {finished(end)}} {
						err := f.say(box, reply.Run, int64(seq+1), batch...)
						if err != nil && !errors.Is(err, errNotTaken) {
							t.Errorf("ingest: %v", err)
							return
						}
					}
				}
			})
		}
		others.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				verb := []string{"reassign", "cancel", "reassign", "redispatch"}[i%4]
				if status := f.post("/v1/tasks/" + ids[i%tasks] + "/" + verb); status != 200 && status != 409 {
					t.Errorf("%s answers %d", verb, status)
				}
			}
		})
		others.Go(func() {
			for working.Err() == nil {
				if err := f.Scan(ctx); err != nil {
					t.Errorf("scan: %v", err)
				}
				if _, err := f.Verdicts(ctx, f.boxes[0], nil); err != nil {
					t.Errorf("hello: %v", err)
				}
			}
		})
		boxes.Wait()
		done()
		others.Wait()
		f.write(func(tx *db.Tx) error {
			runs, err := allRuns.All(tx, f.account)
			if err != nil {
				return err
			}
			live := map[string]int{}
			for _, r := range runs {
				if r.EndedAt == nil {
					live[r.TaskID]++
				}
			}
			for _, taskID := range ids {
				row, _, err := task.Get(tx, f.account, taskID)
				if err != nil {
					return err
				}
				if want := map[bool]int{true: 1}[row.Status.InFlight()]; live[taskID] != want {
					t.Errorf("task is %s and has %d live runs", row.Status, live[taskID])
				}
			}
			return nil
		})
	})
}
