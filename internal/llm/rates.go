package llm

import (
	"bytes"
	"fmt"
	"math"
)

// rates are prices in micro-dollars for a million tokens.
type rates struct {
	input, output, cacheRead, cacheWrite int64
	cacheHour                            int64 // written for an hour; cacheWrite is for five minutes
}

// rateRow is what a table says of rates.
type rateRow struct {
	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
	CacheHour  *float64 `yaml:"cache_write_1h"`
}

// rates reads the row. What it leaves out costs what input costs, an hour in a cache what
// hourPrice says.
func (r rateRow) rates() (out rates, err error) {
	if r.Input == nil || r.Output == nil {
		return out, fmt.Errorf("needs input and output")
	}
	or := func(price *float64, otherwise int64) int64 {
		if price == nil {
			return otherwise
		}
		if !(*price >= 0 && *price <= 10_000) {
			err = fmt.Errorf("%v is no price", *price)
			return 0
		}
		return int64(*price*1e6 + 0.5)
	}
	out.input, out.output = or(r.Input, 0), or(r.Output, 0)
	out.cacheRead, out.cacheWrite = or(r.CacheRead, out.input), or(r.CacheWrite, out.input)
	out.cacheHour = or(r.CacheHour, hourPrice(out.input, out.cacheWrite))
	return out, err
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
func (r rates) hour(q *Request) int64 {
	if !bytes.Contains(q.body, []byte(`"1h"`)) {
		return 0
	}
	return r.cacheHour
}

// dearer is the higher one of each price.
func (r rates) dearer(o rates) rates {
	return rates{
		max(r.input, o.input), max(r.output, o.output), max(r.cacheRead, o.cacheRead), max(r.cacheWrite, o.cacheWrite),
		max(r.cacheHour, o.cacheHour),
	}
}

// as is r at the proportion in which to stands to from: an account's own price of a model has the
// tiers and the steps of the table.
func (r rates) as(to, from rates) rates {
	of := func(price, to, from int64) int64 {
		if from == 0 {
			return price
		}
		return int64(math.Ceil(float64(price) * float64(to) / float64(from)))
	}
	return rates{
		of(r.input, to.input, from.input), of(r.output, to.output, from.output), of(r.cacheRead, to.cacheRead, from.cacheRead),
		of(r.cacheWrite, to.cacheWrite, from.cacheWrite), of(r.cacheHour, to.cacheHour, from.cacheHour),
	}
}

// step is what a long prompt costs.
type step struct {
	above int64  // tokens of input, those of caches among them; 0: there is no step
	beta  string // of the header Anthropic-Beta, without which no prompt is so long; empty: any may be
	rates
}

// Tiers of a call, in the providers' own words. A tier that costs what the standard one does is
// named like that one: what is not told, or not known, is standard.
const (
	tierPriority = "priority"
	tierFlex     = "flex"
	tierBatch    = "batch"
)

// tierNames are those that a table may price.
var tierNames = []string{tierPriority, tierFlex, tierBatch}

// at are the rates of a call of a tier, of which so many tokens were input.
func (f family) at(tier string, input int64) rates {
	r := f.rates
	if f.long.above > 0 && input > f.long.above {
		r = f.long.rates
	}
	if t, ok := f.tiers[tier]; ok {
		r = r.as(t, f.rates)
	}
	return r
}

// window is how many tokens the prompt of a call may have.
func (f family) window(q *Request) int64 {
	if f.long.beta != "" && !q.beta(f.long.beta) {
		return min(f.context, f.long.above)
	}
	return f.context
}

// most are the highest rates at which a call may be charged: of the tier that it asks for, or of
// all where it names one that is not known.
func (f family) most(q *Request, input int64) rates {
	long := int64(0)
	if f.long.above > 0 && input > f.long.above && (f.long.beta == "" || q.beta(f.long.beta)) {
		long = input
	}
	switch q.Tier {
	case "", "auto", "default", "standard", "standard_only", tierFlex, tierBatch:
		return f.at("", long) // a cheaper tier may turn out to be the standard one
	case tierPriority:
		return f.at("", long).dearer(f.at(tierPriority, long))
	}
	r := f.at("", long)
	for tier := range f.tiers {
		r = r.dearer(f.at(tier, long))
	}
	return r
}
