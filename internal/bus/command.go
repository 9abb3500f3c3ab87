package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// Send gives a box a command. When it returns nil the command is on disk, and
// the box will get it once it is there, within a day. Sending the same id again
// within ten minutes does nothing. Commands that cannot wait also go out at
// once on the box's control subject, under the last word of their kind; the box
// tells the copy by its id. CommandRevoke travels only so: whoever is revoked
// can read nothing durable any more.
//
// A box that does not read its commands can have 1,000 of a kind waiting, after
// which Send fails with fault.Unavailable.
func (b *Bus) Send(ctx context.Context, boxID string, c protocol.Command) error {
	if err := checkToken("box id", boxID); err != nil {
		return err
	}
	if c.ID == "" || c.Kind == "" {
		return errors.New("bus: send: a command needs an id and a kind")
	}
	c.V = protocol.Version
	if c.Kind == protocol.CommandRevoke {
		b.Nudge(boxID, verb(c.Kind), c)
		return nil
	}
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("bus: send %s: %w", c.Kind, err)
	}
	if len(body) > protocol.MaxMessage {
		return fault.Newf(fault.TooLarge, "", "A command is at most %d KiB.", protocol.MaxMessage>>10)
	}
	_, err = b.js.Publish(ctx, protocol.CommandSubject(boxID, c.Kind), body, jetstream.WithMsgID(c.ID))
	var refused *jetstream.APIError
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Description, "maximum messages per subject"):
		return fault.New(fault.Unavailable, "", "The box does not read its commands.").Because(err)
	case err != nil:
		return fmt.Errorf("bus: send %s to %s: %w", c.Kind, boxID, err)
	}
	switch c.Kind {
	case protocol.CommandHalt, protocol.CommandDrain, protocol.CommandResume, protocol.CommandMessage:
		b.Nudge(boxID, verb(c.Kind), c)
	}
	return nil
}

// Nudge tells a box something that it may miss: it is not stored, and nobody
// waits for an answer.
func (b *Bus) Nudge(boxID, verb string, v any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = b.nc.Publish(protocol.ControlSubject(boxID, verb), body)
	}
	if err != nil {
		b.log.Warn("nudge", "box", boxID, "verb", verb, "error", err)
	}
}

// verb of "run.halt" is "halt".
func verb(kind string) string { return kind[strings.LastIndexByte(kind, '.')+1:] }
