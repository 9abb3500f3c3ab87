package op

import (
	"net/http"
	"strings"
)

// What a script of any site may send and read where a path is open to them.
// There are no credentials in it: the * of the origin makes browsers leave
// cookies out, and a token is something the script has itself.
var (
	corsSend = strings.Join([]string{"Authorization", "Content-Type", "Accept", "Idempotency-Key", "X-Request-Id",
		"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID"}, ", ")
	corsRead = strings.Join([]string{"WWW-Authenticate", "X-Request-Id", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining",
		"RateLimit-Reset", "X-Idempotent-Replayed", "ETag"}, ", ")
)

// anyOrigin tells whether scripts of other sites may call a path.
func (m methods) anyOrigin() bool {
	for _, o := range m {
		if o.AnyOrigin {
			return true
		}
	}
	return false
}

func (m methods) letIn(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", corsRead)
}

// preflight tells a browser what a script may do here.
func (s *server) preflight(w http.ResponseWriter, req *http.Request, m methods) {
	h := w.Header()
	if err := s.knock(h, req, nil); err != nil {
		s.fail(w, req, nil, err)
		return
	}
	h.Set("Access-Control-Allow-Methods", m.allow(nil))
	h.Set("Access-Control-Allow-Headers", corsSend)
	h.Set("Access-Control-Max-Age", "86400")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}
