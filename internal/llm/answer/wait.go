package answer

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

// again finds a wait in prose: "try again in 2m13s", "retry after 27 seconds".
var again = lazy.New(`(?i)(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)?(?: seconds?)?)`)

// wait finds how long to wait before the call is made again; nil: nothing is told.
// What names milliseconds goes before what names seconds, a header before a text,
// and both before the state of a limit. A date counts from the answer's own Date, so
// that nobody's clock decides.
func (s *said) wait(h http.Header) *time.Duration {
	if ms, ok := seconds(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return ms
	}
	now, undated := http.ParseTime(h.Get("Date"))
	if v := h.Get("Retry-After"); v != "" {
		if d, ok := seconds(v, time.Second); ok {
			return d
		}
		if t, err := http.ParseTime(v); err == nil && undated == nil {
			return notBefore(t.Sub(now))
		}
	}
	if d, err := time.ParseDuration(s.delay); err == nil {
		return notBefore(d)
	}
	if m := again.FindStringSubmatch(s.text); m != nil {
		v := strings.TrimRight(m[1], ".")
		if d, err := time.ParseDuration(v); err == nil {
			return notBefore(d)
		}
		number, _, _ := strings.Cut(v, " ")
		if d, ok := seconds(number, time.Second); ok {
			return d
		}
	}
	// The longest wait of the limits that are used up.
	var longest *time.Duration
	for name := range h {
		if h.Get(name) != "0" || !strings.Contains(name, "Remaining") {
			continue
		}
		d := reset(h.Get(strings.Replace(name, "Remaining", "Reset", 1)), now, undated == nil)
		if d != nil && (longest == nil || *d > *longest) {
			longest = d
		}
	}
	return longest
}

// maxWait is the longest wait that is believed.
const maxWait = 400 * 24 * time.Hour

func notBefore(d time.Duration) *time.Duration {
	d = min(max(d, 0), maxWait)
	return &d
}

// seconds is a number of units.
func seconds(v string, unit time.Duration) (*time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(n) {
		return nil, false
	}
	return notBefore(time.Duration(min(max(n, 0)*float64(unit), float64(maxWait)))), true
}

// reset is how long a limit needs, from a header that is a date, a duration or a
// number of seconds.
func reset(v string, now time.Time, dated bool) *time.Duration {
	if t, err := time.Parse(time.RFC3339, v); err == nil && dated {
		return notBefore(t.Sub(now))
	}
	if d, err := time.ParseDuration(v); err == nil {
		return notBefore(d)
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil && n < 1e6 { // a larger one is a date
		d, _ := seconds(v, time.Second)
		return d
	}
	return nil
}
