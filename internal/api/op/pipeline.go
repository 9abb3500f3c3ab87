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

// Pipeline carries out calls, whichever surface they come from: the address is
// counted, the credential resolved, the caller charged, the row's rule checked,
// the inputs bound; then the handler answers, once for each Idempotency-Key. It
// is safe for concurrent use, and not copied once it was used.
type Pipeline struct {
	// Authenticate resolves the credential of a call. No credential is the
	// anonymous actor; a bad one is an error. Without it nobody is asked.
	Authenticate func(context.Context, Presented) (policy.Actor, error)
	// Enter prepares the context of a call that passed its rule.
	Enter func(context.Context, policy.Actor) context.Context
	// Limits counts calls; without it nothing is limited.
	Limits limit.Limiter
	// Ledger remembers the answers to idempotent writes; without it keys are
	// ignored.
	Ledger Ledger
	// BaseURL is the address in problem types, without a trailing slash.
	BaseURL string
	// Secrets are the members of answers that open something to those who know
	// them. See Answer.Secret.
	Secrets []string

	secretive sync.Map // by the type of an answer, whether it can hold one of Secrets
}

// Caller is what Admit found out about a call.
type Caller struct {
	Actor policy.Actor
	trust bool // nobody is asked: there is no Authenticate
}

// Check tells whether the rule lets the caller in. It fails with
// fault.Unauthenticated or fault.Forbidden.
func (w Caller) Check(r policy.Rule) error {
	if w.trust {
		return nil
	}
	return r.Check(w.Actor)
}

// Do carries out a call. Whatever goes wrong is in the answer.
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
		return p.Refuse(c, err)
	}
	return p.serve(ctx, who, c)
}

// Serve carries out a call of a caller that Admit let in, perhaps for another
// call.
func (p *Pipeline) Serve(ctx context.Context, who Caller, c *Call) (a Answer) {
	defer func() { p.note(ctx, c, &a) }()
	defer p.recovered(c, &a)
	c.actor, c.malformed = who.Actor, c.Op.spread(c)
	return p.serve(ctx, who, c)
}

// recovered makes of a panic an answer.
func (p *Pipeline) recovered(c *Call, a *Answer) {
	if v := recover(); v != nil {
		*a = p.Refuse(c, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	}
}

// Admit counts the address that a call comes from and finds out who makes it.
// It fails with fault.RateLimited, with what the surface refuses the call for,
// and with what Authenticate refuses.
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
		actor, err = policy.Actor{}, nil // a bad credential on a public row is as good as none
	}
	if err != nil {
		return ctx, Caller{}, err
	}
	actor.RequestID = c.Request.ID
	c.actor = actor
	return ctx, Caller{Actor: actor}, nil
}

// serve charges the caller, checks the rule and has the op answer.
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

// run has the handler answer.
func (p *Pipeline) run(ctx context.Context, c *Call) Answer {
	out, err := c.Op.run(ctx, func(in any) error { return c.Op.bind(c, in) })
	if err != nil {
		return p.Refuse(c, ended(ctx, err))
	}
	return p.Reply(c, out)
}

// ended makes of the end of a call, where it is why the call failed, a failure
// that may be tried again: the caller has gone, or we are stopping.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return fault.New(fault.Unavailable, "", "The request was ended before it was answered.").Because(err)
	}
	return err
}

// still tells whether the caller of an open stream may go on listening. What
// keeps us from finding out does not.
func (p *Pipeline) still(ctx context.Context, c *Call) error {
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
		case len(o.Rule.Names()) == 0 && lost != 0: // what it follows was chosen by what it held
			err = policy.MissingScope(lost)
		}
	}
	if fault.IsKind(err, fault.Unauthenticated) || fault.IsKind(err, fault.Forbidden) {
		return err
	}
	return nil
}
