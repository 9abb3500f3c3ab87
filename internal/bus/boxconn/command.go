package boxconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"yardmaster/internal/protocol"
)

const (
	pullWait  = 30 * time.Second // a pull that found nothing is repeated after this
	pullPause = time.Second      // after a pull that was refused
	ackLimit  = 5 * time.Second
)

// Commands calls fn for each durable command, one at a time and in order, until
// ctx is done; then it returns ctx's error. A command is acknowledged only after
// fn has returned nil, so fn persists it first. Otherwise, or when the
// acknowledgement is lost, it comes again: fn must know it by its id.
func (c *Conn) Commands(ctx context.Context, fn func(protocol.Command) error) error {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("boxconn: commands: %w", err)
	}
	// Fails only when the connection is closed, which ends the subscription too.
	defer func() { _ = sub.Unsubscribe() }()
	for {
		if err := c.Wait(ctx); err != nil {
			return err
		}
		m, err := c.pull(ctx, sub, inbox)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
			return fmt.Errorf("boxconn: commands: %w", err)
		case err != nil:
			c.log.Debug("pull commands", "error", err)
			pause(ctx, pullPause)
		case m != nil:
			c.handle(ctx, m, fn)
		}
	}
}

// pull waits for one command on the box's consumer; nil means that there is
// none yet.
func (c *Conn) pull(ctx context.Context, sub *nats.Subscription, inbox string) (*nats.Msg, error) {
	body, err := json.Marshal(struct {
		Batch   int   `json:"batch"`
		Expires int64 `json:"expires"` // nanoseconds
	}{1, pullWait.Nanoseconds()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.onLink(ctx)
	defer cancel()
	ctx, cancelWait := context.WithTimeout(ctx, pullWait+5*time.Second)
	defer cancelWait()
	subject := "$JS.API.CONSUMER.MSG.NEXT." + protocol.StreamCommands + "." + c.box
	if err := c.nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return nil, err
	}
	switch status := m.Header.Get("Status"); status {
	case "":
		return m, nil
	case "404", "408": // nothing came before the pull expired
		return nil, nil
	default:
		return nil, fmt.Errorf("status %s: %s", status, m.Header.Get("Description"))
	}
}

func (c *Conn) handle(ctx context.Context, m *nats.Msg, fn func(protocol.Command) error) {
	verdict := "+ACK"
	var command protocol.Command
	if err := json.Unmarshal(m.Data, &command); err != nil {
		c.log.Error("malformed command thrown away", "subject", m.Subject, "error", err)
		verdict = "+TERM"
	} else if err := fn(command); err != nil {
		c.log.Warn("command not taken, it will come again", "id", command.ID, "kind", command.Kind, "error", err)
		verdict = fmt.Sprintf(`-NAK {"delay": %d}`, pullPause.Nanoseconds())
	}
	// The server confirms, so that a command that was taken does not come again
	// after a reconnect.
	ctx, cancel := context.WithTimeout(ctx, ackLimit)
	defer cancel()
	if _, err := c.request(ctx, &nats.Msg{Subject: m.Reply, Data: []byte(verdict)}); err != nil {
		c.log.Warn("settle a command", "id", command.ID, "error", err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
