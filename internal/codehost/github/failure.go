package github

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/codehost"
)

// Refusal is an answer of GitHub with a status from 400 on that no fault of package
// codehost stands for.
type Refusal struct {
	Status  int
	Message string
	Errors  []string // what GitHub says of single fields, as "field code message"
}

// Error implements error.
func (e *Refusal) Error() string {
	text := fmt.Sprintf("GitHub answered %d: %.300s", e.Status, e.Message)
	if len(e.Errors) > 0 {
		text += fmt.Sprintf(" (%.500s)", strings.Join(e.Errors, "; "))
	}
	return text
}

// says tells whether the message or one of the errors has a text in it, in any case.
func (e *Refusal) says(text string) bool {
	text = strings.ToLower(text)
	for _, s := range append([]string{e.Message}, e.Errors...) {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}

// refused answers the Refusal that an error is, with one of some statuses.
func refused(err error, status ...int) (*Refusal, bool) {
	var e *Refusal
	if !errors.As(err, &e) {
		return nil, false
	}
	for _, s := range status {
		if e.Status == s {
			return e, true
		}
	}
	return nil, false
}

// errUnauthorized says that GitHub does not know the credential.
var errUnauthorized = errors.New("GitHub refuses the credential")

// wireProblem is the body of an answer from 400 on. An element of errors is an object
// or a text.
type wireProblem struct {
	Message string `json:"message"`
	Errors  []any  `json:"errors"`
}

// failure is the error of an answer from 400 on.
func (h *Host) failure(status int, header http.Header, body []byte, need permissions) error {
	var p wireProblem
	_ = json.Unmarshal(body, &p, lenient)
	e := &Refusal{Status: status, Message: p.Message}
	for _, one := range p.Errors {
		switch one := one.(type) {
		case string:
			e.Errors = append(e.Errors, one)
		case map[string]any:
			said := text(one["field"]) + " " + text(one["code"]) + " " + text(one["message"])
			e.Errors = append(e.Errors, strings.TrimSpace(said))
		}
	}
	switch {
	case status >= 500:
		return &codehost.BusyError{After: retryAfter(header), Cause: e}
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w", errUnauthorized, e)
	case status == http.StatusForbidden || status == http.StatusTooManyRequests:
		return h.forbidden(header, e, need)
	case status == http.StatusNotFound, status == http.StatusUnprocessableEntity && e.says("no commit found"):
		return codehost.ErrNotFound.Because(e)
	case status == http.StatusUnavailableForLegalReasons:
		return codehost.ErrGone.Because(e)
	}
	return e
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// forbidden tells the many meanings of 403 and 429 apart. See the pages "Rate limits
// for the REST API" and "Troubleshooting the REST API".
func (h *Host) forbidden(header http.Header, e *Refusal, need permissions) error {
	after := retryAfter(header)
	switch {
	case after > 0:
		return &codehost.BusyError{After: after, Limit: true, Cause: e}
	case header.Get("X-Ratelimit-Remaining") == "0":
		return &codehost.BusyError{After: max(time.Second, until(header).Sub(h.cfg.Now())), Limit: true, Cause: e}
	case e.Status == http.StatusTooManyRequests, e.says("secondary rate limit"), e.says("abuse detection"):
		return &codehost.BusyError{After: time.Minute, Limit: true, Cause: e}
	case e.says("archived"), e.says("suspended"):
		return codehost.ErrGone.Because(e)
	case e.says("without `workflows` permission"):
		return errors.Join(&codehost.ForbiddenError{Permission: "workflows: write"}, e)
	case e.says("not accessible by"):
		lacks := header.Get("X-Accepted-Github-Permissions")
		if lacks == "" {
			lacks = need.String()
		}
		return errors.Join(&codehost.ForbiddenError{Permission: accepted(lacks)}, e)
	}
	return e
}

// accepted turns "contents=write; workflows=write, contents=write" into the first
// choice as people write it, "contents: write, workflows: write".
func accepted(header string) string {
	header, _, _ = strings.Cut(header, ",")
	var all []string
	for one := range strings.SplitSeq(header, ";") {
		all = append(all, strings.Replace(strings.TrimSpace(one), "=", ": ", 1))
	}
	return strings.Join(all, ", ")
}

// retryAfter is the header Retry-After in seconds; 0 if there is none.
func retryAfter(header http.Header) time.Duration {
	n, err := strconv.ParseInt(header.Get("Retry-After"), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// until is when the present count of requests ends.
func until(header http.Header) time.Time {
	n, err := strconv.ParseInt(header.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0)
}
