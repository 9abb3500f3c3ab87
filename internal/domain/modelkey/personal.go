package modelkey

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const selfGroup = "Personal settings"

// personalOps lists the capabilities about keys of people.
func (s *Service) personalOps() []op.Op {
	mine := policy.Require(policy.SelfKeys).OfUser()
	return []op.Op{
		op.New(op.Row{
			ID: "self.keys_list", Method: "GET", Path: "/v1/me/keys", Group: selfGroup, Rule: mine,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The caller's own model provider keys in the account, masked, by priority and then by age",
			Doc:     "Nobody else sees them, and no capability reads one back. The account's are at /v1/billing/keys.",
		}, s.list(personal)),
		op.New(op.Row{
			ID: "self.key_add", Method: "POST", Path: "/v1/me/keys", Group: selfGroup, Rule: mine, Status: 201,
			Refuses: []op.Refusal{{Status: 422, Slug: "too-many-keys"}},
			Summary: "Add a model provider key of one's own",
			Doc: "From the next call on it goes before the account's keys for what the caller asked for in this account, and for " +
				"nothing else: not for work that somebody else asked for or gave guidance to. It stands in for a key of the account: " +
				"tasks start by the account's pool, and a model that a template names is asked of the same provider. An address is " +
				"judged as that of the account's keys. It is forgotten when its owner leaves the account.",
		}, s.ownAdd),
		op.New(op.Row{
			ID: "self.provider_models", Method: "POST", Path: "/v1/me/keys/models", Group: selfGroup, Rule: mine,
			Refuses: refused, NoStore: true,
			Summary: "The models that a key may use which was not added yet", Doc: modelsDoc,
		}, s.providerModels),
		op.New(op.Row{
			ID: "self.key_verify", Method: "POST", Path: "/v1/me/keys/{id}/verify", Group: selfGroup, Rule: mine, Refuses: raced,
			Summary: "Ask the provider whether it takes one of the caller's keys", Doc: verifyDoc,
		}, s.verify(personal)),
		op.New(op.Row{
			ID: "self.key_rotate", Method: "POST", Path: "/v1/me/keys/{id}/rotate", Group: selfGroup, Rule: mine,
			Summary: "Give one of the caller's keys another secret", Doc: rotateDoc,
		}, s.rotate(personal)),
		op.New(op.Row{
			ID: "self.key_delete", Method: "DELETE", Path: "/v1/me/keys/{id}", Group: selfGroup, Rule: mine,
			Summary: "Forget one of the caller's keys; again is no error",
			Doc:     "It serves no further call. Deleting it again answers deleted false.",
		}, s.delete(personal)),
		op.New(op.Row{
			ID: "self.key_kind_set", Method: "PATCH", Path: "/v1/me/keys/{id}/kind", Group: selfGroup, Rule: mine,
			Summary: "Say how calls over one of the caller's keys are paid", Doc: kindDoc,
		}, s.kindSet(personal)),
		op.New(op.Row{
			ID: "self.key_capacity_set", Method: "PATCH", Path: "/v1/me/keys/{id}/capacity", Group: selfGroup, Rule: mine,
			Summary: "Say how many calls at once go over one of the caller's keys; null clears it",
			Doc:     "Over all nodes of the server together. Further calls go over another key, or wait. Holds from the next call on.",
		}, s.capacitySet(personal)),
		op.New(op.Row{
			ID: "self.key_priority_set", Method: "PATCH", Path: "/v1/me/keys/{id}/priority", Group: selfGroup, Rule: mine,
			Summary: "Place one of the caller's keys among them: the lowest priority is used first",
			Doc:     "Holds from the next call on.",
		}, s.prioritySet(personal)),
	}
}

// maxOwnKeys is how many keys a person may have in an account.
const maxOwnKeys = 50

type ownIn struct {
	secretIn
	useIn
}

func (s *Service) ownAdd(ctx context.Context, in ownIn) (out BillingKey, err error) {
	if err := in.check(ctx, s); err != nil {
		return out, err
	}
	user := personal(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := countOwn.One(tx, tx.Account, user)
		if err != nil {
			return err
		}
		if n >= maxOwnKeys {
			return fault.Newf(fault.Unprocessable, "too-many-keys", "There are %d keys of yours; delete one first.", n)
		}
		r, err := s.insert(tx, user, in.secretIn, in.useIn, nil)
		if err != nil {
			return err
		}
		out = r.wire()
		return ownKeyAddedEvent.Record(tx, event.Subject{ID: r.ID}, ownKeyAddedData{Provider: r.Provider, Label: r.Label})
	})
	return out, err
}

// RightsChanged forgets the keys that a user has in accounts to which they do not belong
// any more. It is a subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	rows, err := ofUser.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	return people.Leave(tx, userID, accounts, func(i int) error {
		r := rows[i]
		if _, err := erase.Exec(tx, tx.Account, r.ID, tx.Now); err != nil {
			return err
		}
		return ownKeyDeletedEvent.Record(tx, event.Subject{ID: r.ID}, keyDeletedData{Provider: r.Provider, Label: r.Label})
	})
}
