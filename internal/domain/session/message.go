package session

import (
	"context"
	"time"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Outcome is the state of a message to a run. Status is one of
// MessageResult.Status, and Reply is the agent's answer.
type Outcome struct {
	Status string
	Reply  string
}

type messageIn struct {
	RunID   string `json:"runId" format:"uuid" doc:"id of the run"`
	Message string `json:"message" minLength:"1" maxLength:"8000" example:"The test database is ready now." doc:"what the agent is told"`
	WaitMS  *int64 `json:"wait_ms,omitempty" minimum:"0" maximum:"25000" doc:"how long to wait for the reply, in milliseconds; 20000 unless given"`
}

// MessageResult is the answer of session.message.
type MessageResult struct {
	_         struct{} `doc:"How far a message to an agent has come." schema:"MessageResult"`
	MessageID string   `json:"message_id" format:"uuid" doc:"id of the message; its fate is in the events of the run"`
	Status    string   `json:"status" enum:"replied,queued,read,unconfirmed,dropped" doc:"replied: the agent answered; queued: held for its next turn; read: it has it, and no answer is known; unconfirmed: its box has said nothing; dropped: the run ends without it"`
	Reply     *string  `json:"reply" example:"Thank you, the tests run now." doc:"the agent's answer; null unless replied"`
	Note      *string  `json:"note" example:"null" doc:"what the status means; null when replied"`
}

// notes explain the statuses of a message without a reply.
var notes = map[string]string{
	"queued":      "The box holds the message for the agent's next turn. Do not send it again.",
	"read":        "The agent has read the message and not answered it. Do not send it again.",
	"unconfirmed": "The box has not confirmed the message. It may still arrive.",
	"dropped":     "The run ended before the agent could read the message.",
}

// defaultWait is how long session.message waits without wait_ms.
const defaultWait = 20 * time.Second

func (s *Service) message(ctx context.Context, in messageIn) (out MessageResult, err error) {
	unconfirmed := notes["unconfirmed"]
	out = MessageResult{Status: "unconfirmed", Note: &unconfirmed} // until Await knows more
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if out.MessageID, err = s.Runs.Say(tx, in.RunID, in.Message); err != nil {
			return err
		}
		return messageSentEvent.Record(tx, event.Subject{ID: in.RunID},
			messageSentData{Characters: utf8.RuneCountInString(in.Message), MessageID: out.MessageID})
	})
	if err != nil {
		return MessageResult{}, err
	}
	wait := defaultWait
	if in.WaitMS != nil {
		wait = time.Duration(*in.WaitMS) * time.Millisecond
	}
	if wait == 0 {
		return out, nil // nobody can have confirmed it before the answer was kept
	}
	fate, err := s.Runs.Await(ctx, in.RunID, out.MessageID, wait)
	if err != nil {
		return MessageResult{}, err
	}
	out.Status, out.Note = fate.Status, nil
	if note, ok := notes[fate.Status]; ok {
		out.Note = &note
	} else {
		out.Reply = &fate.Reply
	}
	return out, nil
}
