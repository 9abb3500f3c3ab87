package session

import (
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
	"yardmaster/internal/secretscan"
)

// Own is a conversation that the platform itself has with a model, such as a
// triage.
type Own struct {
	ID          string
	RepoID      string // empty: it is about no one repository
	Trigger     string
	Kind        string
	RequestedBy string // the person whose budget it counts for; empty: nobody's
	Provider    string
	Model       string
}

// BeginOwn opens the session of an own conversation in tx.Account.
func (s *Service) BeginOwn(tx *db.Tx, o Own) error {
	_, err := insertOwn.Exec(tx, insertOwnArgs{
		ID: o.ID, AccountID: tx.Account, RepoID: orNull(o.RepoID), Trigger: o.Trigger, Kind: o.Kind, StartedAt: tx.Now,
		RequestedBy: orNull(o.RequestedBy),
	})
	if err != nil {
		return err
	}
	opened := openedData{Kind: o.Kind, Trigger: o.Trigger}
	if err := openedEvent.Record(tx, event.Subject{ID: o.ID, RepoID: o.RepoID}, opened); err != nil {
		return err
	}
	return s.note(tx, o.ID, noteOpened, OwnOpened{o.Trigger, o.Kind, o.Provider, o.Model})
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// EndOwn closes the session of an own conversation. It does nothing if the session
// is closed already or belongs to a run.
func (s *Service) EndOwn(tx *db.Tx, sessionID, outcome string) error {
	if err := Ended.Send(tx, sessionID); err != nil {
		return err
	}
	n, err := endOwn.Exec(tx, sessionID, outcome, tx.Now)
	if err != nil || n == 0 {
		return err
	}
	if err := endedEvent.Record(tx, event.Subject{ID: sessionID}, endedData{Outcome: outcome}); err != nil {
		return err
	}
	return s.note(tx, sessionID, noteEnded, OwnEnded{outcome})
}

// EndLost closes the sessions of own conversations of tx.Account of a kind that began within a
// day and longer ago than such a conversation takes: their node has died.
func (s *Service) EndLost(tx *db.Tx, kind string, longest time.Duration) error {
	ids, err := openOwn.All(tx, openOwnArgs{
		AccountID: tx.Account, Kind: kind, Since: tx.Now.Add(-24 * time.Hour), Before: tx.Now.Add(-longest),
	})
	for _, id := range ids {
		if err := s.EndOwn(tx, id, "lost"); err != nil {
			return err
		}
	}
	return err
}

// OwnNote is an event in the timeline of an own conversation, without secrets.
type OwnNote struct {
	kind string
	data any
}

// Prompt notes a text that was sent to the model.
func Prompt(text string) OwnNote { return OwnNote{notePrompt, noted(text)} }

// Answer notes a text that the model answered.
func Answer(text string) OwnNote { return OwnNote{noteAnswer, noted(text)} }

// Failure notes why a call had no answer.
func Failure(slug, detail string) OwnNote {
	return OwnNote{noteFailed, OwnFailed{slug, secretscan.Scrub(detail)}}
}

// NoteOwn appends a note to an own conversation and wakes those who follow it.
func (s *Service) NoteOwn(tx *db.Tx, sessionID string, n OwnNote) error {
	return s.note(tx, sessionID, n.kind, n.data)
}

// The kinds of events of a session without a run.
const (
	noteOpened = "session.opened" // OwnOpened
	notePrompt = "prompt"         // OwnText
	noteAnswer = "answer"         // OwnText
	noteFailed = "call.failed"    // OwnFailed
	noteEnded  = "session.ended"  // OwnEnded
)

// EventKinds lists the kinds of events of sessions: those of runs, and those of sessions
// without one.
func EventKinds() []string {
	return append(protocol.EventKinds(), noteOpened, notePrompt, noteAnswer, noteFailed, noteEnded)
}

type (
	// OwnOpened is the data of session.opened: the subject of the conversation, and
	// the model.
	OwnOpened struct {
		Trigger  string `json:"trigger"`
		Kind     string `json:"kind"`
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	// OwnText is the data of prompt and answer: a text of which parts that look like
	// secrets are taken out, and of which only the first maxNoted characters are kept.
	OwnText struct {
		Text  string `json:"text"`
		Chars int    `json:"chars"` // of the whole text
		Cut   bool   `json:"cut,omitempty"`
	}
	// OwnFailed is the data of call.failed: the fault.
	OwnFailed struct {
		Slug   string `json:"slug"`
		Detail string `json:"detail"`
	}
	// OwnEnded is the data of session.ended.
	OwnEnded struct {
		Outcome string `json:"outcome"`
	}
)

// maxNoted is the number of characters of a prompt or an answer that are kept.
const maxNoted = 64 << 10

// noted is a text as the timeline keeps it.
func noted(text string) OwnText {
	out := OwnText{Chars: utf8.RuneCountInString(text)}
	runes := []rune(secretscan.Scrub(strings.ToValidUTF8(text, "\uFFFD")))
	if len(runes) > maxNoted {
		runes, out.Cut = runes[:maxNoted], true
	}
	out.Text = string(runes)
	return out
}
