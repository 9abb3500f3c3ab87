package op

import (
	"context"

	"yardmaster/internal/observe"
)

// note writes the outcome of a call into the record of the request. A call inside of
// another one, such as the call of a tool, is noted first: its capability names the
// request, and the failure of the outer call replaces its failure.
func (p *Pipeline) note(ctx context.Context, c *Call, a *Answer) {
	r := observe.Of(ctx)
	if r.Capability == "" && c.Op != nil {
		r.Capability = c.Op.ID
	}
	if r.Actor == "" || !a.Actor.Anonymous() {
		r.Actor, r.Account = a.Actor.Label(), a.Actor.AccountID
	}
	if a.Failure != nil {
		r.Slug = a.Failure.Slug
	}
	if a.Err != nil {
		r.Cause = a.Err
	}
}
