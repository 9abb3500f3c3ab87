package billing

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "billing.keys_list", Method: "GET", Path: "/v1/billing/keys", Group: group, Rule: policy.Require(policy.ReadBilling), Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The account's model provider keys, masked, in the order they are used in"}, s.list),
		op.New(op.Row{ID: "billing.key_add", Method: "POST", Path: "/v1/billing/keys", Group: group, Rule: policy.Require(policy.WriteBilling), Status: 201,
			Summary: "Add a model provider key to the pool"}, s.add),
		op.New(op.Row{ID: "billing.key_delete", Method: "DELETE", Path: "/v1/billing/keys/{id}", Group: group, Rule: policy.Require(policy.WriteBilling),
			Summary: "Take a key out of the pool and forget it; again is no error"}, s.delete),
	}
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
	p := op.NewPage(in.PageIn, rows, row.key)
	out := op.Page[BillingKey]{Data: make([]BillingKey, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = r.wire()
	}
	return out, nil
}

type addIn struct {
	Provider string `json:"provider" enum:"anthropic,openai,google,openrouter,compatible,scripted"`
	Label    string `json:"label,omitempty" maxLength:"100" doc:"left out: the provider's name"`
	Key      string `json:"key,omitempty" maxLength:"4000" doc:"not needed for scripted and compatible"`
	BaseURL  string `json:"base_url,omitempty" maxLength:"500" doc:"required for compatible, refused for the others"`
	Kind     string `json:"kind,omitempty" enum:"metered,subscription" doc:"default metered"`
	Capacity *int64 `json:"capacity,omitempty" minimum:"1" maximum:"256"`
	Priority *int64 `json:"priority,omitempty" minimum:"0" maximum:"10000" doc:"default 100"`
}

// check refuses what contradicts itself, and fills in defaults.
func (in *addIn) check(plain Plain) error {
	provider := llm.Provider(in.Provider)
	in.Key, in.BaseURL = strings.TrimSpace(in.Key), strings.TrimRight(in.BaseURL, "/")
	switch {
	case in.Key == "" && !keyless(provider):
		return fault.Field("key", "is required for this provider")
	case in.Key != "" && provider == llm.Scripted:
		return fault.Field("key", "is of no use to the provider scripted")
	case strings.ContainsFunc(in.Key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fault.Field("key", "must be printable ASCII without spaces")
	case in.BaseURL == "" && provider == llm.Compatible:
		return fault.Field("base_url", "is required for the provider compatible")
	case in.BaseURL != "" && provider != llm.Compatible:
		return fault.Field("base_url", "is for the provider compatible only")
	case in.BaseURL != "":
		if err := checkBaseURL(in.BaseURL, plain); err != nil {
			return err
		}
	}
	if in.Label == "" {
		in.Label = in.Provider
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

func (s *Service) add(ctx context.Context, in addIn) (out BillingKey, err error) {
	if err := in.check(s.PlainHTTP); err != nil {
		return out, err
	}
	keyID := id.New()
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := insert.Exec(tx, keyID, tx.Account, in.Provider, in.Label, in.BaseURL, mask(in.Key), s.Ring.Seal(purpose(tx.Account), []byte(in.Key)),
			in.Kind, in.Capacity, *in.Priority, tx.Now); err != nil {
			return err
		}
		r, err := find(tx, keyID)
		if err != nil {
			return err
		}
		out = r.wire()
		return event.Record(tx, event.Change{Kind: "billing.key_added", Object: keyID, Data: map[string]string{"provider": in.Provider, "label": in.Label}})
	})
	return out, err
}

// DeletedKey is the answer of billing.key_delete.
type DeletedKey struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted" doc:"false: it was deleted before"`
}

type idIn struct {
	ID string `json:"id"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out DeletedKey, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		n, err := erase.Exec(tx, tx.Account, r.ID, tx.Now)
		out = DeletedKey{r.ID, n > 0}
		if err != nil || n == 0 {
			return err
		}
		return event.Record(tx, event.Change{Kind: "billing.key_deleted", Object: r.ID, Data: map[string]string{"provider": r.Provider, "label": r.Label}})
	})
	return out, err
}
