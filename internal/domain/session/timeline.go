package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Event is one thing that happened in a session. The events of a run's session are
// those of the run.
type Event struct {
	_      struct{}        `doc:"One thing that happened in a session."`
	Cursor string          `json:"cursor" doc:"of this row; send it back as Last-Event-ID"`
	At     time.Time       `json:"at" doc:"when it happened"`
	Kind   string          `json:"kind" known:"session_events" doc:"what happened"`
	Data   json.RawMessage `json:"data" doc:"what the kind carries"`
}

// SessionEnd is the last frame of session.events.
type SessionEnd struct {
	_         struct{}         `doc:"A session that is over: the last frame of its stream."`
	SessionID string           `json:"session_id" format:"uuid" doc:"id of the session"`
	Outcome   *measure.Outcome `json:"outcome" doc:"how it ended"`
}

const (
	batch     = 500      // events in one read
	maxExport = 64 << 20 // bytes of events that an export holds
)

// note appends an event to a session without a run, and wakes those who follow the
// session. The data must hold no secret.
func (s *Service) note(tx *db.Tx, sessionID, kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s of session %s: %w", kind, sessionID, err)
	}
	if _, err := addEvent.Exec(tx, addEventArgs{SessionID: sessionID, At: tx.Now, Kind: kind, Data: string(text)}); err != nil {
		return err
	}
	s.Hub.Notify(tx, topic(sessionID))
	return nil
}

// topic is the hub's topic of a session without a run.
func topic(sessionID string) string { return "session." + sessionID }

// eventsOf reads one batch of the events of a session after a cursor.
func (s *Service) eventsOf(tx *db.Tx, r row, after int64) ([]Event, error) {
	if r.RunID != nil {
		return s.Runs.Events(tx, *r.RunID, after, batch)
	}
	rows, err := ofSession.All(tx, r.ID, after, batch)
	out := make([]Event, len(rows))
	for i, e := range rows {
		out[i] = NewEvent(e.Seq, e.At, e.Kind, json.RawMessage(e.Data))
	}
	return out, err
}

// NewEvent makes an Event; its cursor is seq.
func NewEvent(seq int64, at time.Time, kind string, data json.RawMessage) Event {
	return Event{Cursor: strconv.FormatInt(seq, 10), At: at.Truncate(time.Millisecond), Kind: kind, Data: data}
}

// events sends the events of a session as they are stored, until it ends.
func (s *Service) events(ctx context.Context, in idIn, sink *op.Sink) error {
	since, err := sink.Since()
	if err != nil {
		return err
	}
	var r row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = find(tx, in.ID)
		return err
	})
	if err != nil {
		return err
	}
	at := topic(r.ID)
	if r.RunID != nil {
		at = event.RunTopic(*r.RunID)
	}
	for {
		changes := s.Hub.Watch(at)
		rows, ended, err := s.page(ctx, &r, since, changes)
		if err != nil {
			return err
		}
		if !ended {
			sink.Open()
		}
		for _, e := range rows {
			if err := sink.Send(e.Cursor, "event", e); err != nil {
				return err
			}
			if since, err = strconv.ParseInt(e.Cursor, 10, 64); err != nil {
				return err
			}
		}
		switch {
		case len(rows) == batch:
			continue
		case ended:
			if since, err = s.last(ctx, &r); err != nil {
				return err
			}
			return sink.End(since, SessionEnd{SessionID: r.ID, Outcome: (*measure.Outcome)(r.Outcome)})
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// last is the number of the last event of a session, whatever number a client has sent.
func (s *Service) last(ctx context.Context, r *row) (seq int64, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if r.RunID == nil {
			seq, err = lastSeq.One(tx, r.ID)
			return err
		}
		of, err := s.Runs.Record(tx, *r.RunID)
		seq = of.LastSeq
		return err
	})
	return seq, err
}

// page reads the next batch for a stream, and the session again into r. It returns
// whether the session has ended. Streams of one session with the same cursor and
// the same changes channel share one read.
func (s *Service) page(ctx context.Context, r *row, since int64, changes <-chan struct{}) ([]Event, bool, error) {
	type step struct {
		now  row
		rows []Event
	}
	out, err, _ := s.reads.Do(fmt.Sprint(r.ID, since, changes), func() (any, error) {
		var st step
		err := s.DB.Read(context.WithoutCancel(ctx), func(tx *db.Tx) (err error) {
			if st.now, err = find(tx, r.ID); err != nil {
				return err
			}
			st.rows, err = s.eventsOf(tx, st.now, since)
			return err
		})
		return st, err
	})
	if err != nil {
		return nil, false, err
	}
	st := out.(step)
	*r = st.now
	return st.rows, r.EndedAt != nil, nil
}

// export answers all events of a session, one JSON object a line. It reads them batch
// by batch in one transaction.
func (s *Service) export(ctx context.Context, in idIn) (op.Reply, error) {
	var out bytes.Buffer
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(io.Writer(&out))
		enc.SetEscapeHTML(false)
		for since := int64(0); ; {
			rows, err := s.eventsOf(tx, r, since)
			if err != nil {
				return err
			}
			for _, e := range rows {
				if err := enc.Encode(e); err != nil {
					return err
				}
				if since, err = strconv.ParseInt(e.Cursor, 10, 64); err != nil {
					return err
				}
			}
			if out.Len() > maxExport {
				return fault.Newf(fault.Unprocessable, "export-too-large",
					"The session has more than %d MiB of events: follow session.events instead.", maxExport>>20)
			}
			if len(rows) < batch {
				return nil
			}
		}
	})
	return op.Reply{ContentType: "application/jsonl; charset=utf-8", Body: out.Bytes(), Header: map[string]string{
		"Content-Disposition": `attachment; filename="session-` + in.ID + `.jsonl"`,
	}}, err
}
