package boxconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"yardmaster/internal/protocol"
)

var (
	// ErrFenced means that the control plane has closed the attempt: its work
	// is with another box now, and nothing more of it will be taken.
	ErrFenced = errors.New("the attempt is closed")

	// ErrTooLarge means that the envelope's encoding is over
	// protocol.MaxMessage.
	ErrTooLarge = errors.New("the envelope is too large")
)

// StaleError means that the subject holds something else than the caller
// thought. Going on from what it says is right.
type StaleError struct {
	SubjectSeq uint64 // stream sequence to publish the next envelope after; 0 when the subject is empty
	EventSeq   int64  // the last event that is stored; 0 when there is none
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("the stream holds events up to %d (stream sequence %d)", e.EventSeq, e.SubjectSeq)
}

// Publish appends an envelope to its attempt's subject, right after the message
// with the stream sequence after (0 if there is none yet), and returns its own
// once it is on disk. Repeating a Publish whose outcome is unknown is safe: if
// it was stored, the sequence it has is returned. Otherwise the error is, or
// wraps, ErrFenced, *StaleError, ErrTooLarge, ErrOffline or ctx's. Give ctx a
// deadline.
func (c *Conn) Publish(ctx context.Context, e protocol.Envelope, after uint64) (uint64, error) {
	seq, err := c.publish(ctx, e, after)
	if err != nil {
		return 0, fmt.Errorf("boxconn: publish events of run %s: %w", e.Run, err)
	}
	return seq, nil
}

func (c *Conn) publish(ctx context.Context, e protocol.Envelope, after uint64) (uint64, error) {
	if len(e.Events) == 0 {
		return 0, errors.New("no events")
	}
	e.V = protocol.Version
	body, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	if len(body) > protocol.MaxMessage {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(body))
	}
	m := nats.NewMsg(protocol.EventSubject(c.box, e.Run, e.Attempt))
	m.Data = body
	position := strconv.FormatUint(after, 10)
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, position)
	m.Header.Set(jetstream.MsgIDHeader, c.nonce+"/"+e.Run+"/"+strconv.Itoa(e.Attempt)+"/"+
		strconv.FormatInt(e.Events[0].Seq, 10)+"-"+strconv.FormatInt(last(e), 10)+"@"+position)
	answer, err := c.request(ctx, m)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement: %w", err)
	}
	switch {
	case ack.Error == nil && ack.Seq > 0:
		return ack.Seq, nil
	case ack.Error == nil:
		return 0, fmt.Errorf("the acknowledgement has no sequence: %q", answer.Data)
	case ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence,
		ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return c.compare(ctx, e)
	}
	return 0, ack.Error
}

// compare looks at what the attempt's subject ends with after e was refused.
func (c *Conn) compare(ctx context.Context, e protocol.Envelope) (uint64, error) {
	subject := protocol.EventSubject(c.box, e.Run, e.Attempt)
	answer, err := c.request(ctx, &nats.Msg{Subject: "$JS.API.DIRECT.GET." + protocol.StreamEvents + "." + subject})
	if err != nil {
		return 0, fmt.Errorf("read the last event: %w", err)
	}
	switch status := answer.Header.Get("Status"); status {
	case "":
	case "404":
		return 0, &StaleError{}
	default:
		return 0, fmt.Errorf("read the last event: status %s: %s", status, answer.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(answer.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the last event: its sequence: %w", err)
	}
	var stored protocol.Envelope
	if err := json.Unmarshal(answer.Data, &stored); err != nil {
		return 0, fmt.Errorf("read the last event: %w", err)
	}
	switch {
	case len(stored.Events) == 0:
		return 0, errors.New("read the last event: there is none in its envelope")
	case stored.Events[0].Kind == protocol.EventClosed:
		return 0, ErrFenced
	case stored.Events[0].Seq == e.Events[0].Seq && last(stored) == last(e):
		// An earlier try of the same envelope, whose acknowledgement was lost.
		return seq, nil
	}
	return 0, &StaleError{SubjectSeq: seq, EventSeq: last(stored)}
}

func last(e protocol.Envelope) int64 { return e.Events[len(e.Events)-1].Seq }
