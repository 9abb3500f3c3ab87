package op

import (
	"context"

	"yardmaster/internal/observe"
)

// note tells the record of the request what became of a call. A call inside of
// another one, such as of a tool, is noted first and names the request; the
// failure of the outer one counts.
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
