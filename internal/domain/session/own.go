package session

import (
	"context"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/billing"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/seal"
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
	var key billing.Key
	err := s.DB.Write(db.WithAccount(ctx, o.AccountID), func(tx *db.Tx) (err error) {
		if o.Before != "" {
			if _, err := endOwn.Exec(tx, o.Before, "lost", tx.Now); err != nil {
				return err
			}
		}
		keys, err := billing.Pool(tx, o.AccountID)
		if err != nil {
			return err
		}
		wish := billing.Wish{Provider: llm.Provider(o.Provider), BaseURL: o.BaseURL, API: llm.Chat}
		i := slices.IndexFunc(keys, func(k billing.Key) bool {
			inOther := wish
			inOther.API = llm.Messages
			return k.Fits(wish) || k.Fits(inOther)
		})
		if i < 0 {
			return fault.New(fault.Forbidden, "no_credential", "The account has no key of a model provider that can be used for this. Add one with billing.key_add.")
		}
		if key, c.prompt.API = keys[i], llm.Chat; !key.Provider.Speaks(llm.Chat) {
			c.prompt.API = llm.Messages
		}
		var repo *string
		if o.RepoID != "" {
			repo = &o.RepoID
		}
		_, err = insertOwn.Exec(tx, c.id, o.AccountID, repo, o.Trigger, o.Kind, tx.Now)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.prompt.Provider, c.prompt.MaxTokens, c.prompt.Model = key.Provider, o.MaxTokens, o.Model
	if c.prompt.Model == "" {
		c.prompt.Model = key.Provider.DefaultModel()
	}
	if c.prompt.Model == "" {
		c.prompt.Model = "default"
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
// answer is the model's text; errors are faults.
func (c *Own) Say(ctx context.Context, system string, turns []string) (string, error) {
	p := c.prompt
	p.System, p.Turns = system, turns
	return c.s.Calls.Complete(ctx, c.token, p)
}

// End closes the session, and its token is worth nothing any more.
func (c *Own) End(ctx context.Context, outcome string) {
	c.s.mu.Lock()
	delete(c.s.own, seal.Hash(c.token))
	c.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := c.s.DB.Write(db.WithAccount(ctx, c.account), func(tx *db.Tx) error {
		_, err := endOwn.Exec(tx, c.id, outcome, tx.Now)
		return err
	})
	if err != nil && c.s.Logger != nil {
		c.s.Logger.ErrorContext(ctx, "session is not ended", "session", c.id, "error", err)
	}
}
