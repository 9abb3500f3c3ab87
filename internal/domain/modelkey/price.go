package modelkey

import (
	"context"
	"math"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
)

// ModelPrice is the price of a model, in US dollars for a million tokens.
type ModelPrice struct {
	_          struct{} `doc:"Prices of a model, in US dollars for a million tokens." schema:"ModelPrice"`
	Input      float64  `json:"input_usd" minimum:"0" maximum:"10000" doc:"US dollars for a million tokens of input; 0 is a price"`
	Output     float64  `json:"output_usd" minimum:"0" maximum:"10000" doc:"for a million tokens of output"`
	CacheRead  *float64 `json:"cache_read_usd,omitempty" minimum:"0" maximum:"10000" doc:"for a million tokens read from a cache; as input unless given"`
	CacheWrite *float64 `json:"cache_write_usd,omitempty" minimum:"0" maximum:"10000" doc:"for a million tokens written to a cache; as input unless given"`
}

// micros converts to micro-dollars, with the defaults of omitted members.
func (p ModelPrice) micros() llm.Price {
	of := func(usd *float64) int64 {
		if usd == nil {
			usd = &p.Input
		}
		return int64(math.Round(*usd * 1e6))
	}
	return llm.Price{Input: of(&p.Input), Output: of(&p.Output), CacheRead: of(p.CacheRead), CacheWrite: of(p.CacheWrite)}
}

// shown converts from micro-dollars.
func shown(p llm.Price) ModelPrice {
	read, write := float64(p.CacheRead)/1e6, float64(p.CacheWrite)/1e6
	return ModelPrice{Input: float64(p.Input) / 1e6, Output: float64(p.Output) / 1e6, CacheRead: &read, CacheWrite: &write}
}

// AccountPrice is an account's own price of a model.
type AccountPrice struct {
	_        struct{}     `doc:"What a model costs the account." schema:"AccountPrice"`
	Provider llm.Provider `json:"provider" doc:"whose model it is"`
	Model    string       `json:"model" doc:"its dated snapshots have the same price; * is every model of the provider"`
	ModelPrice
}

// Prices is the prices of calls over each of an account's keys. The account's own price
// of a model goes first, then that of the key, then that of the table.
func Prices(tx *db.Tx, account string, keys []Candidate, table *llm.Prices) ([]*llm.Prices, error) {
	own, err := setPrices(tx, account)
	out := make([]*llm.Prices, len(keys))
	for i, k := range keys {
		own, over := own, table
		if k.gift != nil { // whoever pays says what it costs
			if own, err = setPrices(tx, k.gift.account); err != nil {
				return nil, err
			}
		}
		if k.price != nil {
			over = over.Over(llm.Row{Provider: k.Provider, Model: "*", Price: *k.price})
		}
		out[i] = over.Over(own...)
	}
	return out, err
}

// setPrices are the prices that an account has set for models.
func setPrices(tx *db.Tx, account string) ([]llm.Row, error) {
	rows, err := pricesOf.All(tx, account)
	own := make([]llm.Row, len(rows))
	for i, r := range rows {
		own[i] = llm.Row{Provider: llm.Provider(r.Provider), Model: r.Model, Price: r.price()}
	}
	return own, err
}

// Labels are the labels of the keys that tx.Account has had, by id, those of its members as
// empty ones.
func Labels(tx *db.Tx) (map[string]string, error) {
	rows, err := labels.All(tx, tx.Account)
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.ID] = r.Label
	}
	return out, err
}

// Priced tells whether a model has a price for an account when it is called over a
// key. A key that was deleted has no price of its own.
func Priced(tx *db.Tx, account, keyID string, provider llm.Provider, model string, table *llm.Prices) (bool, error) {
	k := Key{Provider: provider}
	r, ok, err := byID.Maybe(tx, account, keyID)
	if err != nil {
		return false, err
	}
	if ok && r.DeletedAt == nil {
		k = r.pooled()
	}
	prices, err := Prices(tx, account, []Candidate{{Key: k}}, table)
	return err == nil && prices[0].Knows(provider, model), err
}

