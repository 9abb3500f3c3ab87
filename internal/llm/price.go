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

// family is one row. The prices are in micro-dollars for a million tokens.
type family struct {
	provider                             Provider
	name                                 string
	input, output, cacheRead, cacheWrite int64
	cacheHour                            int64 // written for an hour; cacheWrite is for five minutes
	maxOutput                            int64 // tokens
}

// hourPrice is the price of what is kept for an hour where only that of five minutes
// is known. A provider that charges for writing charges twice the price of input for
// an hour and 1.25 times for five minutes; one that does not has one price.
func hourPrice(input, write int64) int64 {
	if write <= input {
		return write
	}
	return write * 8 / 5
}

// hour is the price of what a call writes to a cache for an hour; 0 if it names no
// such life.
func (f family) hour(q *Request) int64 {
	if !bytes.Contains(q.body, []byte(`"1h"`)) {
		return 0
	}
	return f.cacheHour
}

// defaultMaxOutput is the output limit of a model, in tokens, unless its row has
// another.
const defaultMaxOutput = 128_000

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
		Provider   Provider `yaml:"provider"`
		Family     string   `yaml:"family"`
		Input      *float64 `yaml:"input"`
		Output     *float64 `yaml:"output"`
		CacheRead  *float64 `yaml:"cache_read"`
		CacheWrite *float64 `yaml:"cache_write"`
		CacheHour  *float64 `yaml:"cache_write_1h"`
		MaxOutput  int64    `yaml:"max_output"`
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
		if !slices.Contains(Providers(), r.Provider) || r.Family == "" || r.Input == nil || r.Output == nil {
			return nil, fmt.Errorf("price table: row %d needs a known provider, a family, input and output", i+1)
		}
		or := func(price *float64, otherwise int64) (int64, error) {
			if price == nil {
				return otherwise, nil
			}
			if !(*price >= 0 && *price <= 10_000) {
				return 0, fmt.Errorf("price table: row %d: %v is no price", i+1, *price)
			}
			return int64(*price*1e6 + 0.5), nil
		}
		if r.MaxOutput < 0 || r.MaxOutput > 1_000_000 {
			return nil, fmt.Errorf("price table: row %d: %d is no max_output", i+1, r.MaxOutput)
		}
		f := family{provider: r.Provider, name: r.Family, maxOutput: cmp.Or(r.MaxOutput, defaultMaxOutput)}
		var errs [5]error
		f.input, errs[0] = or(r.Input, 0)
		f.output, errs[1] = or(r.Output, 0)
		f.cacheRead, errs[2] = or(r.CacheRead, f.input)
		f.cacheWrite, errs[3] = or(r.CacheWrite, f.input)
		f.cacheHour, errs[4] = or(r.CacheHour, hourPrice(f.input, f.cacheWrite))
		for _, err := range errs {
			if err != nil {
				return nil, err
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
		most := int64(defaultMaxOutput)
		if f, ok := p.row(r.Provider, r.Model); ok {
			most = f.maxOutput
		}
		out.families = append(out.families, family{
			r.Provider, r.Model, r.Input, r.Output, r.CacheRead, r.CacheWrite, hourPrice(r.Input, r.CacheWrite), most,
		})
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
// other model of a provider.
func (p *Prices) Cost(provider Provider, model string, t Tokens) *int64 {
	f, ok := p.row(provider, model)
	if !ok {
		return nil
	}
	sum := t.InputTokens*f.input + t.OutputTokens*f.output + t.CacheReadTokens*f.cacheRead +
		t.CacheWriteTokens*f.cacheWrite + t.CacheWriteHourTokens*f.cacheHour
	micros := (sum + 500_000) / 1_000_000
	return &micros
}

// row finds the price of a model.
func (p *Prices) row(provider Provider, model string) (f family, ok bool) {
	f, ok = p.find(provider, model)
	if a, _ := provider.adapter(); !ok && a.maker != nil {
		f, ok = p.find(a.maker(model))
	}
	if !ok && p.below != nil {
		return p.below.row(provider, model)
	}
	return f, ok
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
