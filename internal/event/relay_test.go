package event_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/patience"
)

// TestRelay holds that a notice on one node wakes the waiters on another one, also
// if there are more topics than one announcement can contain.
func TestRelay(t *testing.T) {
	dsn := dbtest.DSN(t, db.Postgres)
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	var nodes [2]*db.DB
	var hubs [2]*event.Hub
	for i := range nodes {
		nodes[i], hubs[i] = dbtest.Open(t, dsn, db.Options{}), event.NewHub()
		begun := hubs[i].Watch("anything")
		relay := event.NewRelay(nodes[i], hubs[i], slog.New(slog.DiscardHandler))
		loops.Go(func() {
			if err := relay.Loop(ctx); err != nil {
				t.Error(err)
			}
		})
		patience.Ended(t, "being woken", begun) // a node that begins to listen wakes its waiters
	}
	var topics []string
	var woken []<-chan struct{}
	for i := range 1000 {
		topics = append(topics, fmt.Sprintf("run:%036d", i))
		woken = append(woken, hubs[1].Watch(topics[i]))
	}
	quiet := hubs[1].Watch("run:another")
	if err := nodes[0].Write(t.Context(), func(tx *db.Tx) error {
		hubs[0].Notify(tx, topics...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, news := range woken {
		patience.Ended(t, "being woken", news)
	}
	if closed(quiet) {
		t.Error("woken for nothing")
	}
}
