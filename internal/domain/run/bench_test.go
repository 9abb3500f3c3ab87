package run

import (
	"context"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// BenchmarkIngest measures how many events a second one node stores with 32
// attempts at work. An operation is an envelope of 32 events.
func BenchmarkIngest(b *testing.B) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		b.Run(e.String(), func(b *testing.B) {
			f := open(b, dbtest.DSN(b, e))
			const writers, batch = 32, 32
			starts := make(chan *protocol.Start, writers)
			for range writers {
				f.create(task.KindWork)
				starts <- f.claim(f.boxes[0])
			}
			var n atomic.Int64
			b.SetParallelism(writers / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				st := <-starts
				defer func() { starts <- st }()
				seq := f.run(f.boxes[0], st.Run).CommittedSeq
				for pb.Next() {
					events := make([]protocol.Event, batch)
					for i := range events {
						events[i] = ev("agent.update", map[string]string{"text": "a few words of what the agent says as it goes"})
						events[i].Seq = seq + int64(i) + 1
					}
					if _, err := f.Append(context.Background(), f.boxes[0],
						protocol.Envelope{V: protocol.Version, Run: st.Run, Attempt: st.Attempt,
							Events: events}); err != nil {
						b.Error(err)
						return
					}
					seq += batch
					n.Add(batch)
				}
			})
			b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "events/s")
		})
	}
}
