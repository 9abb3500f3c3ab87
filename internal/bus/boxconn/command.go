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
	pullWait   = 30 * time.Second // a pull that found nothing is repeated after this
	retryPause = 200 * time.Millisecond
	nakDelay   = time.Second // before a command that was not taken comes again
	ackLimit   = 5 * time.Second
	ackTries   = 5
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
			pause(ctx, retryPause)
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
		verdict = fmt.Sprintf(`-NAK {"delay": %d}`, nakDelay.Nanoseconds())
	}
	var err error
	for range ackTries {
		if c.Wait(ctx) != nil {
			return
		}
		if err = c.settle(ctx, m.Reply, verdict); err == nil {
			return
		}
		pause(ctx, retryPause) // until a connection that is breaking is known to be
	}
	c.log.Warn("command not settled, it will come again", "id", command.ID, "error", err)
}

// settle acknowledges and has the server confirm it. An acknowledgement that a
// lost connection took along can be given on the next one.
func (c *Conn) settle(ctx context.Context, subject, verdict string) error {
	ctx, cancel := context.WithTimeout(ctx, ackLimit)
	defer cancel()
	_, err := c.request(ctx, &nats.Msg{Subject: subject, Data: []byte(verdict)})
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
