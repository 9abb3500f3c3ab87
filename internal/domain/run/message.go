package run

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// What became of a message to a run's agent.
const (
	MessageReplied     = "replied"     // the agent has answered
	MessageQueued      = "queued"      // held for the next turn
	MessageRead        = "read"        // the agent has it, and no answer to it is known
	MessageUnconfirmed = "unconfirmed" // the box has said nothing of it
	MessageDropped     = "dropped"     // the run ended, or ends, without it
)

// commandAgent is the agent that nothing can be said to.
const commandAgent = "command"

// MessageOutcome is how far a message has come.
type MessageOutcome struct {
	Status string
	Reply  string // when replied: the closing prose of the turn
}

// Message owes the agent of a live run of tx.Account a message, and answers the
// id under which its fate is told: see AwaitMessage. It becomes a turn of its
// own once the running one is over, or at once when the run is parked. A run
// without a live channel is refused with no_live_channel. Recording the change
// is the caller's.
func Message(tx *db.Tx, runID, text string) (messageID string, err error) {
	r, err := findRun(tx, runID)
	if err != nil {
		return "", err
	}
	if !reachable(&r) {
		why := "it is " + r.State + "."
		if r.State == Live || r.State == Parked {
			why = "its agent takes no messages."
		}
		return "", fault.Reason("no_live_channel", "The run has no live channel: "+why)
	}
	messageID, owed, err := say(tx, &r, text)
	if err == nil && !owed {
		err = fault.Reason("no_live_channel", "The run has just ended.")
	}
	return messageID, err
}

// Wake is Message for those to whom a run that cannot be reached is no error:
// woken tells whether the message is owed. A parked run whose window ends before
// the message reaches it is not held: its task goes back into the queue.
func Wake(tx *db.Tx, runID, text string) (woken bool, err error) {
	r, ok, err := selectOfAccount.Maybe(tx, tx.Account, runID)
	if err != nil || !ok || !reachable(&r) {
		return false, err
	}
	_, woken, err = say(tx, &r, text)
	return woken, err
}

// reachable tells whether a message can reach the agent.
func reachable(r *Row) bool {
	return (r.State == Live || r.State == Parked) && r.Agent != commandAgent
}

func say(tx *db.Tx, r *Row, text string) (messageID string, owed bool, err error) {
	if n, err := wakeRun.Exec(tx, r.ID, tx.Now); err != nil || n == 0 {
		return "", false, err
	}
	c := protocol.Command{V: protocol.Version, ID: id.New(), Kind: protocol.CommandMessage, Run: r.ID, Attempt: int(r.Attempt), Text: text}
	return c.ID, true, CommandOwed.Send(tx, Command{r.BoxID, c})
}

// AwaitMessage waits for the answer to a message to a run of the context's
// account, for as long as given, and tells how far it has come by then.
func (s *Service) AwaitMessage(ctx context.Context, runID, messageID string, wait time.Duration) (out MessageOutcome, err error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		news := s.Hub.Watch(event.RunTopic(runID))
		final := false
		err = s.DB.Read(ctx, func(tx *db.Tx) error {
			r, err := findRun(tx, runID)
			if err != nil {
				return err
			}
			said, err := selectMessages.All(tx, runID)
			out, final = fate(said, messageID, r.EndedAt != nil)
			return err
		})
		if err != nil || final {
			return out, err
		}
		select {
		case <-news:
		case <-over.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// fate folds the events of a message. Final tells that nothing more will come.
func fate(said []string, messageID string, ended bool) (out MessageOutcome, final bool) {
	out.Status = MessageUnconfirmed
	for _, data := range said {
		var m protocol.UserMessage
		if json.Unmarshal([]byte(data), &m) != nil || m.ID != messageID {
			continue
		}
		switch m.State {
		case protocol.MessageQueued:
			out.Status = MessageQueued
		case protocol.MessageDelivered:
			out.Status = MessageRead
		case protocol.MessageRead:
			if m.Reply != "" {
				return MessageOutcome{MessageReplied, m.Reply}, true
			}
			return MessageOutcome{Status: MessageRead}, true
		case protocol.MessageDropped:
			return MessageOutcome{Status: MessageDropped}, true
		}
	}
	if ended && out.Status != MessageRead {
		out.Status = MessageDropped
	}
	return out, ended
}
