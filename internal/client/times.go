package client

import (
	"strings"
	"time"

	"yardmaster/internal/lazy"
	"yardmaster/internal/terminal"
)

// instant is a time of the API in a sentence, with the word before it that a distance does without.
var instant = lazy.New(`\b(?:at )?(\d{4}-\d\d-\d\dT[\d:.]+Z)`)

// Times is a sentence of the server with its times as distances from now: in 4m, 2h ago.
func Times(text string, now time.Time) string {
	return instant.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(found, "at "))
		switch {
		case err != nil:
			return found
		case at.After(now):
			return "in " + terminal.Age(at, now)
		}
		return terminal.Age(now, at) + " ago"
	})
}
