package box

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// sendLease is how long one node has for the commands of one box, before
// another takes over.
const sendLease = 30 * time.Second

// Owe promises a box a command, within tx. It is handed to the bus after the
// commit, behind what the box was promised before. A command without an id
// gets one; the same id again is owed once. A revoked box is owed nothing.
func (s *Service) Owe(tx *db.Tx, boxID string, c protocol.Command) error {
	c.V = protocol.Version
	if c.ID == "" {
		c.ID = id.New()
	}
	if _, err := insertCommand.Exec(tx, c.ID, boxID, id.New(), c.Kind, db.JSON[protocol.Command]{V: c}, tx.Now); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.CommandTopic)
	return nil
}

// deliver hands owed commands to the bus.
func (s *Service) deliver(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		news := s.Hub.Watch(event.CommandTopic)
		more, err := s.deliverAll(ctx)
		if err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "commands are not delivered", "error", err)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-tick.C:
		}
	}
}

// deliverAll makes one pass over the boxes that are owed commands; more says
// that another may find something at once.
func (s *Service) deliverAll(ctx context.Context) (more bool, err error) {
	var boxes []string
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		boxes, err = selectReaders.All(tx, tx.Now)
		return err
	})
	for _, boxID := range boxes {
		n, err := s.deliverTo(ctx, boxID)
		if err != nil {
			return false, err
		}
		more = more || n > 0
	}
	return more, err
}

// deliverTo sends a box what it is owed, in order. What cannot be sent now is
// left for later, with everything behind it.
func (s *Service) deliverTo(ctx context.Context, boxID string) (sent int, err error) {
	var commands []owed
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		commands = nil
		n, err := lease.Exec(tx, boxID, tx.Now, tx.Now.Add(sendLease))
		if err != nil || n == 0 {
			return err // another node is at it
		}
		commands, err = selectCommands.All(tx, boxID)
		return err
	})
	if err != nil || len(commands) == 0 {
		return 0, err
	}
	var failed error
	for _, c := range commands {
		if failed = s.Bus.Send(ctx, boxID, c.Payload.V); failed != nil {
			break
		}
		sent++
	}
	err = s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		for _, c := range commands[:sent] {
			if _, err := deleteCommand.Exec(tx, c.ID); err != nil {
				return err
			}
		}
		next := time.UnixMicro(0)
		if failed != nil {
			next = tx.Now.Add(sweepEvery)
		}
		_, err := release.Exec(tx, boxID, next)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("note the commands that box %s was sent: %w", boxID, err)
	}
	if failed != nil {
		s.log().WarnContext(ctx, "command is not delivered yet", "box", boxID, "command", commands[sent].ID, "error", failed)
	}
	return sent, nil
}
