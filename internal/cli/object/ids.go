package object

import (
	"strings"

	"yardmaster/internal/lazy"
)

// WholeID matches an id and nothing else, IDIn an id in a text.
var (
	WholeID = lazy.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	IDIn    = lazy.New(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// Few is the number of characters of a short id.
const Few = 8

// Short is the part of an id by which people name it: the beginning, or the end of an id
// that begins with its time (UUIDv7), which those of one minute share.
func Short(id string) string { return Part(id, Few) }

// Part is Short with n characters. What is no id is its own part.
func Part(id string, n int) string {
	switch {
	case !WholeID.MatchString(id):
		return id
	case id[14] == '7':
		return id[len(id)-n:]
	}
	return strings.TrimSuffix(id[:n], "-")
}
