package op

import (
	"fmt"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
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
	return fault.New(fault.Unavailable, SlugOpen, detail).After(5 * time.Second)
}

// hold counts a call among those that its caller holds open, until leave. It fails with
// fault.Unavailable, at once.
func (p *Pipeline) hold(c *Call, actor policy.Actor) (leave func(), err error) {
	var all []limit.Quota
	most := func(name, who string, n int) {
		if n > 0 && who != "" {
			all = append(all, limit.Quota{Bucket: limit.Bucket{Name: name, Who: who}, Most: n})
		}
	}
	if c.Op.stream != nil || c.Op.Waits {
		credential := actor.CredentialID
		if actor.Anonymous() {
			credential = "of " + limit.Site(c.Request.IP).String()
		}
		most("streams of this credential", credential, p.Open.StreamsPerCredential)
		most("streams of this account", actor.AccountID, p.Open.StreamsPerAccount)
		most("streams of this server", "all", p.Open.Streams)
	}
	if !actor.Anonymous() {
		most("calls with this credential", actor.CredentialID, p.Open.CallsPerCredential)
		most("calls of this account", actor.AccountID, p.Open.CallsPerAccount)
	}
	leave, full := p.held.Take(all...)
	if full != nil {
		return nil, TooMuchOpen(fmt.Sprintf("There are %d open %s, which is the most. End some, or try again.", full.Most, full.Name))
	}
	return leave, nil
}
