package op

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Pipeline carries out calls of all surfaces: it counts the address, resolves the
// credential, charges the caller, checks the rule of the row and binds the inputs; then
// the handler answers, once for each Idempotency-Key. A Pipeline is safe for concurrent
// use, and must not be copied after its first use.
type Pipeline struct {
	// Authenticate resolves the credential of a call: to the anonymous actor if
	// there is none, to an error if it is bad. If Authenticate is nil, every call
	// is let in.
	Authenticate func(context.Context, Presented) (policy.Actor, error)
	// Enter prepares the context of a call that passed the rule of its row.
	Enter func(context.Context, policy.Actor) context.Context
	// Limits counts calls; nil: nothing is limited.
	Limits limit.Limiter
	// Quota limits what accounts store and change; nil: nothing is limited.
	Quota Quota
	// Ledger remembers the answers to writes with a key; nil: keys are ignored.
	Ledger Ledger
	// BaseURL is the address in problem types, without a trailing slash.
	BaseURL string
	// Home is the path of the dashboard; empty: there is none.
	Home string
	// Secrets are the names of members of answers that hold secrets. See
	// Answer.Secret.
	Secrets []string

	// Open limits what callers hold open.
	Open Open
	// Stopping ends when the process is about to: then streams end, and calls that wait for news. It may be nil.
	Stopping context.Context
	// Settle is told of each call whose it is, before its body is read: known, if a
	// credential was verified. A call that it fails for is refused. It may be nil.
	Settle func(ctx context.Context, actor policy.Actor, known bool) error

	held      limit.Held
	secretive sync.Map // by the type of an answer: whether it can hold one of Secrets
}

// Caller is the maker of a call, as Admit found it.
type Caller struct {
	Actor policy.Actor
	trust bool // every call is let in: there is no Authenticate
	held  bool // it is counted already
}

// Check tells whether the rule lets the caller in. It fails with
// fault.Unauthenticated or fault.Forbidden.
func (w Caller) Check(r policy.Rule) error {
	if w.trust {
		return nil
	}
	return r.Check(w.Actor)
}

// Do carries out a call. The answer holds every failure, a panic of the handler too.
func (p *Pipeline) Do(ctx context.Context, c *Call) (a Answer) {
	defer func() { p.note(ctx, c, &a) }()
	defer p.recovered(c, &a)
	if c.Op != nil && c.Op.raw != nil {
		return c.Op.raw(ctx, p, c)
	}
	if c.Op != nil {
		c.malformed = c.Op.spread(c)
	}
	ctx, who, err := p.Admit(ctx, c)
	if err != nil {
		return p.Refuse(c, ended(ctx, err))
	}
	return p.serve(ctx, who, c)
}

// Serve carries out a call of a caller that Admit let in, for this call or another one
// of the same caller.
func (p *Pipeline) Serve(ctx context.Context, who Caller, c *Call) (a Answer) {
	defer func() { p.note(ctx, c, &a) }()
	defer p.recovered(c, &a)
	c.actor, c.malformed = who.Actor, c.Op.spread(c)
	return p.serve(ctx, who, c)
}

// recovered turns a panic into an answer. It must be deferred.
func (p *Pipeline) recovered(c *Call, a *Answer) {
	if v := recover(); v != nil {
		*a = p.Refuse(c, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	}
}

// Admit counts the address that a call comes from and resolves its credential. It fails
// with fault.RateLimited, with c.Refused, and with the error of Authenticate.
func (p *Pipeline) Admit(ctx context.Context, c *Call) (context.Context, Caller, error) {
	ctx = context.WithValue(ctx, requestKey{}, &c.Request)
	if err := p.address(c); err != nil {
		return ctx, Caller{}, err
	}
	if c.Refused != nil || c.Op == nil {
		return ctx, Caller{}, c.Refused
	}
	if p.Authenticate == nil {
		return ctx, Caller{trust: true}, nil
	}
	actor, err := p.Authenticate(ctx, c.Presented)
	if err != nil && c.Op.Rule.IsPublic() {
		actor, err = policy.Actor{}, nil // a public row takes a bad credential for none
	}
	if err != nil {
		return ctx, Caller{}, err
	}
	actor.RequestID = c.Request.ID
	c.actor = actor
	return ctx, Caller{Actor: actor}, nil
}

// serve charges the caller, checks the rule and calls the op.
func (p *Pipeline) serve(ctx context.Context, who Caller, c *Call) Answer {
	o := c.Op
	if !who.trust {
		if !o.Rule.IsPublic() && !who.Actor.Anonymous() {
			if err := p.Charge(c, who); err != nil {
				return p.Refuse(c, err)
			}
		}
		if err := o.Rule.Check(who.Actor); err != nil {
			return p.Refuse(c, err)
		}
		if err := p.admit(ctx, c, who.Actor.AccountID); err != nil {
			return p.Refuse(c, ended(ctx, err))
		}
	}
	if c.malformed != nil {
		return p.Refuse(c, c.malformed)
	}
	actor := who.Actor
	if p.Enter != nil {
		ctx = p.Enter(ctx, actor)
	}
	ctx = policy.With(ctx, actor)
	if o.Holder != nil {
		var err error
		if ctx, err = o.Holder.Admit(ctx, c.Presented.authorization()); err != nil {
			return p.Refuse(c, ended(ctx, err))
		}
		actor = policy.From(ctx)
		c.actor = actor
	}
	who.Actor = actor
	leave, err := p.hold(ctx, c, who)
	if err != nil {
		return p.Refuse(c, ended(ctx, err))
	}
	defer leave()
	if p.Stopping != nil && o.lasts() {
		var cancel func()
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.Stopping, cancel)()
	}
	use, keyed, err := p.use(c, actor)
	switch {
	case err != nil:
		return p.Refuse(c, err)
	case keyed:
		return p.once(ctx, c, actor, use)
	case o.stream != nil:
		return p.stream(ctx, c)
	}
	return p.run(ctx, c)
}

// run calls the handler and makes the answer.
func (p *Pipeline) run(ctx context.Context, c *Call) Answer {
	out, err := c.Op.run(ctx, func(in any) error { return c.Op.bind(c, in) })
	if err != nil {
		return p.Refuse(c, ended(ctx, err))
	}
	return p.Reply(c, out)
}

// ended returns fault.Unavailable, after which a caller may try again, if a call failed
// because its context ended: the caller has gone, or this process is stopping. It
// returns any other err as it is.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return fault.New(fault.Unavailable, "", "The request was ended before it was answered.").Because(err)
	}
	return err
}

// mayListen returns a fault if the caller of an open stream may not listen any more:
// fault.Unauthenticated or fault.Forbidden. If the credential cannot be resolved for
// another reason, mayListen returns nil.
func (p *Pipeline) mayListen(ctx context.Context, c *Call) error {
	o := c.Op
	if p.Authenticate == nil || o.Rule.IsPublic() {
		return nil
	}
	actor, err := p.Authenticate(ctx, c.Presented)
	if err == nil {
		err = o.Rule.Check(actor)
	}
	if was := policy.From(ctx); err == nil {
		switch lost := was.Scopes &^ actor.Scopes; {
		case actor.AccountID != was.AccountID:
			err = fault.New(fault.Forbidden, "", "The credential acts for another account now. Connect again.")
		case len(o.Rule.Names()) == 0 && lost != 0: // the stream was composed for the scopes at its beginning
			err = policy.MissingScope(lost)
		}
	}
	if fault.IsKind(err, fault.Unauthenticated) || fault.IsKind(err, fault.Forbidden) {
		return err
	}
	return nil
}
