package op

import "yardmaster/internal/api/limit"

// refusedPerAddress is how many refused deliveries a minute of one address are answered with the
// reason, to whatever paths they come.
const refusedPerAddress = 8 * PerAddress

// RefuseFor refuses a call of a Raw row that takes signed deliveries, with err, and counts the
// refusal for its address and path together, as customers of a vendor share its addresses, and
// for its address. Beyond PerAddress a minute, or refusedPerAddress, the answer is
// fault.RateLimited, the same whether there is what the delivery is for or not. Nothing else is
// counted: a call that is signed passes, whatever its address has sent before.
func (p *Pipeline) RefuseFor(c *Call, err error) Answer {
	if p.Limits == nil {
		return p.Refuse(c, err)
	}
	name, ip := "refused "+c.Op.ID, limit.Site(c.Request.IP)
	state, ok := p.Limits.Take(limit.Bucket{Name: name, IP: ip}, refusedPerAddress)
	if ok && len(c.Path) <= 200 {
		state, ok = p.Limits.Take(limit.Bucket{Name: name + " to", IP: ip, Who: c.Path}, PerAddress)
	}
	if !ok {
		err = tooMany(state, "that were refused, from this address")
	}
	return p.Refuse(c, err)
}
