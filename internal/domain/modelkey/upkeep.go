package modelkey

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

// Refusals of what asks a provider.
var (
	refused = []op.Refusal{{Status: 422, Slug: llm.SlugAuth}, {Status: 422, Slug: llm.SlugQuota}, {Status: 503, Slug: llm.SlugUnavailable}}
	raced   = []op.Refusal{{Status: 409, Slug: "key-rotated"}, {Status: 503, Slug: llm.SlugUnavailable}}
)

// What the rows of both pools say alike.
const (
	verifyDoc = "Asks the provider about the key in a way that costs nothing, and notes the outcome in status. A key that is refused " +
		"is an answer with works false; 503 if the provider could not be asked, which says nothing of the key."
	rotateDoc = "The id, priority and price stay. Calls under way end with the old secret, calls from now on have the new one, which " +
		"is unverified. 400 for the provider scripted, which has none."
	modelsDoc = "Asked of the provider now, and sorted. The key is sent there alone and kept nowhere: not in a row, a log or an " +
		"answer that is kept for retries, so an Idempotency-Key is ignored."
	kindDoc = "Among keys of one priority a subscription is used first. What a call costs follows from the prices."
)

// upkeepOps lists the capabilities about a key of the account that is there, and about
// what a provider says.
func (s *Service) upkeepOps() []op.Op {
	read, write := policy.Require(policy.ReadBilling), policy.Require(policy.WriteBilling)
	return []op.Op{
		op.New(op.Row{
			ID: "billing.key_verify", Method: "POST", Path: "/v1/billing/keys/{id}/verify", Group: group, Rule: write, Refuses: raced,
			Summary: "Ask the provider whether it takes a key of the pool", Doc: verifyDoc,
		}, s.verify(pooled)),
		op.New(op.Row{
			ID: "billing.key_rotate", Method: "POST", Path: "/v1/billing/keys/{id}/rotate", Group: group, Rule: write,
			Summary: "Give a key of the pool another secret", Doc: rotateDoc,
		}, s.rotate(pooled)),
		op.New(op.Row{
			ID: "billing.key_kind_set", Method: "PATCH", Path: "/v1/billing/keys/{id}/kind", Group: group, Rule: write,
			Summary: "Say how calls over a key of the pool are paid", Doc: kindDoc,
		}, s.kindSet(pooled)),
		op.New(op.Row{
			ID: "billing.provider_models", Method: "POST", Path: "/v1/billing/providers/models", Group: group, Rule: write,
			Refuses: refused, NoStore: true,
			Summary: "The models that a key may use which is not in the pool yet", Doc: modelsDoc,
		}, s.providerModels),
		op.New(op.Row{
			ID: "billing.key_models", Method: "GET", Path: "/v1/billing/keys/{id}/models", Group: group, Rule: read, Refuses: refused,
			Summary: "The models that a key of the pool may use", Doc: "Asked of the provider now, and sorted.",
		}, s.keyModels),
	}
}

// VerifiedKey is the answer of a verification.
type VerifiedKey struct {
	_ struct{} `doc:"A key that its provider was asked about." schema:"VerifiedKey"`
	BillingKey
	Works bool `json:"works" doc:"whether the provider takes it; last_error says why not"`
}

// open reads a key of a pool and unseals it. The address of one is judged anew, as the
// operator's rules may have changed.
func (s *Service) open(ctx context.Context, user, keyID string) (r row, route llm.Route, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err = live(tx, user, keyID)
		return err
	})
	if err != nil {
		return r, route, err
	}
	if route, err = s.Open(r.pooled()); err == nil && r.BaseURL != "" {
		err = s.checkBaseURL(ctx, r.BaseURL)
	}
	return r, route, err
}

// asked is the refusal of a call that asked a provider in vain: 422 for what is wrong
// with the key, and 503 for all else.
func asked(err error) error {
	f := fault.From(err)
	if aboutKey(f.Slug) {
		return fault.New(fault.Unprocessable, f.Slug, f.Detail).Because(err)
	}
	return fault.New(fault.Unavailable, llm.SlugUnavailable, "The provider could not be asked: "+f.Detail).Because(err)
}

// aboutKey tells whether a slug of package llm is about the key, and not about the
// provider.
func aboutKey(slug string) bool { return slug == llm.SlugAuth || slug == llm.SlugQuota }

