package op

import (
	"hash/fnv"
	"strconv"

	"yardmaster/internal/api/limit"
)

// doors is how many counts of refusals an address has: those for whom it sends share them,
// by a hash. So nobody learns from a count whether there is what a delivery is for, and an
// address takes up little memory, whatever it makes up.
const doors = 64

// RefuseFor refuses a call of a Raw row that takes signed deliveries, with err, and counts the
// refusal for its address together with the receiver: many customers of a vendor send from
// one address, and what some of them forge is no matter of the others. Beyond PerAddress a
// minute the answer is fault.RateLimited. Nothing else is counted: a call that is signed
// passes, whatever its address has sent before.
func (p *Pipeline) RefuseFor(c *Call, receiver string, err error) Answer {
	if p.Limits == nil {
		return p.Refuse(c, err)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(receiver))
	state, ok := p.Limits.Take(limit.Bucket{Name: "refused " + c.Op.ID, IP: limit.Site(c.Request.IP),
		Who: strconv.Itoa(int(h.Sum32() % doors))}, PerAddress)
	if !ok {
		err = tooMany(state, "that were refused, from this address")
	}
	return p.Refuse(c, err)
}
