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

// The statuses of a message to a run's agent.
const (
	MessageReplied     = "replied"     // the agent has answered
	MessageQueued      = "queued"      // held for the next turn
	MessageRead        = "read"        // the agent has it, and its answer is not known
	MessageUnconfirmed = "unconfirmed" // the box has not confirmed it
	MessageDropped     = "dropped"     // the run ended, or ends, before it was delivered
)

// commandAgent is the agent that takes no messages.
const commandAgent = "command"

// MessageOutcome says how far a message has come.
type MessageOutcome struct {
	Status string
	Reply  string // of MessageReplied: the last text of the turn
}

// Message queues a message for the agent of a live run of tx.Account, and
// returns its id for AwaitMessage. The message becomes a turn of its own once
// the present one is over, or at once when the run is parked. Message returns
// fault.NotFound for an unknown run, and the fault no_live_channel for a run
// that takes no messages. The caller records the event.
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
	messageID, queued, err := sendMessage(tx, &r, text)
	if err == nil && !queued {
		err = fault.Reason("no_live_channel", "The run has just ended.")
	}
	return messageID, err
}

// Wake is Message for callers to whom a run without a live channel is no error:
// woken tells whether the message is queued. A parked run whose time ends
// before the message reaches it does not leave its task held: the task goes
// back into the queue. Answers are what people see of the text, unless empty.
func Wake(tx *db.Tx, runID, text string, answers ...string) (woken bool, err error) {
	r, ok, err := selectOfAccount.Maybe(tx, tx.Account, runID)
	if err != nil || !ok || !reachable(&r) {
		return false, err
	}
	_, woken, err = sendMessage(tx, &r, text, answers...)
	return woken, err
}

// reachable tells whether a message can reach the agent.
func reachable(r *Row) bool {
	return (r.State == Live || r.State == Parked) && r.Agent != commandAgent
}

// sendMessage queues a message for a run. queued is false if the run has ended.
func sendMessage(tx *db.Tx, r *Row, text string, answers ...string) (messageID string, queued bool, err error) {
	if n, err := wakeRun.Exec(tx, r.ID, tx.Now); err != nil || n == 0 {
		return "", false, err
	}
	c := protocol.Command{
		V: protocol.Version, ID: id.New(), Kind: protocol.CommandMessage, Run: r.ID, Attempt: int(r.Attempt), Text: text, Answers: answers,
	}
	return c.ID, true, CommandQueued.Send(tx, Command{r.BoxID, c})
}

// AwaitMessage waits for the answer to a message to a run of the context's
// account, at most for wait, and returns how far the message has come by then.
// It returns fault.NotFound for an unknown run.
func (s *Service) AwaitMessage(ctx context.Context, runID, messageID string, wait time.Duration) (out MessageOutcome, err error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changed := s.Hub.Watch(event.RunTopic(runID))
		final := false
		err = s.DB.Read(ctx, func(tx *db.Tx) error {
			r, err := findRun(tx, runID)
			if err != nil {
				return err
			}
			said, err := selectMessages.All(tx, runID)
			out, final = messageOutcome(said, messageID, r.EndedAt != nil)
			return err
		})
		if err != nil || final {
			return out, err
		}
		select {
		case <-changed:
		case <-over.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// messageOutcome derives the state of a message from the events of its run.
// final tells that it cannot change any more.
func messageOutcome(said []string, messageID string, ended bool) (out MessageOutcome, final bool) {
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
