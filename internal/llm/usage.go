package llm

import (
	"net/http"
	"time"

	"yardmaster/internal/llm/answer"
)

// Tokens are the token counts of one call, in the same terms for every API. The
// counts do not overlap.
type Tokens struct {
	InputTokens          int64 // neither read from a cache nor written to one
	OutputTokens         int64
	CacheReadTokens      int64
	CacheWriteTokens     int64 // kept for five minutes, or for a time that is not told
	CacheWriteHourTokens int64 // kept for an hour
}

// Written is what was written to a cache, for however long.
func (t Tokens) Written() int64 { return t.CacheWriteTokens + t.CacheWriteHourTokens }

// Add sums two counts.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		t.InputTokens + o.InputTokens, t.OutputTokens + o.OutputTokens,
		t.CacheReadTokens + o.CacheReadTokens, t.CacheWriteTokens + o.CacheWriteTokens,
		t.CacheWriteHourTokens + o.CacheWriteHourTokens,
	}
}

// Usage is the record of one billed call.
type Usage struct {
	Tokens
	API        API
	Model      string // the name sent to the provider
	Tier       string // that the call was served in, as the provider tells, else as it was asked for
	CostMicros *int64 // micro-dollars; nil: the model has no price
	Reserved   int64  // micro-dollars that were reserved for the call
	Duration   time.Duration
	Status     int // of the answer to the caller; 0 when there was none
	Streamed   bool
	Aborted    bool   // the caller did not get the whole answer
	Estimated  bool   // the provider's own count did not arrive
	Fault      string // slug of the upstream's fault, such as provider_auth
	// Kind is why there was no whole answer, also where the caller has got an answer
	// with status 200 that is an error; empty: the answer was whole, or not asked for.
	Kind answer.Kind
}

// Meter counts and judges an answer as its bytes pass, in any chunking. It keeps no
// more of it than one event.
type Meter struct {
	reader *answer.Reader // nil: the answer is not a model's
	bytes  int64
}

// NewMeter makes a meter for an answer of an endpoint. An answer that costs nothing
// or has an error status is not read: the meter takes it for whole and begun.
func NewMeter(at Endpoint, status int, h http.Header) *Meter {
	if !at.Billed() || status/100 != 2 {
		return &Meter{}
	}
	return &Meter{reader: answer.New(answer.Options{API: answer.API(at.API), Status: status, Header: h})}
}

// Write takes the next bytes of the answer. It never fails.
func (m *Meter) Write(p []byte) (int, error) {
	if m.reader == nil {
		return len(p), nil
	}
	m.bytes += int64(len(p))
	return m.reader.Write(p)
}

// End takes the end of the answer, and what broke it; nil: it ended properly.
func (m *Meter) End(broken error) {
	if m.reader != nil {
		m.reader.End(broken)
	}
}

// Begun tells whether content has come, so that the answer must be sent on.
func (m *Meter) Begun() bool { return m.reader == nil || m.reader.Begun() }

// failed tells whether the provider has reported an error so far.
func (m *Meter) failed() bool { return m.reader != nil && m.reader.Failed() }

// streamed tells whether the answer is a stream of events.
func (m *Meter) streamed() bool { return m.reader != nil && m.reader.Streaming() }

// Failure is why there is no whole answer; nil for a whole one. It is known after End.
func (m *Meter) Failure() *answer.Failure {
	if m.reader == nil {
		return nil
	}
	return m.reader.Failure()
}

// Refusal is the failure as an answer to the caller; false for a whole answer. It is
// known after End.
func (m *Meter) Refusal(api API) (Refusal, bool) {
	f := m.Failure()
	if f == nil {
		return Refusal{}, false
	}
	return refusalOf(f, api, Route{}), true
}

// Tokens are the counts so far; false when the provider has sent none.
func (m *Meter) Tokens() (Tokens, bool) {
	if m.reader == nil {
		return Tokens{}, false
	}
	u, told := m.reader.Usage()
	return Tokens{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead,
		CacheWriteTokens: u.CacheWrite, CacheWriteHourTokens: u.CacheWrite1h,
	}, told
}

// Tier is the one that the provider says it has served the call in; empty: it says none.
func (m *Meter) Tier() string {
	if m.reader == nil {
		return ""
	}
	return m.reader.Tier()
}

// Estimate replaces a count that never arrived, for example because the caller
// disconnected during a stream: four bytes of a request or of a document are about one
// token, and an event carries about one.
func (m *Meter) Estimate(requestBytes int) Tokens {
	t := Tokens{InputTokens: int64(requestBytes) / 4}
	if m.reader != nil {
		if t.OutputTokens = m.reader.Events(); t.OutputTokens == 0 {
			t.OutputTokens = m.bytes / 4
		}
	}
	return t
}

// Count is what a call of so many bytes has cost: what the provider has counted, an
// estimate where it has not and there is an answer to pay for, else nothing.
// unread says that the caller went away, so that nobody knows what would have come.
// A stream that broke off has what came of it, also where the provider has counted only
// its beginning. A provider that counts the prompt, and nothing of an answer that has
// content, is not believed.
func (m *Meter) Count(requestBytes int, unread bool) (t Tokens, estimated bool) {
	t, told := m.Tokens()
	switch f := m.Failure(); {
	case m.reader == nil:
		return t, false
	case !told && !unread && !m.reader.Begun() && f != nil:
		return t, false
	case !told:
		return m.Estimate(requestBytes), true
	case f == nil && m.reader.Begun() && t.OutputTokens == 0 && t != (Tokens{}):
		t.OutputTokens = m.Estimate(requestBytes).OutputTokens
		return t, true
	case f != nil && f.Kind == answer.Cut && m.reader.Begun() && m.reader.Uncounted() > t.OutputTokens:
		t.OutputTokens = m.reader.Uncounted()
		return t, true
	}
	return t, false
}
