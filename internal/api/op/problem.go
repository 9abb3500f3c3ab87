package op

import (
	"math"
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
	RetryAfter *int                `json:"retry_after,omitempty" doc:"seconds, on 429, and on 503 where it is known"`
	Reason     string              `json:"reason,omitempty" doc:"why not, on 409: the slug, or what the capability names"`
	Extra      map[string]any      `json:",embed"`
}

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

func (p *Pipeline) problem(c *Call, f *fault.Error) Problem {
	out := Problem{
		Type: p.BaseURL + "/problems/" + f.Slug, Title: f.Kind.Title(), Status: f.Kind.Status(), Detail: f.Detail,
		Instance: strings.ToValidUTF8(c.Path, "\uFFFD"), RequestID: c.Request.ID, Errors: f.Fields,
	}
	for k, v := range f.Extra {
		if why, ok := v.(string); ok && k == "reason" {
			out.Reason = why
			continue
		}
		if out.Extra == nil {
			out.Extra = map[string]any{}
		}
		out.Extra[k] = v
	}
	if f.Kind == fault.Conflict && out.Reason == "" {
		out.Reason = f.Slug
	}
	if f.RetryAfter > 0 {
		n := seconds(f.RetryAfter)
		out.RetryAfter = &n
	}
	return out
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// Refuse makes the answer to a call that failed with err.
func (p *Pipeline) Refuse(c *Call, err error) Answer {
	f := fault.From(err)
	if c.Op != nil && c.Op.AdaptFault != nil {
		f = c.Op.AdaptFault(f)
	}
	body := p.problem(c, f)
	a := p.answer(c)
	a.Status, a.ContentType, a.Failure, a.Err = body.Status, ProblemType, f, err
	if body.RetryAfter != nil {
		a.RetryAfter = *body.RetryAfter
	}
	if a.Body, err = json.Marshal(body); err != nil {
		a.Body = []byte(`{"status":500}`)
	}
	return a
}

// again gives a replayed problem the id of this request, and returns its slug.
func (a *Answer) again(requestID string) (slug string) {
	var p Problem
	if json.Unmarshal(a.Body, &p) != nil {
		return ""
	}
	if p.RetryAfter != nil {
		a.RetryAfter = *p.RetryAfter
	}
	p.RequestID = requestID
	if b, err := json.Marshal(p); err == nil {
		a.Body = b
	}
	return p.Type[strings.LastIndexByte(p.Type, '/')+1:]
}
