package github

import (
	"net/http"
	"strconv"
	"time"
)

// Limits are the numbers of the page "Rate limits for the REST API". A zero field is
// the published number.
type Limits struct {
	Primary          int // requests an hour; 0: 5,000 to 12,500 by repositories
	Points           int // a minute, of REST; 0: 900
	GraphQLPoints    int // a minute; 0: 2,000
	ContentPerMinute int // requests that make content; 0: 80
	ContentPerHour   int // 0: 500
	AtOnce           int // 0: 100
}

// limiter counts requests by caller.
type limiter struct {
	Limits
	used     map[string]*window // primary, an hour
	minutes  map[string]*window // points
	contents map[string][]time.Time
	open     map[string]int
}

type window struct {
	used  int
	reset time.Time
}

func newLimiter(l Limits) limiter {
	or := func(n, published int) int {
		if n == 0 {
			return published
		}
		return n
	}
	l.Points = or(l.Points, 900)
	l.GraphQLPoints = or(l.GraphQLPoints, 2000)
	l.ContentPerMinute = or(l.ContentPerMinute, 80)
	l.ContentPerHour = or(l.ContentPerHour, 500)
	l.AtOnce = or(l.AtOnce, 100)
	return limiter{l, map[string]*window{}, map[string]*window{}, map[string][]time.Time{}, map[string]int{}}
}

// primary is how many requests a caller has in an hour.
func (c *call) primary() int {
	switch {
	case c.limits.Primary > 0:
		return c.limits.Primary
	case c.who.account() == nil:
		return 60
	case c.who.inst != nil:
		n := 0
		for _, r := range c.repos {
			if c.who.inst.has(r) {
				n++
			}
		}
		return min(12500, 5000+50*max(0, n-20)+50*max(0, len(c.who.inst.Account.members)-20))
	}
	return 5000
}

func current(of map[string]*window, key string, now time.Time, length time.Duration) *window {
	w := of[key]
	if w == nil || !now.Before(w.reset) {
		w = &window{reset: now.Truncate(time.Second).Add(length)}
		of[key] = w
	}
	return w
}

// charge counts a request and refuses it beyond a limit. free takes the charge back.
func (c *call) charge() (free func()) {
	resource := "core"
	if c.route.operation == graphQL {
		resource = "graphql"
	}
	key, now := c.who.key()+" "+resource, c.now()
	w, limit := current(c.limits.used, key, now, time.Hour), c.primary()
	show := func() {
		c.header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
		c.header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-w.used)))
		c.header.Set("X-RateLimit-Used", strconv.Itoa(w.used))
		c.header.Set("X-RateLimit-Reset", strconv.FormatInt(w.reset.Unix(), 10))
		c.header.Set("X-RateLimit-Resource", resource)
	}
	if c.o.Enterprise != "" { // limits are off there by default
		return func() {}
	}
	show()
	if w.used >= limit && resource == "graphql" {
		panic(&problem{status: http.StatusOK, body: obj{"errors": []obj{{
			"type": "RATE_LIMITED", "message": "API rate limit exceeded for " + c.who.key() + ".",
		}}}})
	}
	if w.used >= limit {
		c.refuse(http.StatusForbidden, "API rate limit exceeded for %s.", c.who.key())
	}
	c.secondary(key, resource, now)
	w.used++
	show()
	return func() { w.used--; show() }
}

// secondary counts against the secondary limits.
func (c *call) secondary(key, resource string, now time.Time) {
	points, most, endpoint := 1, c.limits.Points, key+" "+c.route.operation
	if c.r.Method != http.MethodGet {
		points = 5
	}
	if resource == "graphql" {
		points, most, endpoint = c.points(), c.limits.GraphQLPoints, key
	}
	w := current(c.limits.minutes, endpoint, now, time.Minute)
	if w.used+points > most {
		c.slowDown(w.reset.Sub(now))
	}
	if c.route.content || resource == "graphql" && points > 1 {
		var hour []time.Time
		minute := 0
		for _, at := range c.limits.contents[c.who.key()] {
			if age := now.Sub(at); age < time.Hour {
				hour = append(hour, at)
				if age < time.Minute {
					minute++
				}
			}
		}
		c.limits.contents[c.who.key()] = hour
		if minute >= c.limits.ContentPerMinute {
			c.slowDown(time.Minute)
		}
		if len(hour) >= c.limits.ContentPerHour {
			c.slowDown(time.Hour - now.Sub(hour[0]))
		}
		c.limits.contents[c.who.key()] = append(hour, now)
	}
	w.used += points
}

// slowDown refuses a request by a secondary limit.
func (c *call) slowDown(wait time.Duration) {
	c.header.Set("Retry-After", strconv.Itoa(max(1, int(wait/time.Second))))
	c.refuse(http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
}

// enter counts a request that is carried out now, unless the credential has too many.
func (s *Server) enter(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Authorization")
	if s.limits.open[key] >= s.limits.AtOnce {
		return false
	}
	s.limits.open[key]++
	return true
}

func (s *Server) leave(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.open[r.Header.Get("Authorization")]--
}

// Used is how many requests of REST an installation has paid for in the present hour.
func (i *Installation) Used() int {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return current(i.s.limits.used, who{inst: i}.key()+" core", i.s.now(), time.Hour).used
}
