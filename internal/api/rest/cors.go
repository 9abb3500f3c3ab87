package rest

import (
	"net/http"
	"strings"

	"yardmaster/internal/api/op"
)

// The headers that a script of another site may send and read at a path that is open to
// it. No credentials of the browser are sent: the origin * makes browsers leave cookies
// out, and a token can be sent only by a script that knows it.
var (
	corsSend = strings.Join([]string{"Authorization", "Content-Type", "Accept", "Idempotency-Key", "X-Request-Id",
		"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"}, ", ")
	corsRead = strings.Join([]string{"WWW-Authenticate", "X-Request-Id", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining",
		"RateLimit-Reset", "X-Idempotent-Replayed", "ETag"}, ", ")
)

// anyOrigin tells whether scripts of every site may call a path.
func (m methods) anyOrigin() bool {
	for _, o := range m {
		if o.AnyOrigin {
			return true
		}
	}
	return false
}

// forKnown tells whether scripts of op.KnownPages may call a path.
func (m methods) forKnown() bool {
	for _, o := range m {
		if o.From == op.KnownPages {
			return true
		}
	}
	return false
}

// scripts sets the headers that tell a browser which scripts may read the answer. It
// returns whether scripts of the page that sends the request may, and whether any
// script of another site may ask.
func (s *server) scripts(h http.Header, req *http.Request, m methods) (allowed, asks bool) {
	switch origin := req.Header.Get("Origin"); {
	case m.forKnown():
		h.Add("Vary", "Origin")
		if allowed = s.known(origin); !allowed {
			return false, true
		}
		h.Set("Access-Control-Allow-Origin", origin)
	case m.anyOrigin():
		h.Set("Access-Control-Allow-Origin", "*")
	default:
		return false, false
	}
	h.Set("Access-Control-Expose-Headers", corsRead)
	return true, true
}

// preflight answers the request with which a browser asks what a script may send.
func (s *server) preflight(w http.ResponseWriter, req *http.Request, m methods, allowed bool) {
	c := s.call(w, req, nil)
	if !allowed {
		c.Refused = s.comesFrom(req, op.KnownPages)
	}
	if _, _, err := s.Pipeline.Admit(req.Context(), c); err != nil {
		a := s.Pipeline.Refuse(c, err)
		s.write(w, req, c, &a)
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", m.all())
	h.Set("Access-Control-Allow-Headers", corsSend)
	h.Set("Access-Control-Max-Age", "86400")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}
