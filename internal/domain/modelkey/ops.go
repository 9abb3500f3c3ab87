package modelkey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return slices.Concat([]op.Op{
		op.New(op.Row{
			ID: "billing.keys_list", Method: "GET", Path: "/v1/billing/keys", Group: group, Rule: policy.Require(policy.ReadBilling),
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The account's model provider keys, masked, by priority and then by age",
			Doc:     "The key with the lowest priority that fits a call is used first; no capability reads a key back.",
		}, s.list(pooled)),
		op.New(op.Row{
			ID: "billing.key_add", Method: "POST", Path: "/v1/billing/keys", Group: group,
			Rule: policy.Require(policy.WriteBilling), Status: 201,
			Summary: "Add a model provider key to the pool",
			Doc: "The key is sealed and used from the next call of a model on; whether it works shows in status with its " +
				"first use, or billing.key_verify asks. A base_url is for the providers compatible and azure alone. It must be an https address unless the operator " +
				"allows others, in the public network or in one that the operator allows.",
		}, s.add),
		op.New(op.Row{
			ID: "billing.key_delete", Method: "DELETE", Path: "/v1/billing/keys/{id}", Group: group,
			Rule:    policy.Require(policy.WriteBilling),
			Summary: "Take a key out of the pool and forget it; again is no error",
			Doc:     "The key itself is forgotten at once and serves no further call. Deleting it again answers deleted false.",
		}, s.delete(pooled)),
	}, s.priceOps(), s.upkeepOps(), s.placeOps(), s.personalOps(), s.prefOps())
}

// whose is the owner of the pool that a capability is about: the id of a person, or
// empty for the account.
type whose func(context.Context) string

func pooled(context.Context) string { return "" }

func personal(ctx context.Context) string { return policy.From(ctx).UserID }

type listIn struct{ op.PageIn }

func (s *Service) list(of whose) func(context.Context, listIn) (op.Page[BillingKey], error) {
	return func(ctx context.Context, in listIn) (op.Page[BillingKey], error) {
		var rows []row
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = list(tx, of(ctx), in.PageIn)
			return err
		})
		if err != nil {
			return op.Page[BillingKey]{}, err
		}
		return op.ShowPage(in.PageIn, rows, row.key, row.wire), nil
	}
}

// secretIn is a key that its owner tells, with what is needed to use it.
type secretIn struct {
	Provider llm.Provider `json:"provider" doc:"whose API it is for; scripted is the offline one of this server"`
	Key      string       `json:"key,omitempty" maxLength:"4000" example:"sk-example-key" doc:"the key itself, which is never shown again; not needed for scripted and compatible; for bedrock REGION:ACCESS_KEY_ID:SECRET_ACCESS_KEY"`
	BaseURL  string       `json:"base_url,omitempty" maxLength:"500" format:"uri" doc:"address of the API, for compatible and azure alone"`
}

// check refuses members that contradict each other, with a fault of the field, and an
// address that keys must not be sent to.
func (in *secretIn) check(ctx context.Context, s *Service) error {
	in.BaseURL = strings.TrimRight(in.BaseURL, "/")
	if err := checkKey(&in.Key, in.Provider); err != nil {
		return err
	}
	switch {
	case in.BaseURL == "" && in.Provider.Addressed():
		return fault.Field("base_url", "is required for the provider "+string(in.Provider))
	case in.BaseURL != "" && !in.Provider.Addressed():
		return fault.Field("base_url", "is for "+llm.WithAddress()+" only")
	case in.BaseURL != "":
		return s.checkBaseURL(ctx, in.BaseURL)
	}
	return nil
}

