package donation

import (
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

// SlugGiven is the slug of the refusal to give what is given already.
const SlugGiven = "already-given"

// may refuses callers who may not dispose of what a gift is made of: whoever manages keys gives
// and takes back keys and money, whoever manages boxes gives boxes.
func may(a policy.Actor, kind Kind) error {
	need := policy.Scopes(policy.WriteBilling)
	if kind == Compute {
		need = policy.Scopes(policy.WriteRunners)
	}
	if missing := need &^ a.Scopes; missing != 0 {
		return policy.MissingScope(missing)
	}
	return nil
}

// check refuses members that contradict each other, with a fault of the field.
func (in *createIn) check() error {
	pinned := in.Target == Project
	switch {
	case pinned && in.Repo == "":
		return fault.Field("repo", "is required for the target project")
	case !pinned && in.Repo != "":
		return fault.Field("repo", "is for the target project only")
	case in.Kind == Compute && in.BoxID == "":
		return fault.Field("box_id", "is required for a gift of compute")
	case in.Kind != Compute && in.BoxID != "":
		return fault.Field("box_id", "is for a gift of compute only")
	case in.Kind != Compute && in.KeyID == "":
		return fault.Field("key_id", "is required: the key that is lent, or that pays")
	case in.Kind == Compute && in.KeyID != "":
		return fault.Field("key_id", "is of no use to a gift of compute")
	case in.Kind == Money && in.USD == nil:
		return fault.Field("usd", "is required for a gift of money")
	case in.Kind != Money && in.USD != nil:
		return fault.Field("usd", "is for a gift of money only")
	case in.Kind == Compute && len(in.Models) > 0:
		return fault.Field("models", "are of no use to a gift of compute")
	}
	return nil
}

// ceiling are the names of the models of a ceiling, all of one provider; nil: none was set.
func ceiling(models []Model, of llm.Provider) (*db.JSON[[]string], error) {
	if len(models) == 0 {
		return nil, nil
	}
	if of == llm.OpenRouter {
		return nil, fault.Field("models", "hold nothing at openrouter, which takes other models to fall back on in the body of a call")
	}
	names := make([]string, 0, len(models))
	for i, m := range models {
		at := fmt.Sprintf("models.%d.", i)
		switch {
		case m.Provider != of:
			return nil, fault.Field(at+"provider", "must be that of the key, which is "+string(of))
		case strings.TrimSpace(m.Model) != m.Model || strings.ContainsFunc(m.Model, func(c rune) bool { return c <= ' ' || c > '~' }):
			return nil, fault.Field(at+"model", "must be printable ASCII without spaces")
		case slices.Contains(names, m.Model):
			return nil, fault.Field(at+"model", "is there twice")
		}
		names = append(names, m.Model)
	}
	return &db.JSON[[]string]{V: names}, nil
}

// key finds the key of a gift, and refuses one that may not be given. A key with an address of
// its own answers in the place of a model, wherever that is, and so would have a say over agents
// of others; it is no gift.
func (s *Service) key(tx *db.Tx, in createIn) (llm.Provider, error) {
	if !id.Valid(in.KeyID) {
		return "", fault.Missing("key")
	}
	k, ok, err := s.Keys.Pooled(tx, in.KeyID)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", fault.Missing("key")
	case k.Provider.Addressed():
		return "", fault.Field("key_id", "is a key with an address of its own, which cannot be given: "+
			"whoever runs that address would answer the agents of others")
	case in.Kind == Money && k.Subscription:
		return "", fault.Field("key_id", "is a subscription, over which no call costs money: give the key itself, with the kind llm")
	}
	return k.Provider, nil
}

// allows tells whether a ceiling allows a model, which is compared to the letter: another
// spelling, an alias or a dated snapshot is another model.
func (r *row) allows(model string) bool { return r.Models == nil || slices.Contains(r.Models.V, model) }

// resolved are the models of a gift of a key: its ceiling, or what is known of its provider.
func (s *Service) resolved(r *row) []Model {
	out := []Model{}
	if r.Kind == Compute {
		return out
	}
	if r.Models == nil {
		for _, name := range s.Prices.Models(llm.Provider(r.Provider)) {
			out = append(out, Model{Provider: llm.Provider(r.Provider), Model: name})
		}
		return out
	}
	for _, name := range r.Models.V {
		out = append(out, Model{Provider: llm.Provider(r.Provider), Model: name})
	}
	return out
}

// catalogue are the models that the server knows, by provider.
func (s *Service) catalogue() []Model {
	out := []Model{}
	for _, p := range llm.Providers() {
		for _, name := range s.Prices.Models(p) {
			out = append(out, Model{Provider: p, Model: name})
		}
	}
	return out
}

// split are the two parts of owner/name.
func split(full string) (owner, name string) {
	owner, name, _ = strings.Cut(full, "/")
	return owner, name
}
