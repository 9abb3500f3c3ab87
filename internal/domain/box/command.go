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
	commandAge   = 24 * time.Hour // a command that its box has not fetched by then is dropped
	maxMessages  = 1000           // run messages that may wait for one box
	commandBatch = 16             // commands in one answer,
	commandBytes = 512 << 10      // and their size in bytes
)

// Enqueue stores a command for a box, within tx. The box fetches it until the
// box has confirmed it. A command without an id gets one; a command whose id is
// stored already is not stored again. Of drains and resumes only the newest is
// kept, and of rotations and updates too. A revoked box gets no commands. A message is for a run of
// tx.Account, and is given to the box while the box may hold that. Enqueue returns
// fault.TooLarge for a command over protocol.MaxMessage, and fault.Unavailable
// for a message if 1,000 already wait for the box.
func (s *Service) Enqueue(tx *db.Tx, boxID string, c protocol.Command) error {
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
	var account *string
	switch c.Kind {
	case protocol.CommandMessage:
		account = &tx.Account
		if n, err := countMessages.One(tx, boxID); err != nil {
			return err
		} else if n >= maxMessages {
			return fault.New(fault.Unavailable, "", "The box does not read its commands.")
		}
	case protocol.CommandDrain, protocol.CommandResume:
		if _, err := outdate.Exec(tx, outdateArgs{
			BoxID: boxID, CommandDrain: protocol.CommandDrain, CommandResume: protocol.CommandResume, ID: c.ID,
		}); err != nil {
			return err
		}
	case protocol.CommandUpdate:
		if _, err := outdate.Exec(tx, outdateArgs{
			BoxID: boxID, CommandDrain: protocol.CommandUpdate, CommandResume: protocol.CommandUpdate, ID: c.ID,
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
		ID: c.ID, BoxID: boxID, AccountID: account, Place: id.New(), Kind: c.Kind, Payload: db.JSON[protocol.Command]{V: c},
		CreatedAt: tx.Now,
	}); err != nil {
		return err
	}
	if s.Bus != nil {
		tx.AfterCommit(func() { s.Bus.Nudge(boxID, protocol.NudgeCommands) })
	}
	return nil
}

// nextCommands answers with the waiting commands of the box: those that end
// runs first, then the oldest first.
func (s *Service) nextCommands(ctx context.Context, boxID string, _ []byte) (any, error) {
	out := protocol.Commands{Commands: []protocol.Command{}}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		out.Commands, out.More = out.Commands[:0], false
		if _, err := standingOf(tx, boxID); err != nil {
			return err
		}
		waiting, err := selectCommands.All(tx, boxID, commandBatch+1)
		if err != nil {
			return err
		}
		remaining := commandBytes
		for i, c := range waiting {
			text, err := json.Marshal(c.V)
			if err != nil {
				return err
			}
			if remaining -= len(text); i == commandBatch || remaining < 0 && i > 0 {
				out.More = true
				break
			}
			out.Commands = append(out.Commands, c.V)
		}
		return nil
	})
	return out, err
}

// commandsDone deletes the commands that the box has confirmed.
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

// standingOf reads the state of the box that calls. It returns a fault for a
// revoked or unknown box.
func standingOf(tx *db.Tx, boxID string) (standingRow, error) {
	r, ok, err := standing.Maybe(tx, boxID)
	if err == nil && (!ok || r.State == Revoked) {
		err = revoked()
	}
	return r, err
}

// revoked is the fault for a call of a revoked or unknown box.
func revoked() *fault.Error { return fault.New(fault.Forbidden, "box-revoked", "This box is revoked.") }
