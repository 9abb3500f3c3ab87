package agent

import (
	"bytes"
	"yardmaster/internal/agent/spool"
)

type words []string

func scrubber(secrets []string) spool.Scrubber { return words(secrets) }

func (w words) Scrub(b []byte) []byte {
	for _, s := range w {
		if s != "" {
			b = bytes.ReplaceAll(b, []byte(s), []byte("[redacted]"))
		}
	}
	return b
}
func (w words) Partial(b []byte) int { return 0 }
