package box

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

const (
	commandAge   = 24 * time.Hour // after which a command that nobody fetched is dropped
	commandRoom  = 1000           // messages that one box may be owed
	commandBatch = 16             // given at once,
	commandBytes = 512 << 10      // or as many as fit
)

// Owe promises a box a command, within tx: the box fetches it, again and again
// until it has said that it is kept. A command without an id gets one; the same
// id again is owed once. Of drains and resumes, and of rotations, only the newest is
// owed. A revoked box is owed nothing. A box that fetches none can be owed 1,000
// messages, after which one more is fault.Unavailable.
func (s *Service) Owe(tx *db.Tx, boxID string, c protocol.Command) error {
	c.V = protocol.Version
	if c.ID == "" {
		c.ID = id.New()
	}
	switch text, err := json.Marshal(c); {
	case err != nil:
		return err
	case len(text) > protocol.MaxMessage:
		return fault.Newf(fault.TooLarge, "", "A command is at most %d KiB.", protocol.MaxMessage>>10)
	}
	switch c.Kind {
	case protocol.CommandMessage:
		if n, err := countMessages.One(tx, boxID); err != nil {
			return err
		} else if n >= commandRoom {
			return fault.New(fault.Unavailable, "", "The box does not read its commands.")
		}
	case protocol.CommandDrain, protocol.CommandResume:
		if _, err := outdate.Exec(tx, outdateArgs{
			BoxID: boxID, CommandDrain: protocol.CommandDrain, CommandResume: protocol.CommandResume, ID: c.ID,
		}); err != nil {
			return err
		}
	case protocol.CommandRotate:
		if _, err := outdate.Exec(tx, outdateArgs{
			BoxID: boxID, CommandDrain: protocol.CommandRotate, CommandResume: protocol.CommandRotate, ID: c.ID,
		}); err != nil {
			return err
		}
	}
	if _, err := insertCommand.Exec(tx, insertCommandArgs{
		ID: c.ID, BoxID: boxID, Place: id.New(), Kind: c.Kind, Payload: db.JSON[protocol.Command]{V: c},
		CreatedAt: tx.Now,
	}); err != nil {
		return err
	}
	if s.Bus != nil {
		tx.AfterCommit(func() { s.Bus.Nudge(boxID, protocol.NudgeCommands) })
	}
	return nil
}

// nextCommands answers what the box is owed: what ends runs before all else,
// then the oldest first.
func (s *Service) nextCommands(ctx context.Context, boxID string, _ []byte) (any, error) {
	out := protocol.Commands{Commands: []protocol.Command{}}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		out.Commands, out.More = out.Commands[:0], false
		if _, err := present(tx, boxID); err != nil {
			return err
		}
		owed, err := selectCommands.All(tx, boxID, commandBatch+1)
		if err != nil {
			return err
		}
		room := commandBytes
		for i, c := range owed {
			text, err := json.Marshal(c.V)
			if err != nil {
				return err
			}
			if room -= len(text); i == commandBatch || room < 0 && i > 0 {
				out.More = true
				break
			}
			out.Commands = append(out.Commands, c.V)
		}
		return nil
	})
	return out, err
}

// commandsDone strikes what the box has kept.
func (s *Service) commandsDone(ctx context.Context, boxID string, data []byte) (any, error) {
	var in protocol.Done
	if err := json.Unmarshal(data, &in); err != nil || len(in.IDs) > 2*commandBatch {
		return nil, fault.New(fault.Invalid, "", "The call cannot be read.").Because(err)
	}
	return struct{}{}, s.DB.Write(ctx, func(tx *db.Tx) error {
		for _, each := range in.IDs {
			if _, err := deleteCommand.Exec(tx, boxID, each); err != nil {
				return err
			}
		}
		return nil
	})
}

// present reads how the box that calls stands.
func present(tx *db.Tx, boxID string) (standingRow, error) {
	r, ok, err := standing.Maybe(tx, boxID)
	if err == nil && (!ok || r.State == Revoked) {
		err = revoked()
	}
	return r, err
}

// revoked answers a box that is one no longer.
func revoked() *fault.Error { return fault.New(fault.Forbidden, "box-revoked", "This box is revoked.") }
