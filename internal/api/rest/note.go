package rest

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"yardmaster/internal/observe"
)

// redacted stands in a record where a path has a secret.
const redacted = "[redacted]"

// shortestSecret is how many characters a secret has at least that a caller puts
// where none belongs.
const shortestSecret = 16

// note tells the record of a request which route it came to, empty for none, and
// its path less what the path tells of secrets. A path that may hold one
// besides is left to be scrubbed.
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

// parameter is the name of the path parameter that a segment of a pattern is,
// empty if it is none.
func parameter(segment string) string {
	if !strings.HasPrefix(segment, "{") {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(segment, "{}"), "...")
}

func (s *server) isSecret(segment string) bool {
	return slices.Contains(s.SecretParameters, parameter(segment))
}

// redact is a path of the pattern without the values of parameters that are
// secrets.
func (s *server) redact(pattern, p string) string {
	shape, is := strings.Split(pattern, "/"), strings.Split(p, "/")
	for i := range min(len(shape), len(is)) {
		if s.isSecret(shape[i]) {
			is[i] = redacted
		}
	}
	return strings.Join(is, "/")
}

// behindSecret is a path that no pattern matches, without what follows the place
// where a pattern has a secret; empty if it leads past no such place.
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