func (s *Service) verify(of whose) func(context.Context, idIn) (VerifiedKey, error) {
	return func(ctx context.Context, in idIn) (out VerifiedKey, err error) {
		user := of(ctx)
		before, route, err := s.open(ctx, user, in.ID)
		if err != nil {
			return out, err
		}
		slug := ""
		if err := s.Probe.Check(ctx, route); err != nil {
			if slug = fault.From(err).Slug; !aboutKey(slug) {
				return out, asked(err)
			}
		}
		err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
			r, err := live(tx, user, in.ID)
			if err != nil {
				return err
			}
			if r.Version != before.Version {
				return fault.Reason("key-rotated", "The key got another secret while the provider was asked about the old one. Verify it again.")
			}
			if slug == "" {
				_, err = confirm.Exec(tx, tx.Account, r.ID, tx.Now)
				s.wake(tx) // its rest is over
			} else {
				err = Note(tx, tx.Account, route, slug)
			}
			if err != nil {
				return err
			}
			if r, err = live(tx, user, in.ID); err != nil {
				return err
			}
			out = VerifiedKey{BillingKey: r.wire(), Works: slug == ""}
			return keysEvents(user).verified.Record(tx, event.Subject{ID: r.ID}, keyVerifiedData{Works: out.Works, Error: slug})
		})
		return out, err
	}
}

type rotateIn struct {
	ID  string `json:"id" format:"uuid" doc:"id of the key"`
	Key string `json:"key" maxLength:"4000" example:"sk-example-key" doc:"the new secret, which is never shown again"`
}

func (s *Service) rotate(of whose) func(context.Context, rotateIn) (BillingKey, error) {
	return func(ctx context.Context, in rotateIn) (BillingKey, error) {
		return s.change(ctx, of(ctx), in.ID, func(tx *db.Tx, r row) error {
			if err := checkKey(&in.Key, llm.Provider(r.Provider)); err != nil {
				return err
			}
			if in.Key == "" {
				return fault.Field("key", "must not be empty")
			}
			if _, err := replace.Exec(tx, replaceArgs{
				AccountID: tx.Account, ID: r.ID, Sealed: s.seal(owner(tx.Account, r.UserID), in.Key), Masked: mask(in.Key),
			}); err != nil {
				return err
			}
			s.wake(tx)
			return keysEvents(r.UserID).rotated.Record(tx, event.Subject{ID: r.ID}, keyRotatedData{Provider: r.Provider, Label: r.Label})
		})
	}
}

// change changes a key of a pool, and answers it as it is then.
func (s *Service) change(ctx context.Context, user, keyID string, fn func(*db.Tx, row) error) (out BillingKey, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := live(tx, user, keyID)
		if err != nil {
			return err
		}
		if err := fn(tx, r); err != nil {
			return err
		}
		r, err = live(tx, user, keyID)
		out = r.wire()
		return err
	})
	return out, err
}

// use changes what a key of a pool is used for, and records it if that is another use.
func (s *Service) use(ctx context.Context, user, keyID string, set func(*keyUseData)) (BillingKey, error) {
	return s.change(ctx, user, keyID, func(tx *db.Tx, r row) error {
		to := keyUseData{Kind: string(r.Kind), Capacity: r.Capacity, Priority: r.Priority}
		set(&to)
		if string(r.Kind) == to.Kind && r.Priority == to.Priority && sameCapacity(r.Capacity, to.Capacity) {
			return nil
		}
		r.Kind, r.Capacity, r.Priority = Kind(to.Kind), to.Capacity, to.Priority
		if _, err := setUse.Exec(tx, r); err != nil {
			return err
		}
		return keysEvents(r.UserID).use.Record(tx, event.Subject{ID: r.ID}, to)
	})
}

func sameCapacity(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

type kindIn struct {
	ID   string `json:"id" format:"uuid" doc:"id of the key"`
	Kind Kind   `json:"kind" doc:"metered: each call costs; subscription: calls are paid for otherwise"`
}

func (s *Service) kindSet(of whose) func(context.Context, kindIn) (BillingKey, error) {
	return func(ctx context.Context, in kindIn) (BillingKey, error) {
		return s.use(ctx, of(ctx), in.ID, func(to *keyUseData) { to.Kind = string(in.Kind) })
	}
}

// ProviderModels is what a key may use.
type ProviderModels struct {
	_        struct{}     `doc:"The models that a key may use." schema:"ProviderModels"`
	Provider llm.Provider `json:"provider" doc:"whose models they are"`
	Models   []string     `json:"models" example:"[\"model-1\"]" doc:"their ids, sorted"`
}

func (s *Service) providerModels(ctx context.Context, in secretIn) (out ProviderModels, err error) {
	if err := in.check(ctx, s); err != nil {
		return out, err
	}
	return s.modelsOf(ctx, in.route())
}

func (s *Service) keyModels(ctx context.Context, in idIn) (out ProviderModels, err error) {
	_, route, err := s.open(ctx, "", in.ID)
	if err != nil {
		return out, err
	}
	return s.modelsOf(ctx, route)
}

func (s *Service) modelsOf(ctx context.Context, route llm.Route) (ProviderModels, error) {
	models, err := s.Probe.Models(ctx, route)
	if err != nil {
		return ProviderModels{}, asked(err)
	}
	return ProviderModels{Provider: route.Provider, Models: models}, nil
}
