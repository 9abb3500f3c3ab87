package github

import (
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Effect is what a fault does to a request.
type Effect int

// The effects of faults.
const (
	Lose     Effect = iota // the work is done, and the connection ends without an answer
	Fail                   // 502 without doing the work
	FailLate               // 502 after the work was done
	Stall                  // the answer waits for Fault.Delay
	Throttle               // a secondary limit, with Retry-After if Fault.Delay is not 0
	Exhaust                // the primary limit, which ends after Fault.Delay
	Hold                   // the answer waits until Fault.Until is closed
)

// Fault goes wrong for requests that match.
type Fault struct {
	// Operation is such as "PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge", or of git
	// "info/refs", "git-upload-pack" and "git-receive-pack"; empty: all.
	Operation string
	Path      *regexp.Regexp // of the request; nil: all
	Body      *regexp.Regexp // of the request; nil: all
	Effect    Effect
	Status    int // instead of 502
	Delay     time.Duration
	Until     <-chan struct{}
	Reached   func() // is called for each request that it is applied to
	Times     int    // 0: until it is cleared

	seen int
}

// Break adds a fault. The first that matches a request is applied.
func (s *Server) Break(f Fault) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
	return &f
}

// Mend ends all faults.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Seen is how many requests a fault was applied to.
func (s *Server) Seen(f *Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.seen
}

// fault returns a copy of the fault of a request, or nil, and counts it.
func (s *Server) fault(operation string, r *http.Request, body []byte) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if (f.Operation == "" || f.Operation == operation) && (f.Path == nil || f.Path.MatchString(r.URL.Path)) &&
			(f.Body == nil || f.Body.Match(body)) && (f.Times == 0 || f.seen < f.Times) {
			f.seen++
			if f.Reached != nil {
				f.Reached()
			}
			one := *f
			return &one
		}
	}
	return nil
}

// instead answers a request that the fault keeps from being carried out.
func (f *Fault) instead(w http.ResponseWriter, r *http.Request, now time.Time) bool {
	status := f.Status
	if status == 0 {
		status = http.StatusBadGateway
	}
	switch f.Effect {
	case Fail:
		http.Error(w, `<html><body><h1>Whoa there!</h1></body></html>`, status)
		return true
	case Throttle:
		if f.Delay > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.Delay/time.Second)))
		}
		plain(w, http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		return true
	case Exhaust:
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Used", "5000")
		w.Header().Set("X-RateLimit-Resource", "core")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(now.Add(f.Delay).Unix(), 10))
		plain(w, http.StatusForbidden, "API rate limit exceeded.")
		return true
	case Stall:
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	case Hold:
		select {
		case <-f.Until:
		case <-r.Context().Done():
		}
	}
	return false
}

// plain answers an error outside of a call.
func plain(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"message":` + strconv.Quote(message) + `,"documentation_url":"` + manual + `"}`))
}
