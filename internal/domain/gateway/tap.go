package gateway

import "yardmaster/internal/llm"

// Taps keeps copies of the calls of accounts that want them.
type Taps interface {
	// Keep returns what takes the copy of a call of an account in a session; nil: the
	// account keeps none. It must not wait.
	Keep(account, session string, t llm.Tapped) llm.Copy
}

// Keep implements llm.Tap.
func (s *Service) Keep(g llm.Grant, t llm.Tapped) llm.Copy {
	o, ok := g.Session.(owner)
	if !ok {
		return nil
	}
	return s.Taps.Keep(o.account, o.session, t)
}
