package modelkey

import (
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about keys and prices.
var audience = event.Audience(policy.ReadBilling)

// The data of events. None holds a key, or a part of one.
type (
	keyAddedData struct {
		Provider  string   `json:"provider" doc:"whose API the key is for"`
		Label     string   `json:"label" doc:"name to tell it by"`
		Model     string   `json:"model" doc:"of the providers compatible and azure: the model of the endpoint; empty for the others"`
		Templates []string `json:"templates" doc:"the templates that have this model from now on"`
	}
	keyDeletedData struct {
		Provider string `json:"provider" doc:"whose API the key was for"`
		Label    string `json:"label" doc:"name to tell it by"`
	}
	keyVerifiedData struct {
		Works bool   `json:"works" doc:"whether the provider takes the key"`
		Error string `json:"error" doc:"why it does not: provider_auth or provider_quota; empty if it does"`
	}
	keyRotatedData struct {
		Provider string `json:"provider" doc:"whose API the key is for"`
		Label    string `json:"label" doc:"name to tell it by"`
	}
	keyRefusedData struct {
		Provider string `json:"provider" doc:"whose API the key is for"`
		Label    string `json:"label" doc:"name to tell it by"`
		Error    string `json:"error" doc:"provider_auth or provider_quota; empty: it works again"`
		UserID   string `json:"user_id" doc:"whose key it is; empty: the account's"`
	}
	keyUseData struct {
		Kind     string `json:"kind" doc:"metered or subscription"`
		Capacity *int64 `json:"capacity" doc:"calls at once; null: no limit is known"`
		Priority int64  `json:"priority" doc:"the lowest is used first"`
	}
	ownKeyAddedData struct {
		Provider string `json:"provider" doc:"whose API the key is for"`
		Label    string `json:"label" doc:"name to tell it by"`
	}
	keyPricedData struct {
		Price *ModelPrice `json:"price" doc:"of whatever is called over the key; null: what the price tables say"`
	}
	priceSetData struct {
		Provider   string   `json:"provider" doc:"whose model it is"`
		Model      string   `json:"model" doc:"its dated snapshots have the same price; * is every model of the provider"`
		Input      float64  `json:"input_usd" doc:"US dollars for a million tokens of input; 0 is a price"`
		Output     float64  `json:"output_usd" doc:"for a million tokens of output"`
		CacheRead  *float64 `json:"cache_read_usd,omitempty" doc:"for a million tokens read from a cache; as input if left out"`
		CacheWrite *float64 `json:"cache_write_usd,omitempty" doc:"for a million tokens written to a cache; as input if left out"`
	}
)

// The events of keys and of prices. The object of an event about a price is
// provider/model.
var (
	keyAddedEvent   = event.Declare[keyAddedData]("billing.key_added", audience, "A key of a model provider was added.")
	keyDeletedEvent = event.Declare[keyDeletedData]("billing.key_deleted", audience,
		"A key of a model provider was taken out and forgotten.")
	keyPricedEvent    = event.Declare[keyPricedData]("billing.key_price_set", audience, "What is called over a key has another price.")
	priceSetEvent     = event.Declare[priceSetData]("billing.price_set", audience, "A model has another price for the account.")
	keyVerifiedEvent  = event.Declare[keyVerifiedData]("billing.key_verified", audience, "A provider was asked about a key.")
	keyRotatedEvent   = event.Declare[keyRotatedData]("billing.key_rotated", audience, "A key got another secret.")
	keyUseEvent       = event.Declare[keyUseData]("billing.key_kind_set", audience, "How a key is paid for was changed.")
	priceDeletedEvent = event.Declare[event.None]("billing.price_deleted", audience,
		"A model has no price of the account's own any more.")
)

// RefusedEvent and RecoveredEvent tell of a key of the account that its provider begins to
// refuse when a call goes over it, and of one that works again.
var (
	RefusedEvent = event.Declare[keyRefusedData]("billing.key_refused", audience,
		"A provider refused a key of the account, or its quota is spent. It rests for a while.")
	RecoveredEvent = event.Declare[keyRefusedData]("billing.key_recovered", audience, "A key that its provider refused works again.")
)

// OwnRefusedEvent and OwnRecoveredEvent are the same of a key of a person.
var (
	OwnRefusedEvent = event.Declare[keyRefusedData]("self.key_refused", ownAudience,
		"A provider refused a key of a person, or its quota is spent. It rests for a while.")
	OwnRecoveredEvent = event.Declare[keyRefusedData]("self.key_recovered", ownAudience,
		"A key of a person that its provider refused works again.")
)

// turn are the events of a turn in how a key does: of the account's, and of a person's.
type turn [2]event.Kind[keyRefusedData]

var (
	refusedEvents   = turn{RefusedEvent, OwnRefusedEvent}
	recoveredEvents = turn{RecoveredEvent, OwnRecoveredEvent}
)

// Refusal is what a RefusedEvent or an OwnRefusedEvent tells.
func Refusal(e event.Recorded) (label, why, userID string, err error) {
	kind := RefusedEvent
	if e.Kind != kind.Name() {
		kind = OwnRefusedEvent
	}
	data, err := kind.Decode(e)
	return data.Label, data.Error, data.UserID, err
}

// record records the turn of a key of tx.Account.
func (t turn) record(tx *db.Tx, keyID, slug string) error {
	r, ok, err := byID.Maybe(tx, tx.Account, keyID)
	if err != nil || !ok {
		return err
	}
	kind := t[0]
	if r.UserID != "" {
		kind = t[1]
	}
	return kind.Record(tx, event.Subject{ID: r.ID}, keyRefusedData{Provider: r.Provider, Label: r.Label, Error: slug, UserID: r.UserID})
}

// Settling are the events after which nobody has to look at a key that was refused.
var Settling = []event.Any{RecoveredEvent, OwnRecoveredEvent, keyRotatedEvent, ownKeyRotatedEvent, keyDeletedEvent, ownKeyDeletedEvent}

// The events of keys of people. The actor is the person.
var (
	ownAudience        = event.Audience(policy.ReadAccount)
	ownKeyAddedEvent   = event.Declare[ownKeyAddedData]("self.key_added", ownAudience, "A person added a key of a model provider of their own.")
	ownKeyDeletedEvent = event.Declare[keyDeletedData]("self.key_deleted", ownAudience,
		"A key of a person was forgotten: they asked for it, or are not a member any more.")
	ownKeyVerifiedEvent = event.Declare[keyVerifiedData]("self.key_verified", ownAudience, "A provider was asked about a key of a person.")
	ownKeyRotatedEvent  = event.Declare[keyRotatedData]("self.key_rotated", ownAudience, "A key of a person got another secret.")
	ownKeyUseEvent      = event.Declare[keyUseData]("self.key_use_set", ownAudience, "How a key of a person is used was changed.")
)

// kinds are the events of the keys of a pool.
type kinds struct {
	deleted  event.Kind[keyDeletedData]
	verified event.Kind[keyVerifiedData]
	rotated  event.Kind[keyRotatedData]
	use      event.Kind[keyUseData]
}

// keysEvents are the events of the keys of a person, or of the account if there is none.
func keysEvents(user string) kinds {
	if user == "" {
		return kinds{keyDeletedEvent, keyVerifiedEvent, keyRotatedEvent, keyUseEvent}
	}
	return kinds{ownKeyDeletedEvent, ownKeyVerifiedEvent, ownKeyRotatedEvent, ownKeyUseEvent}
}

// Repriced is sent with the id of an account when the account sets a price, of a
// model or of a key, and when it adds a key; each time before the event is recorded.
var Repriced = event.DeclareSignal[string]("billing.repriced", "Something costs an account something else.")