// priceOps lists the capabilities about prices.
func (s *Service) priceOps() []op.Op {
	read, write := policy.Require(policy.ReadBilling), policy.Require(policy.WriteBilling)
	return []op.Op{
		op.New(op.Row{
			ID: "billing.key_price_set", Method: "PUT", Path: "/v1/billing/keys/{id}/price", Group: group, Rule: write,
			Summary: "Say what any model costs that is called over a key; null leaves it to the price tables",
			Doc: "Holds from the next call over the key on. 0 is a price; a model without one is held back where a limit " +
				"in US dollars applies.",
		}, s.keyPrice),
		op.New(op.Row{
			ID: "billing.price_list", Method: "GET", Path: "/v1/billing/prices", Group: group,
			Rule: read, Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The prices of models that the account has set",
			Doc:     "Those that the account has set; the server's own table is not among them.",
		}, s.priceList),
		op.New(op.Row{
			ID: "billing.price_set", Method: "PUT", Path: "/v1/billing/prices", Group: group, Rule: write,
			Summary: "Say what a model costs the account; it decides before a key's price and before the server's table",
			Doc:     "Holds from the next call on, and goes before a key's price and the server's table.",
		}, s.priceSet),
		op.New(op.Row{
			ID: "billing.price_delete", Method: "DELETE", Path: "/v1/billing/prices", Group: group, Rule: write,
			Summary: "Forget what a model costs the account; again is no error",
			Doc: "From the next call on the key's price or the server's table decides again. Deleting what is not there " +
				"answers deleted false.",
		}, s.priceDelete),
	}
}

type keyPriceIn struct {
	ID    string      `json:"id" format:"uuid" doc:"id of the key"`
	Price *ModelPrice `json:"price" required:"true" doc:"null: none of the key's own"`
}

func (s *Service) keyPrice(ctx context.Context, in keyPriceIn) (out BillingKey, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, "", in.ID)
		if err != nil {
			return err
		}
		if _, err := priceKey.Exec(tx, tx.Account, r.ID, in.Price.stored()); err != nil {
			return err
		}
		if r, err = find(tx, "", r.ID); err != nil {
			return err
		}
		if err := Repriced.Send(tx, tx.Account); err != nil {
			return err
		}
		out = r.wire()
		return keyPricedEvent.Record(tx, event.Subject{ID: r.ID}, keyPricedData{Price: out.Price})
	})
	return out, err
}

// stored is the price in the form of a key's row; nil for none.
func (p *ModelPrice) stored() *db.JSON[llm.Price] {
	if p == nil {
		return nil
	}
	return &db.JSON[llm.Price]{V: p.micros()}
}

type priceListIn struct{ op.PageIn }

func (s *Service) priceList(ctx context.Context, in priceListIn) (op.Page[AccountPrice], error) {
	var rows []priceRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = listPrices(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[AccountPrice]{}, err
	}
	return op.ShowPage(in.PageIn, rows, func(r priceRow) []string { return []string{r.Provider, r.Model} }, func(r priceRow) AccountPrice {
		return AccountPrice{Provider: llm.Provider(r.Provider), Model: r.Model, ModelPrice: shown(r.price())}
	}), nil
}

type modelIn struct {
	Provider llm.Provider `json:"provider" required:"true" doc:"whose model it is"`
	Model    string       `json:"model" required:"true" minLength:"1" maxLength:"200" doc:"as the provider is asked for it; * for every model of the provider"`
}

// object is what an event about a price is about.
func (in modelIn) object() string { return string(in.Provider) + "/" + in.Model }

type priceIn struct {
	modelIn
	ModelPrice
}

func (s *Service) priceSet(ctx context.Context, in priceIn) (out AccountPrice, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p := in.micros()
		out = AccountPrice{Provider: in.Provider, Model: in.Model, ModelPrice: shown(p)}
		if _, err := setPrice.Exec(tx, setPriceArgs{
			AccountID: tx.Account, Provider: string(in.Provider), Model: in.Model, Input: p.Input, Output: p.Output,
			CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, CreatedAt: tx.Now,
		}); err != nil {
			return err
		}
		if err := Repriced.Send(tx, tx.Account); err != nil {
			return err
		}
		return priceSetEvent.Record(tx, event.Subject{ID: in.object()}, priceSetData{
			Provider: string(out.Provider), Model: out.Model,
			Input: out.Input, Output: out.Output, CacheRead: out.CacheRead, CacheWrite: out.CacheWrite,
		})
	})
	return out, err
}

// DeletedPrice is the answer of billing.price_delete.
type DeletedPrice struct {
	_        struct{}     `doc:"What billing.price_delete did." schema:"DeletedPrice"`
	Provider llm.Provider `json:"provider" doc:"whose model it is"`
	Model    string       `json:"model" example:"model-1" doc:"the model, or * for every model of the provider"`
	Deleted  bool         `json:"deleted" doc:"false: there was none"`
}

func (s *Service) priceDelete(ctx context.Context, in modelIn) (out DeletedPrice, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := dropPrice.Exec(tx, tx.Account, string(in.Provider), in.Model)
		out = DeletedPrice{Provider: in.Provider, Model: in.Model, Deleted: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return priceDeletedEvent.Record(tx, event.Subject{ID: in.object()}, event.None{})
	})
	return out, err
}
