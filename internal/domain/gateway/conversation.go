package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/seal"
)

// Conversation is a conversation that the platform itself has with a model, such as
// a triage. It uses the keys of an account and counts for its budgets.
type Conversation struct {
	s       *Service
	id      string // of its session
	token   string // known to this process alone
	account string
	prompt  llm.Prompt
}

// Opening is the subject of a Conversation, and the model that is wished for.
type Opening struct {
	AccountID   string
	RepoID      string // empty: none
	Trigger     string // of the session
	Kind        string // of the session
	RequestedBy string // the person whose budget it counts for; empty: nobody's
	// Provider, BaseURL and Model are those of a template. The account's first key
	// that fits decides what they leave open.
	Provider, BaseURL, Model string
	MaxTokens                int // of an answer
	// Before is the session of an earlier try, which Open ends as lost if it is still
	// open; empty: none.
	Before string
	// Longest is how long a conversation of this kind takes at most: Open ends those of the
	// account that are open for longer, as lost. Zero: none.
	Longest time.Duration
}

// Open begins a conversation, which the caller ends with End. It fails with
// fault.Forbidden and the slug no_credential if the account has no key that fits,
// and with fault.Unprocessable if neither o nor the key's provider names a model.
func (s *Service) Open(ctx context.Context, o Opening) (*Conversation, error) {
	c := &Conversation{s: s, id: id.New(), token: id.Opaque(), account: o.AccountID}
	var key modelkey.Candidate
	err := s.DB.Write(db.WithAccount(ctx, o.AccountID), func(tx *db.Tx) (err error) {
		if o.Before != "" {
			if err := s.Sessions.EndOwn(tx, o.Before, "lost"); err != nil {
				return err
			}
		}
		if o.Longest > 0 {
			if err := s.Sessions.EndLost(tx, o.Kind, o.Longest); err != nil {
				return err
			}
		}
		if key, err = keyFor(tx, o); err != nil {
			return err
		}
		c.prompt = llm.Prompt{
			API: key.API, Provider: key.Provider, Model: cmp.Or(key.ModelOf(o.Model), key.Provider.DefaultModel()), MaxTokens: o.MaxTokens,
		}
		if c.prompt.Model == "" {
			return fault.New(fault.Unprocessable, llm.SlugModel,
				"The provider of the account's key has no model of its own: `template.set` with model names one.")
		}
		return s.Sessions.BeginOwn(tx, session.Own{
			ID: c.id, RepoID: o.RepoID, Trigger: o.Trigger, Kind: o.Kind, RequestedBy: o.RequestedBy,
			Provider: string(c.prompt.Provider), Model: c.prompt.Model,
		})
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string]Attempt{}
	}
	s.own[seal.Hash(c.token)] = Attempt{
		SessionID: c.id, AccountID: o.AccountID, RepoID: o.RepoID, Person: o.RequestedBy,
		Provider: string(key.Provider), BaseURL: key.BaseURL,
	}
	return c, nil
}

// keyFor is the first key of the account that fits and speaks Chat or Messages.
func keyFor(tx *db.Tx, o Opening) (modelkey.Candidate, error) {
	all, err := modelkey.Candidates(tx, o.AccountID, modelkey.Wish{
		Provider: llm.Provider(o.Provider), BaseURL: o.BaseURL, Model: o.Model, Person: o.RequestedBy, Repo: o.RepoID,
		APIs: []llm.API{llm.Chat, llm.Messages},
	})
	if err == nil && len(all) == 0 {
		err = fault.New(fault.Forbidden, "no_credential",
			"The account has no key of a model provider that can be used for this. `yardmaster key add` adds one.")
	}
	if err != nil {
		return modelkey.Candidate{}, err
	}
	return all[0], nil
}

// ID is the id of the session.
func (c *Conversation) ID() string { return c.id }

// Say makes one call and returns the text of the model's answer. In turns, prompts
// and answers alternate, and the first and the last are prompts. The last prompt is
// noted in the session before the call, the answer or the failure after it. Say
// fails with the fault of the call.
func (c *Conversation) Say(ctx context.Context, system string, turns []string) (string, error) {
	p := c.prompt
	p.System, p.Turns = system, turns
	if err := c.note(ctx, session.Prompt(turns[len(turns)-1])); err != nil {
		return "", err
	}
	answer, err := c.s.caller.Complete(ctx, c.token, p)
	if err != nil {
		f := fault.From(err)
		return "", errors.Join(err, c.note(ctx, session.Failure(f.Slug, f.Detail)))
	}
	return answer, c.note(ctx, session.Answer(answer))
}

// note stores a note, also when ctx is over.
func (c *Conversation) note(ctx context.Context, n session.OwnNote) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return c.s.DB.Write(db.WithAccount(ctx, c.account), func(tx *db.Tx) error {
		return c.s.Sessions.NoteOwn(tx, c.id, n)
	})
}

// End closes the session and forgets its token. A session that cannot be closed is
// logged.
func (c *Conversation) End(ctx context.Context, outcome string) {
	c.s.mu.Lock()
	delete(c.s.own, seal.Hash(c.token))
	c.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := c.s.DB.Write(db.WithAccount(ctx, c.account), func(tx *db.Tx) error {
		return c.s.Sessions.EndOwn(tx, c.id, outcome)
	})
	if err != nil {
		c.s.Logger.ErrorContext(ctx, "session is not ended", "session", c.id, "error", err)
	}
}
