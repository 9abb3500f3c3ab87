package rest

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"yardmaster/internal/observe"
)

// redacted replaces a secret of a path in a record.
const redacted = "[redacted]"

// shortestSecret is the length from which a segment of a path may be a secret that a
// caller put into a wrong place, in characters.
const shortestSecret = 16

// note writes the pattern of the route into the record of a request, empty for none,
// and the path without its secrets. It leaves out a path that may hold a secret in
// another place; telemetry.Observer scrubs it.
func (s *server) note(req *http.Request, pattern string) {
	r := observe.Of(req.Context())
	r.Surface, r.Pattern = "rest", pattern
	switch {
	case slices.Contains(s.secretive, pattern):
		r.Path = s.redact(pattern, req.URL.Path)
	case pattern == "":
		r.Path = s.behindSecret(req.URL.Path)
	case isPlain(req.URL.Path):
		r.Path = req.URL.Path
	}
}

// parameter returns the name of the path parameter that a segment of a pattern stands
// for, empty if it is none.
func parameter(segment string) string {
	if !strings.HasPrefix(segment, "{") {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(segment, "{}"), "...")
}

func (s *server) isSecret(segment string) bool {
	return slices.Contains(s.SecretParameters, parameter(segment))
}

// redact returns a path that matches the pattern, without the values of parameters that
// are secrets.
func (s *server) redact(pattern, p string) string {
	shape, is := strings.Split(pattern, "/"), strings.Split(p, "/")
	for i := range min(len(shape), len(is)) {
		if s.isSecret(shape[i]) {
			is[i] = redacted
		}
	}
	return strings.Join(is, "/")
}

// behindSecret returns a path that no pattern matches, cut at the place where a pattern
// has a secret; empty if the path has no such place.
func (s *server) behindSecret(p string) string {
	p = path.Clean(p)
	for _, pattern := range s.secretive {
		shape, is := strings.Split(pattern, "/"), strings.Split(p, "/")
		for i := range min(len(shape), len(is)) {
			if s.isSecret(shape[i]) {
				return strings.Join(shape[:i], "/") + "/" + redacted
			}
			if parameter(shape[i]) == "" && !strings.EqualFold(shape[i], is[i]) {
				break
			}
		}
	}
	return ""
}

// isPlain tells whether every segment of a path is short or an id.
func isPlain(p string) bool {
	run, id := 0, true
	for i := range len(p) {
		switch c := p[i]; {
		case c == '/':
			run, id = 0, true
			continue
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c == '-':
		default:
			id = false
		}
		if run++; run >= shortestSecret && !id {
			return false
		}
	}
	return true
}
