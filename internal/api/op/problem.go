package op

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/fault"
)

// Problem is the body of every failure (RFC 9457, application/problem+json).
// Clients switch on the last segment of type, never on title.
type Problem struct {
	_          struct{}            `doc:"Why a request failed (RFC 9457). Switch on the last segment of type."`
	Type       string              `json:"type" format:"uri" doc:"URI whose last segment is the stable slug"`
	Title      string              `json:"title" doc:"the kind of failure in words; never switch on it"`
	Status     int                 `json:"status" doc:"the HTTP status"`
	Detail     string              `json:"detail" doc:"what was wrong this time, for people"`
	Instance   string              `json:"instance" doc:"path of the request"`
	RequestID  string              `json:"request_id" doc:"the X-Request-Id of the response"`
	Errors     map[string][]string `json:"errors,omitempty" doc:"dotted path of a field to what is wrong with it"`
	RetryAfter *int                `json:"retry_after,omitempty" doc:"seconds, on 429"`
	Reason     string              `json:"reason,omitempty" doc:"why not, on 409: the slug, or what the capability names"`
	Extra      map[string]any      `json:",embed"`
}

const problemType = "application/problem+json"

func (s *server) problem(req *http.Request, f *fault.Error) Problem {
	p := Problem{
		Type: s.BaseURL + "/problems/" + f.Slug, Title: f.Kind.Title(), Status: f.Kind.Status(), Detail: f.Detail,
		Instance: strings.ToValidUTF8(req.URL.Path, "\uFFFD"), RequestID: RequestOf(req.Context()).ID, Errors: f.Fields,
	}
	for k, v := range f.Extra {
		if why, ok := v.(string); ok && k == "reason" {
			p.Reason = why
			continue
		}
		if p.Extra == nil {
			p.Extra = map[string]any{}
		}
		p.Extra[k] = v
	}
	if f.Kind == fault.Conflict && p.Reason == "" {
		p.Reason = f.Slug
	}
	if f.RetryAfter > 0 {
		n := seconds(f.RetryAfter)
		p.RetryAfter = &n
	}
	return p
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// fail answers with the problem of err, or, to a person, a page about it.
func (s *server) fail(w http.ResponseWriter, req *http.Request, o *Op, err error) {
	f := fault.From(err)
	if o != nil && o.Recast != nil {
		f = o.Recast(f)
	}
	h := w.Header()
	if f.Kind == fault.Unauthenticated {
		challenge := "Bearer"
		if o != nil && o.Resource != "" {
			challenge += ` resource_metadata="` + s.BaseURL + o.Resource + `"`
		}
		h.Set("WWW-Authenticate", challenge)
	}
	if f.Kind == fault.MethodNotAllowed && o != nil {
		h.Set("Allow", s.paths[o.Path].allow(o))
	}
	if s.failPage(w, req, f) {
		return
	}
	p := s.problem(req, f)
	h.Set("Content-Type", problemType)
	if p.RetryAfter != nil {
		h.Set("Retry-After", strconv.Itoa(*p.RetryAfter))
	}
	b, merr := json.Marshal(p)
	if merr != nil {
		b = []byte(`{"status":500}`)
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(p.Status)
	if req.Method != http.MethodHead {
		w.Write(b)
	}
}
