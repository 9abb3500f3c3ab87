package bus_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/bus"
	"yardmaster/internal/protocol"
)

// BenchmarkEvents is the way of run events from boxes over TCP into Ingest, each
// message on disk before its Publish returns. Runs publish side by side, each
// waiting for its own acknowledgements.
func BenchmarkEvents(b *testing.B) {
	for _, perMessage := range []int64{1, 16} {
		for _, runs := range []int{1, 32} {
			b.Run(fmt.Sprintf("perMessage=%d/runs=%d", perMessage, runs), func(b *testing.B) {
				benchmarkEvents(b, perMessage, runs)
			})
		}
	}
}

func benchmarkEvents(b *testing.B, perMessage int64, runs int) {
	s := start(b, newConfig(b))
	var ingested atomic.Int64
	all := make(chan struct{})
	total := int64(b.N) * perMessage
	if _, err := s.Ingest(context.Background(), func(_ context.Context, _ string, e protocol.Envelope) error {
		if ingested.Add(int64(len(e.Events))) == total {
			close(all)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	c := enrol(b, s, "bx").connect(b, s)
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var senders sync.WaitGroup
	for i := range runs {
		senders.Go(func() {
			run, after := fmt.Sprintf("r%d", i), uint64(0)
			for seq := int64(1); left.Add(-1) >= 0; seq += perMessage {
				var err error
				if after, err = c.Publish(context.Background(), envelope(run, 1, seq, seq+perMessage-1), after); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	<-all
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkStart is a start on an existing folder until boxes can connect; the
// heap is what an idle bus keeps.
func BenchmarkStart(b *testing.B) {
	cfg := newConfig(b)
	stop(b, start(b, cfg))
	before := heap()
	for b.Loop() {
		s, err := bus.Start(context.Background(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB-idle")
		stop(b, s)
		b.StartTimer()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFirstStart is a start on an empty folder.
func BenchmarkFirstStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		cfg := newConfig(b)
		b.StartTimer()
		s, err := bus.Start(context.Background(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop(b, s)
		b.StartTimer()
	}
}

// BenchmarkCall is a call and its answer over TCP.
func BenchmarkCall(b *testing.B) {
	s := start(b, newConfig(b))
	if err := s.Handle(protocol.CallRenew, func(context.Context, string, []byte) (any, error) {
		return protocol.Renewal{OK: true}, nil
	}); err != nil {
		b.Fatal(err)
	}
	c := enrol(b, s, "bx").connect(b, s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for b.Loop() {
		var r protocol.Renewal
		if err := c.Call(ctx, protocol.CallRenew, protocol.Renew{Run: "r"}, &r); err != nil || !r.OK {
			b.Fatal(r, err)
		}
	}
}