// checkKey trims a secret, and refuses one that cannot be one of the provider's.
func checkKey(key *string, provider llm.Provider) error {
	*key = strings.TrimSpace(*key)
	switch {
	case *key == "" && !provider.Keyless():
		return fault.Field("key", "is required for this provider")
	case *key != "" && provider.Local():
		return fault.Field("key", "is of no use to the provider "+string(provider))
	case strings.ContainsFunc(*key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fault.Field("key", "must be printable ASCII without spaces")
	case *key != "" && provider.KeyForm(*key) != "":
		return fault.Field("key", "must be "+provider.KeyForm(*key))
	}
	return nil
}

func (in secretIn) route() llm.Route {
	return llm.Route{Provider: in.Provider, BaseURL: in.BaseURL, Key: in.Key}
}

// useIn is how a key is to be used.
type useIn struct {
	Label    string `json:"label,omitempty" maxLength:"100" example:"Team key" doc:"name to tell it by; left out: the provider's name"`
	Kind     Kind   `json:"kind,omitempty" doc:"metered: each call costs; subscription: calls are paid for otherwise; metered unless given"`
	Capacity *int64 `json:"capacity,omitempty" minimum:"1" maximum:"256" example:"8" doc:"calls at once over it, of all nodes together; further ones go over another key or wait; left out: no limit is known"`
	Priority *int64 `json:"priority,omitempty" minimum:"0" maximum:"10000" doc:"the lowest is used first; 100 unless given"`
}

type addIn struct {
	secretIn
	useIn
	Model string      `json:"model,omitempty" maxLength:"200" doc:"for compatible and azure (there the deployment): the model that templates get which use this key and name none; left out: the endpoint of compatible is asked, and must have exactly one"`
	Price *ModelPrice `json:"price,omitempty" doc:"of whatever is called over the key; left out: what the price tables say"`
}

// AddedKey is the answer of billing.key_add.
type AddedKey struct {
	_ struct{} `doc:"A key that was added to the pool." schema:"AddedKey"`
	BillingKey
	Model     *string  `json:"model" doc:"of the providers compatible and azure; null for the others, which have a model of their own"`
	Templates []string `json:"templates" example:"[\"default\"]" doc:"the templates that have this model from now on: those that use the key and named none"`
}

// maxNamed is the number of models that a refusal names at most.
const maxNamed = 20

// onlyModel asks an endpoint for its models and returns the only one. It fails with
// a fault of the field model if there are several, or none.
func (s *Service) onlyModel(ctx context.Context, in addIn) (string, error) {
	if in.Provider.Deployed() {
		return "", fault.Field("model", "is required: the name of the deployment")
	}
	models, err := s.Probe.Models(ctx, in.route())
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

// insert puts a new key into a pool of tx.Account.
func (s *Service) insert(tx *db.Tx, user string, secret secretIn, use useIn, price *ModelPrice) (row, error) {
	priority := int64(100)
	if use.Priority != nil {
		priority = *use.Priority
	}
	keyID := id.New()
	if _, err := insert.Exec(tx, insertArgs{
		ID: keyID, AccountID: tx.Account, UserID: user, Provider: string(secret.Provider),
		Label: cmp.Or(use.Label, string(secret.Provider)), BaseURL: secret.BaseURL, Masked: mask(secret.Key),
		Sealed: s.seal(owner(tx.Account, user), secret.Key), Kind: cmp.Or(use.Kind, Metered),
		Capacity: use.Capacity, Priority: priority, CreatedAt: tx.Now, Price: price.stored(),
	}); err != nil {
		return row{}, err
	}
	s.wake(tx)
	return find(tx, user, keyID)
}

// wake has the queue of tx.Account looked at again: tasks may wait for a key, or for one that a
// person likes better.
func (s *Service) wake(tx *db.Tx) {
	s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
}

func (s *Service) add(ctx context.Context, in addIn) (out AddedKey, err error) {
	if in.Model != "" && !in.Provider.Addressed() {
		return out, fault.Field("model", "is for "+llm.WithAddress()+" only: the others have a model of their own")
	}
	if err := in.check(ctx, s); err != nil {
		return out, err
	}
	if in.Provider.Addressed() && in.Model == "" {
		if in.Model, err = s.onlyModel(ctx, in); err != nil {
			return out, err
		}
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.insert(tx, "", in.secretIn, in.useIn, in.Price)
		if err != nil {
			return err
		}
		out = AddedKey{BillingKey: r.wire(), Templates: []string{}}
		if in.Model != "" {
			out.Model = &in.Model
			if out.Templates, err = s.Templates.Adopt(tx, r.ID, in.Provider, in.BaseURL, in.Model); err != nil {
				return err
			}
		}
		if err := Repriced.Send(tx, tx.Account); err != nil {
			return err
		}
		return keyAddedEvent.Record(tx, event.Subject{ID: r.ID},
			keyAddedData{Provider: r.Provider, Label: r.Label, Model: in.Model, Templates: out.Templates})
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

func (s *Service) delete(of whose) func(context.Context, idIn) (DeletedKey, error) {
	return func(ctx context.Context, in idIn) (out DeletedKey, err error) {
		user := of(ctx)
		err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
			r, err := find(tx, user, in.ID)
			if err != nil {
				return err
			}
			n, err := erase.Exec(tx, tx.Account, r.ID, tx.Now)
			out = DeletedKey{ID: r.ID, Deleted: n > 0}
			if err != nil || n == 0 {
				return err
			}
			if err := donation.KeyGone(tx, r.ID); err != nil {
				return err
			}
			return keysEvents(user).deleted.Record(tx, event.Subject{ID: r.ID}, keyDeletedData{Provider: r.Provider, Label: r.Label})
		})
		return out, err
	}
}
