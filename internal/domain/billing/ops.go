package billing

import (
	"cmp"
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
			Summary: "The account's model keys, masked, newest first"}, s.list),
		op.New(op.Row{ID: "billing.key_add", Method: "POST", Path: "/v1/billing/keys", Group: group, Rule: policy.Require(policy.WriteBilling), Status: 201,
			Summary: "Add a model key; it is sealed and never shown again"}, s.add),
		op.New(op.Row{ID: "billing.key_delete", Method: "DELETE", Path: "/v1/billing/keys/{id}", Group: group, Rule: policy.Require(policy.WriteBilling),
			Summary: "Delete a model key"}, s.delete),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Key], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := op.Page[Key]{Data: make([]Key, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = r.key()
	}
	return out, err
}

type addIn struct {
	Provider string `json:"provider" enum:"anthropic,openai,google,openrouter,compatible,scripted"`
	Label    string `json:"label" minLength:"1" maxLength:"100"`
	Key      string `json:"key,omitempty" maxLength:"4096" doc:"the secret; not needed for scripted"`
	BaseURL  string `json:"base_url,omitempty" maxLength:"500" doc:"in place of the provider's own address; required for compatible"`
	Kind     string `json:"kind,omitempty" enum:"metered,subscription" default:"metered"`
	Capacity *int64 `json:"capacity,omitempty" minimum:"1" maximum:"256"`
	Priority *int64 `json:"priority,omitempty" minimum:"0" maximum:"10000" default:"100"`
}

func (s *Service) add(ctx context.Context, in addIn) (Key, error) {
	provider := llm.Provider(in.Provider)
	in.Key = strings.TrimSpace(in.Key)
	if in.Key == "" && provider != llm.Scripted {
		return Key{}, fault.Field("key", "is required")
	}
	if err := checkBase(provider, in.BaseURL); err != nil {
		return Key{}, err
	}
	priority := int64(100)
	if in.Priority != nil {
		priority = *in.Priority
	}
	var r row
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		keyID := id.New()
		sealed := s.Ring.Seal(purpose(tx.Account), []byte(in.Key))
		if _, err := insert.Exec(tx, keyID, tx.Account, in.Provider, in.Label, strings.TrimRight(in.BaseURL, "/"), mask(in.Key), sealed,
			cmp.Or(in.Kind, Metered), in.Capacity, priority, tx.Micros()); err != nil {
			return err
		}
		var err error
		if r, err = byID.One(tx, tx.Account, keyID); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: "billing.key_added", Object: keyID, Data: map[string]string{"provider": in.Provider, "label": in.Label}})
	})
	return r.key(), err
}

type idIn struct {
	ID string `json:"id"`
}

// KeyDeleted names the key that is gone.
type KeyDeleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func (s *Service) delete(ctx context.Context, in idIn) (KeyDeleted, error) {
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := remove.Exec(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("key")
		}
		return event.Record(tx, event.Change{Kind: "billing.key_deleted", Object: in.ID})
	})
	return KeyDeleted{in.ID, true}, err
}
