package answer

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

// again finds a wait in prose: "try again in 2m13s", "reset after 2m 13s", "retry after 27 seconds".
var again = lazy.New(`(?i)(?:try again|retry|resets?) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|d|h|m|s) ?)+|\d+(?:\.\d+)?(?: seconds?)?)`)

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
		if d, ok := units(v); ok {
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
		of, ok := usedUp(h, name)
		if !ok {
			continue
		}
		d := reset(h.Get(of), now, undated == nil)
		if d != nil && (longest == nil || *d > *longest) {
			longest = d
		}
	}
	return longest
}

// usedUp returns the header that tells when a limit is reset, if the named header says that
// the limit is used up.
func usedUp(h http.Header, name string) (reset string, ok bool) {
	v := h.Get(name)
	switch {
	case v == "0" && strings.Contains(name, "Remaining"):
		return strings.Replace(name, "Remaining", "Reset", 1), true
	case v == "rejected" && strings.HasSuffix(name, "-Status"): // Anthropic's, of a subscription
		return strings.TrimSuffix(name, "Status") + "Reset", true
	case strings.HasSuffix(name, "-Used-Percent"): // OpenAI's, of a subscription
		n, err := strconv.ParseFloat(v, 64)
		return strings.TrimSuffix(name, "Used-Percent") + "Reset-After-Seconds", err == nil && n >= 100
	}
	return "", false
}

// units is a duration with spaces between its parts, and days.
func units(v string) (time.Duration, bool) {
	v = strings.ReplaceAll(v, " ", "")
	days, rest, ok := strings.Cut(v, "d")
	if !ok {
		days, rest = "0", v
	}
	n, err := strconv.ParseFloat(days, 64)
	if rest == "" {
		rest = "0s"
	}
	d, err2 := time.ParseDuration(rest)
	return time.Duration(n*float64(24*time.Hour)) + d, err == nil && err2 == nil && n < 1000
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

// reset is how long a limit needs, from a header that is a date, a duration, a number of
// seconds, or one of seconds or milliseconds since 1970.
func reset(v string, now time.Time, dated bool) *time.Duration {
	if t, err := time.Parse(time.RFC3339, v); err == nil && dated {
		return notBefore(t.Sub(now))
	}
	if d, err := time.ParseDuration(v); err == nil {
		return notBefore(d)
	}
	n, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil:
	case n < 1e6:
		d, _ := seconds(v, time.Second)
		return d
	case !dated || n > 1e14:
	case n > 1e11: // a date, in milliseconds
		return notBefore(time.UnixMilli(int64(n)).Sub(now))
	default:
		return notBefore(time.Unix(int64(n), 0).Sub(now))
	}
	return nil
}
