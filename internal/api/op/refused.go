package op

import "yardmaster/internal/api/limit"

// RefuseFor refuses a call of a Raw row that takes signed deliveries, with err, and counts the
// refusal for its address. Beyond PerAddress a minute the answer is fault.RateLimited, the same
// whether there is what the delivery is for or not. Nothing else is counted: a call that is
// signed passes, whatever its address has sent before.
func (p *Pipeline) RefuseFor(c *Call, err error) Answer {
	if p.Limits == nil {
		return p.Refuse(c, err)
	}
	state, ok := p.Limits.Take(limit.Bucket{Name: "refused " + c.Op.ID, IP: limit.Site(c.Request.IP)}, PerAddress)
	if !ok {
		err = tooMany(state, "that were refused, from this address")
	}
	return p.Refuse(c, err)
}
