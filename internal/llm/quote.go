package llm

// leastOutput is the smallest cap, in tokens, that a gateway sets on a call that
// exceeds the budget without a cap. A call that says how many tokens thinking may have is
// left as many again for that, which is the least that providers take.
const leastOutput = 1024

// CapHeader tells a caller that its budget has lowered the cap on the output of the call: the
// number of tokens of each answer.
const CapHeader = "X-Gateway-Output-Cap"

// Quote is the range of a call's cost, in micro-dollars.
type Quote struct {
	Priced bool   // false: the model has no price, so no budget in dollars can bound it
	Model  string // the name sent to the provider

	Most  int64 // with as much output as the call allows
	Least int64 // with the smallest cap the gateway may set

	input, token int64 // the prompt, and one token of output in all answers: micro-dollars times a million
	max          int64 // tokens of output that Most allows
}

// Quote bounds the cost of a call from above. It counts a token for each byte of
// the body and the most that an image may be, or a whole context where the body refers to
// what it does not hold, at the highest price of input; the output is bounded by the
// caller's cap, or by the model's limit.
func (p *Prices) Quote(provider Provider, model string, q *Request) Quote {
	f, ok := p.row(provider, model)
	if !ok {
		return Quote{Model: model}
	}
	out := f.maxOutput
	if q.MaxOutput > 0 {
		out = min(out, q.MaxOutput)
	}
	b := q.beside()
	input := int64(q.Bytes()) + b.images*f.image
	if b.elsewhere {
		input = max(input, f.window(q))
	}
	r := f.most(q, input)
	quote := Quote{
		Priced: true, Model: model,
		input: input * max(r.input, r.cacheWrite, r.cacheRead, r.hour(q)),
		token: r.output * q.choices(),
		max:   out,
	}
	quote.Most = quote.cost(out)
	quote.Least = quote.cost(min(out, q.leastOutput()))
	return quote
}

// choices is how many answers a provider gives to the call: none gives more than 128.
func (q *Request) choices() int64 { return min(max(q.Choices, 1), 128) }

// leastOutput is the smallest cap that a gateway sets on the call.
func (q *Request) leastOutput() int64 {
	if q.thoughts.to > 0 {
		return 2 * leastOutput
	}
	return leastOutput
}

func (q Quote) cost(output int64) int64 {
	return (q.input + output*q.token + 999_999) / 1_000_000
}

// Cap is the cap on the output, in tokens, that keeps a call within micros, which
// is at least q.Least; 0 when the call needs no cap.
func (q Quote) Cap(micros int64) int64 {
	if micros >= q.Most || q.token == 0 {
		return 0
	}
	return max(min((micros*1_000_000-q.input)/q.token, q.max), 1)
}

// caps tells whether the API obeys a cap of this name. A provider may ignore other
// names, so a budget could not rely on them.
func (a API) caps(name string) bool {
	return name == a.capName() || a == Chat && name == "max_tokens"
}

// capName is the member that caps the output of a call.
func (a API) capName() string {
	switch a {
	case Responses:
		return "max_output_tokens"
	case Messages:
		return "max_tokens"
	case Gemini:
		return "maxOutputTokens"
	}
	return "max_completion_tokens"
}
