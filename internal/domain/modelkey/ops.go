package modelkey

import (
	"context"
	"fmt"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return append([]op.Op{
		op.New(op.Row{
			ID: "billing.keys_list", Method: "GET", Path: "/v1/billing/keys", Group: group, Rule: policy.Require(policy.ReadBilling),
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The account's model provider keys, masked, by priority and then by age",
			Doc:     "The key with the lowest priority that fits a call is used first; no capability reads a key back.",
		}, s.list),
		op.New(op.Row{
			ID: "billing.key_add", Method: "POST", Path: "/v1/billing/keys", Group: group,
			Rule: policy.Require(policy.WriteBilling), Status: 201,
			Summary: "Add a model provider key to the pool",
			Doc: "The key is sealed and used from the next call of a model on; whether it works shows with its first use, " +
				"in status. A base_url is for the provider compatible alone. It must be an https address unless the operator " +
				"allows others, in the public network or in one that the operator allows.",
		}, s.add),
		op.New(op.Row{
			ID: "billing.key_delete", Method: "DELETE", Path: "/v1/billing/keys/{id}", Group: group,
			Rule:    policy.Require(policy.WriteBilling),
			Summary: "Take a key out of the pool and forget it; again is no error",
			Doc:     "The key itself is forgotten at once and serves no further call. Deleting it again answers deleted false.",
		}, s.delete),
	}, s.priceOps()...)
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[BillingKey], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[BillingKey]{}, err
	}
	return op.ShowPage(in.PageIn, rows, row.key, row.wire), nil
}

type addIn struct {
	Provider llm.Provider `json:"provider" doc:"whose API it is for; scripted is the offline one of this server"`
	Label    string       `json:"label,omitempty" maxLength:"100" example:"Team key" doc:"name to tell it by; left out: the provider's name"`
	Key      string       `json:"key,omitempty" maxLength:"4000" example:"sk-example-key" doc:"the key itself, which is never shown again; not needed for scripted and compatible"`
	BaseURL  string       `json:"base_url,omitempty" maxLength:"500" format:"uri" doc:"address of the API, for compatible alone"`
	Model    string       `json:"model,omitempty" maxLength:"200" doc:"for compatible: the model that templates get which use this key and name none; left out: the endpoint is asked, and must have exactly one"`
	Kind     string       `json:"kind,omitempty" enum:"metered,subscription" doc:"metered: each call costs; subscription: calls are paid for otherwise; metered unless given"`
	Capacity *int64       `json:"capacity,omitempty" minimum:"1" maximum:"256" example:"8" doc:"calls at once that the key is meant for, a note for people: nothing holds calls to it"`
	Price    *ModelPrice  `json:"price,omitempty" doc:"of whatever is called over the key; left out: what the price tables say"`
	Priority *int64       `json:"priority,omitempty" minimum:"0" maximum:"10000" doc:"the lowest is used first; 100 unless given"`
}

