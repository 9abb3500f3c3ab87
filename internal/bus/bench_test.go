package bus_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"yardmaster/internal/bus"
	"yardmaster/internal/protocol"
)

// BenchmarkStart measures Start until boxes can connect, and the heap that an idle
// bus keeps.
func BenchmarkStart(b *testing.B) {
	cfg := newConfig(b)
	stop(b, start(b, cfg))
	before := heap()
	for b.Loop() {
		s, err := bus.Start(context.Background(), cfg.Config)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB-idle")
		stop(b, server{s, nil})
		b.StartTimer()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkCall measures a call and its answer over TCP.
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
