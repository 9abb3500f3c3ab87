// Package donation keeps what accounts give to open-source repositories of other accounts:
// a key of a model provider (llm), an amount of money that calls over a key may cost (money),
// or a box (compute). A gift is pinned to one repository, or goes to the pool, which is every
// repository that takes gifts.
//
// A repository takes gifts while it is enabled, public at its code host, has donations_enabled,
// and belongs to another account than the giver's. That is asked whenever something of a gift is
// about to be used, so a repository that becomes private drops out by itself. A key or a box that
// is given is earmarked: it serves nothing else until the gift is parked, not its own account
// either. A gift of money leaves its key where it is.
//
// What calls over a gift cost is the giver's: it counts for the budgets of the giver's account,
// and for none of the recipient's. Amounts are micro-dollars.
//
//   - donation.go: the types and the Service
//   - rules.go: who may give what, and the ceiling of models
//   - lend.go: what a repository may use now, and what was used
//   - ops.go, events.go: capabilities and events
//   - store.go: the statements
package donation

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
)

// Kind is what is given.
type Kind string

// Kinds of gifts.
const (
	Money   Kind = "money"
	Compute Kind = "compute"
	LLM     Kind = "llm"
)

// Values lists all kinds.
func (Kind) Values() []string { return []string{string(Money), string(Compute), string(LLM)} }

// State is whether a gift is given.
type State string

// States of a gift.
const (
	Active State = "active"
	Parked State = "parked"
)

// Values lists both states.
func (State) Values() []string { return []string{string(Active), string(Parked)} }

// Target is for whom a gift is.
type Target string

// Targets of a gift.
const (
	Project Target = "project" // one repository
	Pool    Target = "pool"    // every one that takes gifts
)

// Values lists both targets.
func (Target) Values() []string { return []string{string(Project), string(Pool)} }

// Why is why a gift is parked.
type Why string

// Why a gift is parked.
const (
	Cancelled = "cancelled" // by the account that gave it
	Declined  = "declined"  // by the account that it was for
	Gone      = "gone"      // its key was deleted, or its box revoked
)

// Values lists all.
func (Why) Values() []string { return []string{Cancelled, Declined, Gone} }

// Model is a model of a provider.
type Model struct {
	_        struct{}     `doc:"A model of a provider." schema:"DonationModel"`
	Provider llm.Provider `json:"provider" doc:"whose model it is"`
	Model    string       `json:"model" minLength:"1" maxLength:"200" example:"claude-haiku-4-5" doc:"as the provider is asked for it, to the letter"`
}

// Donation is a gift as the account that gave it sees it.
type Donation struct {
	_          struct{}   `doc:"What the account gave, and what was used of it." schema:"Donation"`
	ID         string     `json:"id" format:"uuid" doc:"id of the gift"`
	Kind       Kind       `json:"kind" doc:"what it is"`
	Target     Target     `json:"target" doc:"one repository, or every one that takes gifts"`
	TargetRepo *string    `json:"target_repo_full_name" example:"acme/web" doc:"owner/name now; null: the pool"`
	KeyID      *string    `json:"key_id" format:"uuid" doc:"the key that is lent (llm) or pays (money); null: a box"`
	BoxID      *string    `json:"box_id" format:"uuid" example:"null" doc:"the box that is lent; null: a key"`
	Models     *[]Model   `json:"models" doc:"no other models are asked for over it; null: any of the key's provider"`
	USD        *string    `json:"usd" format:"decimal" example:"20.00" doc:"US dollars that may be spent; null: no such limit"`
	UsedUSD    string     `json:"used_usd" format:"decimal" example:"1.25" doc:"US dollars that were spent"`
	LeftUSD    *string    `json:"left_usd" format:"decimal" example:"18.75" doc:"of usd; null as usd is"`
	Calls      int64      `json:"calls" doc:"calls of models over it"`
	Serves     bool       `json:"serves" doc:"whether it is of use now: it is active, its target takes gifts, and something is left"`
	State      State      `json:"state" doc:"parked: over"`
	ParkedWhy  *Why       `json:"parked_why" example:"null" doc:"cancelled by the giver, declined by the recipient, or the key or box is gone; null: active"`
	GivenBy    string     `json:"given_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who gave it"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was given"`
	ParkedAt   *time.Time `json:"parked_at" example:"null" doc:"null: it is active"`
}

// ReceivedDonation is a gift as the account that it is for sees it.
type ReceivedDonation struct {
	_          struct{}   `doc:"A gift to a repository of the account. It names neither the key nor the box." schema:"ReceivedDonation"`
	ID         string     `json:"id" format:"uuid" doc:"id of the gift"`
	Kind       Kind       `json:"kind" doc:"what it is"`
	Donor      string     `json:"donor" example:"acme" doc:"login of the account that gave it"`
	TargetRepo string     `json:"target_repo_full_name" doc:"owner/name of the repository that it is for"`
	Ceiling    []Model    `json:"ceiling" doc:"of llm and money: the models that may be asked for; where the giver named none, those of the provider that the server knows"`
	Model      *Model     `json:"model" doc:"the one that was picked for all calls over it; null: what the template names, or the first of ceiling"`
	USD        *string    `json:"usd" format:"decimal" example:"20.00" doc:"US dollars that may be spent; null: no such limit"`
	UsedUSD    string     `json:"used_usd" format:"decimal" example:"1.25" doc:"US dollars that were spent; they count for no budget of this account"`
	LeftUSD    *string    `json:"left_usd" format:"decimal" example:"18.75" doc:"of usd; null as usd is"`
	Calls      int64      `json:"calls" doc:"calls of models over it"`
	Serves     bool       `json:"serves" doc:"whether it is of use now: it is active, the repository takes gifts, and something is left"`
	State      State      `json:"state" doc:"parked: over"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was given"`
	ParkedAt   *time.Time `json:"parked_at" example:"null" doc:"null: it is active"`
}

// Keys knows the keys of accounts' pools.
type Keys interface {
	// Pooled tells of a live key in the pool of tx.Account. ok is false if there is none, which
	// a key of a person is not.
	Pooled(tx *db.Tx, keyID string) (k PooledKey, ok bool, err error)
}

// PooledKey is a key of an account's pool.
type PooledKey struct {
	Provider     llm.Provider
	Subscription bool // calls over it are not paid for one by one
}

// Boxes knows the boxes of accounts.
type Boxes interface {
	// Lendable tells whether a box of tx.Account may be lent; why is empty if it may. ok is
	// false if the account has no such box.
	Lendable(tx *db.Tx, boxID string) (why string, ok bool, err error)
	// Moved takes back the runs that a box may not hold any more, and wakes those that wait
	// for boxes of an account; empty: of every account.
	Moved(tx *db.Tx, boxID, account string) error
}

// Donors knows the subscriptions of accounts.
type Donors interface {
	// Donor tells whether an account has an active oss_donor subscription.
	Donor(tx *db.Tx, account string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Hub   *event.Hub
	Keys  Keys
	Boxes Boxes
	// Donors knows who has an active oss_donor subscription.
	Donors Donors
	// Prices are the server's own, which list the models that there are.
	Prices *llm.Prices
}

// Service keeps the gifts.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
