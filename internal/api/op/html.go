package op

import (
	"net/http"
	"strconv"
	"strings"

	"yardmaster/internal/fault"
)

// programs are what only programs call, whatever they say they like to read.
var programs = []string{"/v1/", "/.well-known/", "/oauth/token", "/oauth/register", "/auth/device", "/auth/methods", "/healthz"}

// PrefersPage tells from an Accept header whether a person sits in front of the
// answer: it names text/html, and nothing of JSON that it likes better.
func PrefersPage(accept string) bool {
	html, data := 0.0, 0.0
	for part := range strings.SplitSeq(strings.ToLower(accept), ",") {
		kind, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		for p := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
				n, err := strconv.ParseFloat(v, 64)
				if err != nil {
					n = 0
				}
				q = n
			}
		}
		switch kind = strings.TrimSpace(kind); {
		case kind == "text/html" || kind == "application/xhtml+xml":
			html = max(html, q)
		case kind == "application/json" || strings.HasSuffix(kind, "+json"):
			data = max(data, q)
		}
	}
	return html > 0 && html >= data
}

// failPage answers a person with a page; false if a problem document is due.
func (s *server) failPage(w http.ResponseWriter, req *http.Request, f *fault.Error) bool {
	if s.Page == nil || !PrefersPage(req.Header.Get("Accept")) {
		return false
	}
	for _, p := range programs {
		if strings.HasPrefix(req.URL.Path, p) {
			return false
		}
	}
	r, err := s.Page(f, RequestOf(req.Context()).ID)
	if err != nil {
		return false
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(f.RetryAfter)))
	}
	w.Header().Add("Vary", "Accept")
	return s.answer(w, req, &Op{}, r) == nil
}
