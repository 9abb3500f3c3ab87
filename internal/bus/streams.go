package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"yardmaster/internal/protocol"
)

const (
	eventAge     = 7 * 24 * time.Hour
	commandAge   = 24 * time.Hour
	commandRoom  = 1000             // commands of one kind that one box may have waiting
	commandTwins = 10 * time.Minute // within which a second Send of one id is dropped
	commandWait  = 10 * time.Second // for a box to persist one, before it comes again
)

func (b *Bus) createStreams(ctx context.Context) error {
	for _, c := range []jetstream.StreamConfig{
		{
			Name:        protocol.StreamEvents,
			Description: "run events, a subject an attempt",
			Subjects:    []string{"evt.*.*.*"},
			Storage:     jetstream.FileStorage,
			MaxAge:      eventAge,
			MaxMsgSize:  protocol.MaxMessage + headerRoom,
			DenyDelete:  true,
			DenyPurge:   true,
			AllowDirect: true,
		},
		{
			// A command leaves the stream once its box has acknowledged it,
			// and a full stream refuses instead of forgetting.
			Name:                 protocol.StreamCommands,
			Description:          "commands that boxes have not acknowledged",
			Subjects:             []string{"cmd.*.>"},
			Storage:              jetstream.FileStorage,
			Retention:            jetstream.WorkQueuePolicy,
			MaxAge:               commandAge,
			MaxMsgSize:           protocol.MaxMessage + headerRoom,
			MaxMsgsPerSubject:    commandRoom,
			Discard:              jetstream.DiscardNew,
			DiscardNewPerSubject: true,
			Duplicates:           commandTwins,
		},
	} {
		if _, err := b.js.CreateOrUpdateStream(ctx, c); err != nil {
			return fmt.Errorf("create stream %s: %w", c.Name, err)
		}
	}
	_, err := b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket:         protocol.BucketPresence,
		Description:    "what each connected box last said of itself",
		Storage:        jetstream.MemoryStorage,
		History:        1,
		TTL:            b.cfg.PresenceTTL,
		LimitMarkerTTL: b.cfg.PresenceTTL,
		MaxValueSize:   protocol.MaxMessage,
	})
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", protocol.BucketPresence, err)
	}
	return nil
}

// AddBox makes the consumer that a box reads its commands from, one in flight.
// It is idempotent.
func (b *Bus) AddBox(ctx context.Context, boxID string) error {
	if err := checkToken("box id", boxID); err != nil {
		return err
	}
	_, err := b.js.CreateOrUpdateConsumer(ctx, protocol.StreamCommands, jetstream.ConsumerConfig{
		Durable:       boxID,
		FilterSubject: protocol.CommandSubject(boxID, ">"),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       commandWait,
		MaxAckPending: 1,
	})
	if err != nil {
		return fmt.Errorf("bus: add box %s: %w", boxID, err)
	}
	return nil
}

// RemoveBox drops a box's consumer and the commands it has not read. It is
// idempotent.
func (b *Bus) RemoveBox(ctx context.Context, boxID string) error {
	if err := checkToken("box id", boxID); err != nil {
		return err
	}
	err := b.js.DeleteConsumer(ctx, protocol.StreamCommands, boxID)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("bus: remove box %s: %w", boxID, err)
	}
	stream, err := b.js.Stream(ctx, protocol.StreamCommands)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(protocol.CommandSubject(boxID, ">")))
	}
	if err != nil {
		return fmt.Errorf("bus: remove box %s: purge its commands: %w", boxID, err)
	}
	return nil
}
