package client

import (
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/lazy"
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
			return "in " + distance(at.Sub(now))
		}
		return distance(now.Sub(at)) + " ago"
	})
}

// distance is a length of time in one unit, as ages in tables are.
func distance(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