// check refuses members that contradict each other, with a fault of the field, and
// sets defaults.
func (in *addIn) check() error {
	provider := in.Provider
	in.Key, in.BaseURL = strings.TrimSpace(in.Key), strings.TrimRight(in.BaseURL, "/")
	switch {
	case in.Key == "" && !provider.Keyless():
		return fault.Field("key", "is required for this provider")
	case in.Key != "" && provider.Local():
		return fault.Field("key", "is of no use to the provider "+string(provider))
	case strings.ContainsFunc(in.Key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fault.Field("key", "must be printable ASCII without spaces")
	case in.BaseURL == "" && provider.Addressed():
		return fault.Field("base_url", "is required for the provider "+string(provider))
	case in.BaseURL != "" && !provider.Addressed():
		return fault.Field("base_url", "is for the provider compatible only")
	}
	if in.Model != "" && !provider.Addressed() {
		return fault.Field("model", "is for the provider compatible only: the others have a model of their own")
	}
	if in.Label == "" {
		in.Label = string(in.Provider)
	}
	if in.Kind == "" {
		in.Kind = Metered
	}
	if in.Priority == nil {
		in.Priority = new(int64)
		*in.Priority = 100
	}
	return nil
}

// AddedKey is the answer of billing.key_add.
type AddedKey struct {
	_ struct{} `doc:"A key that was added to the pool." schema:"AddedKey"`
	BillingKey
	Model     *string  `json:"model" doc:"of the provider compatible; null for the others, which have a model of their own"`
	Templates []string `json:"templates" example:"[\"default\"]" doc:"the templates that have this model from now on: those that use the key and named none"`
}

// maxNamed is the number of models that a refusal names at most.
const maxNamed = 20

// onlyModel asks an endpoint for its models and returns the only one. It fails with
// a fault of the field model if there are several, or none.
func (s *Service) onlyModel(ctx context.Context, in addIn) (string, error) {
	models, err := s.Models(ctx, llm.Route{Provider: in.Provider, BaseURL: in.BaseURL, Key: in.Key})
	switch {
	case err != nil:
		why := ""
		if f := fault.From(err); f.Slug == llm.SlugAuth {
			why = " (" + f.Detail + ")"
		}
		return "", fault.Field("model", "is required: the endpoint could not be asked for its models"+why).Because(err)
	case len(models) == 0:
		return "", fault.Field("model", "is required: the endpoint lists no model")
	case len(models) == 1:
		return models[0], nil
	}
	list := strings.Join(models[:min(len(models), maxNamed)], ", ")
	if more := len(models) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "", fault.Field("model", "is required: the endpoint has "+list)
}

func (s *Service) add(ctx context.Context, in addIn) (out AddedKey, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	if in.BaseURL != "" {
		if err := s.checkBaseURL(ctx, in.BaseURL); err != nil {
			return out, err
		}
	}
	if in.Provider.Addressed() && in.Model == "" {
		if in.Model, err = s.onlyModel(ctx, in); err != nil {
			return out, err
		}
	}
	keyID := id.New()
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := insert.Exec(tx, insertArgs{
			ID: keyID, AccountID: tx.Account, Provider: string(in.Provider), Label: in.Label, BaseURL: in.BaseURL,
			Masked: mask(in.Key), Sealed: s.Ring.Seal(purpose(tx.Account), []byte(in.Key)), Kind: in.Kind,
			Capacity: in.Capacity, Priority: *in.Priority, CreatedAt: tx.Now, Price: in.Price.stored(),
		}); err != nil {
			return err
		}
		r, err := find(tx, keyID)
		if err != nil {
			return err
		}
		out = AddedKey{BillingKey: r.wire(), Templates: []string{}}
		if in.Model != "" {
			out.Model = &in.Model
			if out.Templates, err = s.Templates.Adopt(tx, keyID, in.BaseURL, in.Model); err != nil {
				return err
			}
		}
		if err := Repriced.Send(tx, tx.Account); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic("")) // tasks may wait for a key
		return keyAddedEvent.Record(tx, event.Subject{ID: keyID},
			keyAddedData{Provider: string(in.Provider), Label: in.Label, Model: in.Model, Templates: out.Templates})
	})
	return out, err
}

// DeletedKey is the answer of billing.key_delete.
type DeletedKey struct {
	_       struct{} `doc:"What billing.key_delete did." schema:"DeletedKey"`
	ID      string   `json:"id" format:"uuid" doc:"id of the key"`
	Deleted bool     `json:"deleted" doc:"false: it was deleted before"`
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the key"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out DeletedKey, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		n, err := erase.Exec(tx, tx.Account, r.ID, tx.Now)
		out = DeletedKey{ID: r.ID, Deleted: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return keyDeletedEvent.Record(tx, event.Subject{ID: r.ID}, keyDeletedData{Provider: r.Provider, Label: r.Label})
	})
	return out, err
}
