package op

import (
	"net/http"
	"strconv"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// What a minute holds. A write is charged to its conversation first, then to
// its credential; all of REST is one conversation of its credential.
const (
	perAddress            = 1200
	readsPerCredential    = 600
	writesPerCredential   = 600
	writesPerConversation = 120
)

// knock charges the address a request comes from, before anybody looks at its
// credential. Rows with a bucket of their own never show how full one is.
func (s *server) knock(h http.Header, req *http.Request, o *Op) error {
	if s.Limits == nil {
		return nil
	}
	ip := limit.Site(RequestOf(req.Context()).IP)
	own := o != nil && o.PerAddress > 0
	if state, ok := s.Limits.Take(limit.Bucket{Name: "address", IP: ip}, perAddress); !ok {
		if !own {
			showLimit(h, state)
		}
		return tooMany(state, "from this address")
	}
	if !own {
		return nil
	}
	if state, ok := s.Limits.Take(limit.Bucket{Name: o.Path, IP: ip}, o.PerAddress); !ok {
		return tooMany(state, "to this path from this address")
	}
	return nil
}

// charge takes a call off what its credential may do, and puts the bucket that
// runs out first into the headers of the answer.
func (s *server) charge(h http.Header, a policy.Actor, write bool, conversation string) error {
	if s.Limits == nil {
		return nil
	}
	if !write {
		state, ok := s.Limits.Take(limit.Bucket{Name: "reads", Who: a.CredentialID}, readsPerCredential)
		showLimit(h, state)
		if !ok {
			return tooMany(state, "that read, with this credential")
		}
		return nil
	}
	talk, ok := s.Limits.Take(limit.Bucket{Name: "conversation", Who: a.CredentialID, Talk: conversation}, writesPerConversation)
	if !ok {
		showLimit(h, talk)
		return tooMany(talk, "that write, in this conversation")
	}
	all, ok := s.Limits.Take(limit.Bucket{Name: "writes", Who: a.CredentialID}, writesPerCredential)
	if all.Tighter(talk) {
		talk = all
	}
	showLimit(h, talk)
	if !ok {
		return tooMany(all, "that write, with this credential")
	}
	return nil
}

func showLimit(h http.Header, s limit.State) {
	h.Set("RateLimit-Limit", strconv.Itoa(s.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(s.Remaining))
	h.Set("RateLimit-Reset", strconv.Itoa(s.Reset))
}

func tooMany(s limit.State, which string) *fault.Error {
	return fault.Newf(fault.RateLimited, "", "There were %d requests %s within a minute, which is the most.", s.Limit, which).
		After(time.Duration(s.Reset) * time.Second)
}

// writes tells a request's class by its method.
func writes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}
