package modelkey

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

// Pref is the provider and the model that a person likes best; the zero value is none.
type Pref struct {
	Provider llm.Provider
	Model    string // empty: the provider's own default
}

// Of is a wish as the preference of its person makes it. False: the preference has no say,
// because the wish is not a person's alone, or names a model, or another provider. It names
// no address and no key, so calls go where Candidates would send them anyway.
func (p Pref) Of(w Wish) (Wish, bool) {
	if p.Provider == "" || w.Person == "" || w.Model != "" || w.Provider != "" && w.Provider != p.Provider {
		return w, false
	}
	w.Provider, w.Model = p.Provider, p.Model
	return w, true
}

// PrefOf reads what a person likes best in an account.
func PrefOf(tx *db.Tx, account, user string) (Pref, error) {
	r, _, err := onePref.Maybe(tx, account, user)
	return Pref{llm.Provider(r.Provider), r.Model}, err
}

// LLMPref is a preference as clients see it.
type LLMPref struct {
	_         struct{}      `doc:"The model that a person likes best." schema:"LLMPref"`
	Provider  *llm.Provider `json:"provider" example:"anthropic" doc:"null: none is set, and runs go as the account has it"`
	Model     *string       `json:"model" example:"model-1" doc:"null: the provider's own default"`
	Usable    bool          `json:"usable" example:"true" doc:"false: there is no key for it, and runs go as the account has it"`
	UpdatedAt *time.Time    `json:"updated_at" doc:"when it was set; null: never"`
}

// ClearedPref is the answer of self.llm_pref_clear.
type ClearedPref struct {
	_       struct{} `doc:"What self.llm_pref_clear did." schema:"ClearedPref"`
	Cleared bool     `json:"cleared" doc:"false: there was none"`
}

// prefOps lists the capabilities about preferences.
func (s *Service) prefOps() []op.Op {
	mine := policy.Require(policy.SelfKeys).OfUser()
	return []op.Op{
		op.New(op.Row{
			ID: "self.llm_pref_get", Method: "GET", Path: "/v1/me/llm-pref", Group: selfGroup, Rule: mine,
			Summary: "The provider and the model that the caller likes best in the account",
			Doc:     "All null when none is set.",
		}, s.pref),
		op.New(op.Row{
			ID: "self.llm_pref_set", Method: "PUT", Path: "/v1/me/llm-pref", Group: selfGroup, Rule: mine,
			Summary: "Say which provider and model the caller likes best",
			Doc: "Decides, from the next run on, where a template leaves it open, in work that the caller alone asked for; not for " +
				"reviews and checks. It brings no key: without one of the account or of the caller for the provider, runs go as if it " +
				"were not set. Budgets hold as ever.",
		}, s.prefSet),
		op.New(op.Row{
			ID: "self.llm_pref_clear", Method: "DELETE", Path: "/v1/me/llm-pref", Group: selfGroup, Rule: mine,
			Summary: "Return to the account's default; again is no error",
			Doc:     "Clearing what is not set answers cleared false.",
		}, s.prefClear),
	}
}

// readPref reads a preference of tx.Account as its person sees it.
func readPref(tx *db.Tx, user string) (out LLMPref, err error) {
	r, ok, err := onePref.Maybe(tx, tx.Account, user)
	if err != nil || !ok {
		return out, err
	}
	p := llm.Provider(r.Provider)
	out.Provider, out.UpdatedAt = &p, &r.UpdatedAt
	if r.Model != "" {
		out.Model = &r.Model
	}
	keys, err := Candidates(tx, tx.Account, Wish{
		Provider: p, Model: r.Model, Person: user, APIs: []llm.API{llm.Chat, llm.Messages, llm.Responses, llm.Gemini},
	})
	out.Usable = len(keys) > 0
	return out, err
}

func (s *Service) pref(ctx context.Context, _ op.None) (out LLMPref, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = readPref(tx, personal(ctx))
		return err
	})
	return out, err
}

type prefIn struct {
	Provider llm.Provider `json:"provider" required:"true" doc:"whose models they like best"`
	Model    *string      `json:"model" maxLength:"200" example:"model-1" doc:"as the provider is asked for it; null or left out: the provider's own default"`
}

// check refuses what no call can be made of, and answers the model.
func (in prefIn) check() (model string, err error) {
	if in.Model != nil {
		model = strings.TrimSpace(*in.Model)
	}
	switch {
	case in.Model != nil && model == "":
		return "", fault.Field("model", "must not be empty; null is the provider's own default")
	case strings.ContainsFunc(model, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fault.Field("model", "must be printable ASCII without spaces")
	case model == "" && in.Provider.DefaultModel() == "":
		return "", fault.Field("model", "is required for the provider "+string(in.Provider)+", which has none of its own")
	}
	return model, nil
}

func (s *Service) prefSet(ctx context.Context, in prefIn) (out LLMPref, err error) {
	model, err := in.check()
	if err != nil {
		return out, err
	}
	user := personal(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		before, err := PrefOf(tx, tx.Account, user)
		if err != nil {
			return err
		}
		if (before == Pref{in.Provider, model}) {
			out, err = readPref(tx, user)
			return err
		}
		if _, err := putPref.Exec(tx, prefRow{
			AccountID: tx.Account, UserID: user, Provider: string(in.Provider), Model: model, UpdatedAt: tx.Now,
		}); err != nil {
			return err
		}
		if out, err = readPref(tx, user); err != nil {
			return err
		}
		s.wake(tx)
		return prefSetEvent.Record(tx, event.Subject{ID: user}, prefSetData{Provider: string(in.Provider), Model: model})
	})
	return out, err
}

func (s *Service) prefClear(ctx context.Context, _ op.None) (out ClearedPref, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if out.Cleared, err = dropPrefOf(tx, personal(ctx)); out.Cleared {
			s.wake(tx)
		}
		return err
	})
	return out, err
}

// dropPrefOf forgets the preference of a person in tx.Account; false: there was none.
func dropPrefOf(tx *db.Tx, user string) (bool, error) {
	n, err := dropPref.Exec(tx, tx.Account, user)
	if err != nil || n == 0 {
		return false, err
	}
	return true, prefClearedEvent.Record(tx, event.Subject{ID: user}, event.None{})
}

// PrefRightsChanged forgets the preferences that a user has in accounts to which they do not
// belong any more. It is a subscriber of event.RightsChanged.
func PrefRightsChanged(tx *db.Tx, userID string) error {
	rows, err := prefsOf.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	return people.Leave(tx, userID, accounts, func(int) error {
		_, err := dropPrefOf(tx, userID)
		return err
	})
}

// The data and the events of preferences. The object of one is the person.
type prefSetData struct {
	Provider string `json:"provider" doc:"whose models the person likes best"`
	Model    string `json:"model" doc:"empty: the provider's own default"`
}

var (
	prefSetEvent     = event.Declare[prefSetData]("self.llm_pref_set", ownAudience, "A person said which model they like best.")
	prefClearedEvent = event.Declare[event.None]("self.llm_pref_cleared", ownAudience,
		"A person has no preference of a model any more: they took it back, or are not a member any more.")
)
