package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/seal"
	"yardmaster/internal/secretscan"
)

// Own is a conversation that the platform itself has with a model, over the
// keys of an account and on its bill, such as a triage.
type Own struct {
	s       *Service
	id      string
	token   string // worth something in this process alone
	account string
	prompt  llm.Prompt
}

// Opening says what an own conversation is about, and with whom.
type Opening struct {
	AccountID string
	RepoID    string // "" for none
	Trigger   string
	Kind      string
	// RequestedBy is the person on whose bill it is; "" for nobody.
	RequestedBy string
	// What a template says of the model; what it leaves open follows from the
	// account's first key that fits.
	Provider, BaseURL, Model string
	MaxTokens                int // of an answer
	// Before is the session of an earlier try that may never have been ended.
	Before string
}

// Open begins a conversation. It fails with no_credential if the account has
// no key that can be used.
func (s *Service) Open(ctx context.Context, o Opening) (*Own, error) {
	c := &Own{s: s, id: id.New(), token: id.Opaque(), account: o.AccountID}
	var key modelkey.Key
	err := s.DB.Write(db.WithAccount(ctx, o.AccountID), func(tx *db.Tx) (err error) {
		if o.Before != "" {
			if err := s.endOwn(tx, o.Before, "lost"); err != nil {
				return err
			}
		}
		keys, err := modelkey.Pool(tx, o.AccountID)
		if err != nil {
			return err
		}
		wish := modelkey.Wish{Provider: llm.Provider(o.Provider), BaseURL: o.BaseURL, API: llm.Chat}
		i := slices.IndexFunc(keys, func(k modelkey.Key) bool {
			inOther := wish
			inOther.API = llm.Messages
			return k.Fits(wish) || k.Fits(inOther)
		})
		if i < 0 {
			return fault.New(fault.Forbidden, "no_credential", "The account has no key of a model provider that can be used for this. `yardmaster key add` adds one.")
		}
		if key, c.prompt.API = keys[i], llm.Chat; !key.Provider.Speaks(llm.Chat) {
			c.prompt.API = llm.Messages
		}
		var repo *string
		if o.RepoID != "" {
			repo = &o.RepoID
		}
		var person *string
		if o.RequestedBy != "" {
			person = &o.RequestedBy
		}
		c.prompt.Provider, c.prompt.MaxTokens, c.prompt.Model = key.Provider, o.MaxTokens, cmp.Or(o.Model, key.Provider.DefaultModel())
		if c.prompt.Model == "" {
			return fault.New(fault.Unprocessable, llm.SlugModel, "The provider of the account's key has no model of its own: `template.set` with model names one.")
		}
		if _, err = insertOwn.Exec(tx, insertOwnArgs{
			ID: c.id, AccountID: o.AccountID, RepoID: repo, Trigger: o.Trigger, Kind: o.Kind, StartedAt: tx.Now,
			RequestedBy: person,
		}); err != nil {
			return err
		}
		opened := openedData{Kind: o.Kind, Trigger: o.Trigger}
		if err := openedEvent.Record(tx, event.Subject{ID: c.id, RepoID: o.RepoID}, opened); err != nil {
			return err
		}
		return s.note(tx, c.id, noteOpened, OwnOpened{o.Trigger, o.Kind, string(c.prompt.Provider), c.prompt.Model})
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string]Attempt{}
	}
	s.own[seal.Hash(c.token)] = Attempt{SessionID: c.id, AccountID: o.AccountID, Provider: string(key.Provider), BaseURL: key.BaseURL}
	return c, nil
}

// ID is the session's.
func (c *Own) ID() string { return c.id }

// Say makes one call: prompts and answers in turn, a prompt first and last. The
// answer is the model's text; errors are faults. What is said is noted in the
// session, each prompt before the call it goes with.
func (c *Own) Say(ctx context.Context, system string, turns []string) (string, error) {
	p := c.prompt
	p.System, p.Turns = system, turns
	if err := c.note(ctx, notePrompt, shown(turns[len(turns)-1])); err != nil {
		return "", err
	}
	answer, err := c.s.calls.Complete(ctx, c.token, p)
	if err != nil {
		f := fault.From(err)
		return "", errors.Join(err, c.note(ctx, noteFailed, OwnFailed{f.Slug, secretscan.Scrub(f.Detail)}))
	}
	return answer, c.note(ctx, noteAnswer, shown(answer))
}

// note outlives the call that it tells of.
func (c *Own) note(ctx context.Context, kind string, data any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return c.s.DB.Write(db.WithAccount(ctx, c.account), func(tx *db.Tx) error { return c.s.note(tx, c.id, kind, data) })
}

// End closes the session, and its token is worth nothing any more.
func (c *Own) End(ctx context.Context, outcome string) {
	c.s.mu.Lock()
	delete(c.s.own, seal.Hash(c.token))
	c.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := c.s.DB.Write(db.WithAccount(ctx, c.account), func(tx *db.Tx) error { return c.s.endOwn(tx, c.id, outcome) })
	if err != nil {
		c.s.Logger.ErrorContext(ctx, "session is not ended", "session", c.id, "error", err)
	}
}

// endOwn closes a session of the platform's own, if it is open.
func (s *Service) endOwn(tx *db.Tx, sessionID, outcome string) error {
	n, err := endOwn.Exec(tx, sessionID, outcome, tx.Now)
	if err != nil || n == 0 {
		return err
	}
	if err := endedEvent.Record(tx, event.Subject{ID: sessionID}, endedData{Outcome: outcome}); err != nil {
		return err
	}
	return s.note(tx, sessionID, noteEnded, OwnEnded{outcome})
}

// The events of a session without a run.
const (
	noteOpened = "session.opened" // OwnOpened
	notePrompt = "prompt"         // OwnText
	noteAnswer = "answer"         // OwnText
	noteFailed = "call.failed"    // OwnFailed
	noteEnded  = "session.ended"  // OwnEnded
)

type (
	// OwnOpened says whom the platform talks to, and about what.
	OwnOpened struct {
		Trigger  string `json:"trigger"`
		Kind     string `json:"kind"`
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	// OwnText is a prompt or an answer, as data: what looks like a secret is
	// taken out of it, and an end that is too long is cut off.
	OwnText struct {
		Text  string `json:"text"`
		Chars int    `json:"chars"` // of the whole
		Cut   bool   `json:"cut,omitempty"`
	}
	// OwnFailed is why a call had no answer.
	OwnFailed struct {
		Slug   string `json:"slug"`
		Detail string `json:"detail"`
	}
	// OwnEnded is the end.
	OwnEnded struct {
		Outcome string `json:"outcome"`
	}
)

// maxNoted is how much of a prompt or an answer is kept, in characters.
const maxNoted = 64 << 10

func shown(text string) OwnText {
	out := OwnText{Chars: utf8.RuneCountInString(text)}
	runes := []rune(secretscan.Scrub(strings.ToValidUTF8(text, "\uFFFD")))
	if len(runes) > maxNoted {
		runes, out.Cut = runes[:maxNoted], true
	}
	out.Text = string(runes)
	return out
}
