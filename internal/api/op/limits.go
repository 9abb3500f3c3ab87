package op

import (
	"context"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// The limits of a minute, in calls. A write is charged to its conversation first, then
// to its credential, and then to the account, whose limit Quota knows. All calls of a credential that name no conversation are one
// conversation.
const (
	PerAddress            = 1200
	ReadsPerCredential    = 600
	WritesPerCredential   = 600
	WritesPerConversation = 120
)

// address counts a call for the address that it comes from, before its credential is
// looked up. For a row with a bucket of its own the answer never shows how full a
// bucket is. address fails with fault.RateLimited.
func (p *Pipeline) address(c *Call) error {
	if p.Limits == nil {
		return nil
	}
	ip := limit.Site(c.Request.IP)
	own := c.Op != nil && c.Op.PerAddress > 0
	if state, ok := p.Limits.Take(limit.Bucket{Name: "address", IP: ip}, PerAddress); !ok {
		if !own {
			c.show(state)
		}
		return tooMany(state, "from this address")
	}
	if !own {
		return nil
	}
	if state, ok := p.Limits.Take(limit.Bucket{Name: c.Op.Path, IP: ip}, c.Op.PerAddress); !ok {
		return tooMany(state, "to this path from this address")
	}
	return nil
}

// Charge counts a call for its caller, and notes for the answer the bucket that runs
// out first. Serve charges its calls itself; a surface charges calls that it answers
// without Serve. Charge fails with fault.RateLimited.
func (p *Pipeline) Charge(c *Call, who Caller) error {
	if p.Limits == nil || who.trust {
		return nil
	}
	id := who.Actor.CredentialID
	if !c.Changes {
		state, ok := p.Limits.Take(limit.Bucket{Name: "reads", Who: id}, ReadsPerCredential)
		c.show(state)
		if !ok {
			return tooMany(state, "that read, with this credential")
		}
		return nil
	}
	talk, ok := p.Limits.Take(limit.Bucket{Name: "conversation", Who: id, Talk: c.Conversation}, WritesPerConversation)
	if !ok {
		c.show(talk)
		return tooMany(talk, "that write, in this conversation")
	}
	all, ok := p.Limits.Take(limit.Bucket{Name: "writes", Who: id}, WritesPerCredential)
	if all.Tighter(talk) {
		talk = all
	}
	c.show(talk)
	if !ok {
		return tooMany(all, "that write, with this credential")
	}
	return nil
}

// Quota keeps accounts to what they may store and change.
type Quota interface {
	// Writes is the most calls a minute that write, by all credentials of an account; 0: there
	// is no limit.
	Writes(ctx context.Context, account string) (int, error)
	// Admit fails with the fault for a call that writes and that the account has no room for.
	// bytes is the length of its body; -1 if that is not known.
	Admit(ctx context.Context, account string, o *Op, bytes int64) error
}

// admit counts a call that writes for the account of its caller, and asks whether the
// account has room for it. What operators do is of no account. It fails with fault.RateLimited and the faults of Quota.
func (p *Pipeline) admit(ctx context.Context, c *Call, account string) error {
	if p.Quota == nil || !c.Changes || account == "" || c.Op.Rule.Scopes()&policy.OperatorOnly != 0 {
		return nil
	}
	state, err := p.wrote(ctx, account)
	if state.Limit > 0 && (!c.counted || state.Tighter(c.state)) {
		c.show(state)
	}
	if err != nil {
		return err
	}
	return p.Quota.Admit(ctx, account, c.Op, c.bytes())
}

// Wrote counts what writes beside the ops, such as a push, for its account, together with the
// calls of it that write. It fails with fault.RateLimited.
func (p *Pipeline) Wrote(ctx context.Context, account string) error {
	_, err := p.wrote(ctx, account)
	return err
}

// wrote is Wrote, and answers the state of the bucket; the zero State: there is no limit.
func (p *Pipeline) wrote(ctx context.Context, account string) (state limit.State, err error) {
	most, err := p.Quota.Writes(ctx, account)
	if err != nil || p.Limits == nil || most <= 0 {
		return state, err
	}
	state, ok := p.Limits.Take(limit.Bucket{Name: "account", Who: account}, most)
	if !ok {
		refusal := tooMany(state, "that write, with all credentials of this account,")
		refusal.Detail += " An operator of the server can raise it."
		return state, refusal
	}
	return state, nil
}

// bytes is the length of the inputs of a call; -1 if it is not known.
func (c *Call) bytes() int64 {
	if c.Arguments == nil {
		return c.Length
	}
	var n int64
	for name, v := range c.Arguments {
		n += int64(len(name) + len(v))
	}
	return n
}

func (c *Call) show(s limit.State) { c.state, c.counted = s, true }

func tooMany(s limit.State, which string) *fault.Error {
	return fault.Newf(fault.RateLimited, "", "There were %d requests %s within a minute, which is the most.", s.Limit, which).
		After(time.Duration(s.Reset) * time.Second)
}
