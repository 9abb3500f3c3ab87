package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"yardmaster/internal/protocol"
)

// WatchPresence calls fn for every box that is present, then for every change,
// one at a time, until ctx is done or the bus closes; then it returns nil. A nil
// presence means that the box has not been heard of for PresenceTTL. Presence is
// kept in memory: after a restart each box appears with its next beat.
func (b *Bus) WatchPresence(ctx context.Context, fn func(boxID string, p *protocol.Presence)) error {
	bucket, err := b.js.KeyValue(ctx, protocol.BucketPresence)
	if err != nil {
		return fmt.Errorf("bus: watch presence: %w", err)
	}
	watch, err := bucket.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("bus: watch presence: %w", err)
	}
	// The watch ends by itself with its context or its connection.
	defer func() { _ = watch.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.ctx.Done():
			return nil
		case entry, ok := <-watch.Updates():
			switch {
			case !ok:
				if ctx.Err() != nil || b.ctx.Err() != nil {
					return nil
				}
				return errors.New("bus: watch presence: the watch ended")
			case entry == nil: // the end of what was there already
			case entry.Operation() != jetstream.KeyValuePut:
				fn(entry.Key(), nil)
			default:
				p := new(protocol.Presence)
				if err := json.Unmarshal(entry.Value(), p); err != nil {
					b.log.Warn("unreadable presence", "box", entry.Key(), "error", err)
					continue
				}
				fn(entry.Key(), p)
			}
		}
	}
}
