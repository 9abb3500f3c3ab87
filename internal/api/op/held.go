package op

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
)

// Open is the most that callers may hold open of streams and of calls that wait, and how many
// calls of an account may be answered at once. Zero is no limit.
type Open struct {
	StreamsPerCredential int
	StreamsPerAccount    int
	Streams              int // in all
	CallsPerCredential   int // that are answered at once, streams among them
	CallsPerAccount      int
}

// SlugOpen is the slug of refusals because too much is held open.
const SlugOpen = "too-many-open"

// TooMuchOpen is the fault for a caller that would hold too much open. It may try again soon.
func TooMuchOpen(detail string) *fault.Error {
	return fault.New(fault.Unavailable, SlugOpen, detail).After(5 * time.Second).OnPurpose()
}

// quotas are the quotas of a call.
type quotas []limit.Quota

func (q *quotas) most(name, who string, n int) {
	if n > 0 && who != "" {
		*q = append(*q, limit.Quota{Bucket: limit.Bucket{Name: name, Who: who}, Most: n})
	}
}

// calls counts a call for its credential and its account.
func (q *quotas) calls(o Open, credential, account string) {
	q.most("calls with this credential", credential, o.CallsPerCredential)
	q.most("calls of this account", account, o.CallsPerAccount)
}

// Hold counts what is served beside the ops for a credential and its account, together with
// their calls, until leave. It fails with fault.Unavailable, at once.
func (p *Pipeline) Hold(credential, account string) (leave func(), err error) {
	var all quotas
	all.calls(p.Open, credential, account)
	return p.take(all)
}

// HoldFor counts a call of a Raw op, before its body is read, until leave. Serve does not count
// the calls in it again. HoldFor fails as hold does.
func (p *Pipeline) HoldFor(ctx context.Context, c *Call, who *Caller) (leave func(), err error) {
	leave, err = p.hold(ctx, c, *who)
	who.held = err == nil
	return leave, err
}

// HoldBody counts a call of a Raw op, before its body is read, among those of a kind of one
// address and in all, until leave. It fails with fault.Unavailable, at once.
func (p *Pipeline) HoldBody(c *Call, kind string, ofAddress, ofServer int) (leave func(), err error) {
	var all quotas
	all.most(kind+" of this address", limit.Site(c.Request.IP).String(), ofAddress)
	all.most(kind+" of this server", "all", ofServer)
	return p.take(all)
}

// hold counts a call among those that its caller holds open, until leave. It fails with
// fault.Unavailable, at once.
func (p *Pipeline) hold(ctx context.Context, c *Call, who Caller) (leave func(), err error) {
	actor := who.Actor
	if p.Settle != nil {
		if err := p.Settle(ctx, actor, !actor.Anonymous() || c.Op.Holder != nil); err != nil {
			return nil, err
		}
	}
	var all quotas
	most := all.most
	if c.Op.lasts() {
		credential := actor.CredentialID
		if actor.Anonymous() {
			credential = "of " + limit.Site(c.Request.IP).String()
		}
		most("streams of this credential", credential, p.Open.StreamsPerCredential)
		most("streams of this account", actor.AccountID, p.Open.StreamsPerAccount)
		most("streams of this server", "all", p.Open.Streams)
	}
	if !actor.Anonymous() && !who.held {
		all.calls(p.Open, actor.CredentialID, actor.AccountID)
	}
	return p.take(all)
}

func (p *Pipeline) take(all quotas) (leave func(), err error) {
	leave, full := p.held.Take(all...)
	if full != nil {
		return nil, TooMuchOpen(fmt.Sprintf("There are %d open %s, which is the most. End some, or try again.", full.Most, full.Name))
	}
	return leave, nil
}
