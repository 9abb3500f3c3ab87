package llm

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"yardmaster/internal/lazy"
)

//go:embed prices.yml
var priceTable []byte

// Prices is a table of the prices of providers. A model that is not in the table
// has no price, which is not the same as a price of zero.
type Prices struct {
	AsOf     time.Time
	families []family
	below    *Prices // decides for models that no row covers
}

// family is one row: the rates of the standard tier, and what differs from them.
type family struct {
	provider Provider
	name     string
	rates
	long      step
	tiers     map[string]rates // by the provider's name of the tier
	maxOutput int64            // tokens
	context   int64            // tokens of a prompt at most
	image     int64            // tokens of an image at most
}

// defaultMaxOutput is the output limit of a model, in tokens, unless its row has
// another.
const defaultMaxOutput = 128_000

// defaultContext and defaultImage are the most tokens of a prompt and of an image in it, unless
// a row has others.
const (
	defaultContext = 1_050_000
	defaultImage   = 5_000
)

// DefaultPrices is the embedded table.
var DefaultPrices = sync.OnceValue(func() *Prices {
	p, err := ParsePrices(priceTable)
	if err != nil {
		panic("llm: the embedded price table: " + err.Error())
	}
	return p
})

// ParsePrices reads a table in the form of prices.yml.
func ParsePrices(text []byte) (*Prices, error) {
	type row struct {
		Provider Provider `yaml:"provider"`
		Family   string   `yaml:"family"`
		rateRow  `yaml:",inline"`
		Long     *struct {
			Above   int64  `yaml:"above"`
			Beta    string `yaml:"beta"`
			rateRow `yaml:",inline"`
		} `yaml:"long"`
		Tiers     map[string]rateRow `yaml:"tiers"`
		MaxOutput int64              `yaml:"max_output"`
		Context   int64              `yaml:"context"`
		Image     int64              `yaml:"image"`
	}
	var file struct {
		AsOf   string `yaml:"as_of"`
		Prices []row  `yaml:"prices"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("price table: %w", err)
	}
	asOf, err := time.Parse(time.DateOnly, file.AsOf)
	if err != nil {
		return nil, fmt.Errorf("price table: as_of: %w", err)
	}
	p := &Prices{AsOf: asOf}
	for i, r := range file.Prices {
		if !slices.Contains(Providers(), r.Provider) || r.Family == "" {
			return nil, fmt.Errorf("price table: row %d needs a known provider and a family", i+1)
		}
		for what, n := range map[string]int64{"max_output": r.MaxOutput, "context": r.Context, "image": r.Image} {
			if n < 0 || n > 10_000_000 {
				return nil, fmt.Errorf("price table: row %d: %d is no %s", i+1, n, what)
			}
		}
		f := family{
			provider: r.Provider, name: r.Family, maxOutput: cmp.Or(r.MaxOutput, defaultMaxOutput),
			context: cmp.Or(r.Context, defaultContext), image: cmp.Or(r.Image, defaultImage), tiers: map[string]rates{},
		}
		var err error
		if f.rates, err = r.rates(); err != nil {
			return nil, fmt.Errorf("price table: row %d: %w", i+1, err)
		}
		if r.Long != nil {
			f.long.above, f.long.beta = r.Long.Above, r.Long.Beta
			if f.long.rates, err = r.Long.rates(); err != nil || f.long.above < 1 {
				return nil, fmt.Errorf("price table: row %d: long needs above, input and output", i+1)
			}
		}
		for tier, t := range r.Tiers {
			if f.tiers[tier], err = t.rates(); err != nil || !slices.Contains(tierNames, tier) {
				return nil, fmt.Errorf("price table: row %d: %q is no tier with input and output", i+1, tier)
			}
		}
		p.families = append(p.families, f)
	}
	return p, nil
}

// Price is the price of a model for an account, in micro-dollars per million
// tokens. CacheWrite is for five minutes; that for an hour follows from it.
type Price struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Row is the price of a model and of its dated snapshots; the model "*" is every
// model of the provider.
type Row struct {
	Provider Provider
	Model    string
	Price
}

// Over is a table in which the given rows decide before the rows of p.
func (p *Prices) Over(rows ...Row) *Prices {
	if len(rows) == 0 {
		return p
	}
	out := &Prices{AsOf: p.AsOf, below: p}
	for _, r := range rows {
		f := family{provider: r.Provider, name: r.Model, maxOutput: defaultMaxOutput, context: defaultContext, image: defaultImage}
		f.rates = rates{r.Input, r.Output, r.CacheRead, r.CacheWrite, hourPrice(r.Input, r.CacheWrite)}
		out.families = append(out.families, f)
	}
	return out
}

// Knows tells whether a model has a price.
func (p *Prices) Knows(provider Provider, model string) bool {
	_, ok := p.row(provider, model)
	return ok
}

// Before is a table of p's rows, and of other's for models that p does not cover.
func (p *Prices) Before(other *Prices) *Prices {
	return &Prices{AsOf: p.AsOf, families: slices.Concat(p.families, other.families)}
}

// snapshot is the suffix that providers give to dated releases of a family.
var snapshot = lazy.New(`^[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// Cost is the price of a call in micro-dollars, rounded to the nearest; nil when
// the table does not know the model. A row covers its family and the family's
// dated snapshots, but no other model whose name begins alike; "*" covers every
// other model of a provider. tier is the one that the provider has served the call in;
// one that the row has no prices of costs what the standard one does.
func (p *Prices) Cost(provider Provider, model, tier string, t Tokens) *int64 {
	f, ok := p.row(provider, model)
	if !ok {
		return nil
	}
	r := f.at(tier, t.InputTokens+t.CacheReadTokens+t.Written())
	sum := t.InputTokens*r.input + t.OutputTokens*r.output + t.CacheReadTokens*r.cacheRead +
		t.CacheWriteTokens*r.cacheWrite + t.CacheWriteHourTokens*r.cacheHour
	micros := (sum + 500_000) / 1_000_000
	return &micros
}

// row finds the price of a model. A price that is set over a table has the table's tiers and
// steps, in the proportion that they have there, and its limits.
func (p *Prices) row(provider Provider, model string) (f family, ok bool) {
	f, ok = p.find(provider, model)
	if a, _ := provider.adapter(); !ok && a.maker != nil {
		f, ok = p.find(a.maker(model))
	}
	if p.below == nil {
		return f, ok
	}
	below, known := p.below.row(provider, model)
	switch {
	case !ok:
		return below, known
	case !known:
		return f, true
	}
	f.maxOutput, f.context, f.image = below.maxOutput, below.context, below.image
	if f.long = below.long; f.long.above > 0 {
		f.long.rates = f.rates.as(below.long.rates, below.rates)
	}
	f.tiers = make(map[string]rates, len(below.tiers))
	for tier, t := range below.tiers {
		f.tiers[tier] = f.rates.as(t, below.rates)
	}
	return f, true
}

func (p *Prices) find(provider Provider, model string) (best family, ok bool) {
	model = strings.TrimPrefix(model, "models/")
	for _, f := range p.families {
		if f.provider != provider {
			continue
		}
		rest, begins := strings.CutPrefix(model, f.name)
		exact := begins && (rest == "" || snapshot.MatchString(rest))
		if (exact || f.name == "*" && !ok) && (!ok || best.name == "*" || len(f.name) > len(best.name)) {
			best, ok = f, true
		}
	}
	return best, ok
}

// Models lists the models of a provider that have a price in the table, in its order.
func (p *Prices) Models(provider Provider) (out []string) {
	for _, f := range p.families {
		if f.provider == provider && f.name != "*" {
			out = append(out, f.name)
		}
	}
	return out
}
