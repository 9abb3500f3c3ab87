package mail

import (
	"strings"

	"yardmaster/internal/client/inert"
)

// IsAddress tells whether a text has the form of an address of a mailbox, as people can read
// it. Whether a mail server takes it shows when it is tried.
func IsAddress(s string) bool {
	box, host, ok := strings.Cut(s, "@")
	return ok && box != "" && host != "" && !strings.ContainsAny(s, " <>\"") && inert.Line(s) == s
}
