package op

import (
	"strings"

	"yardmaster/internal/client/inert"
)

const noAddress = "must be an e-mail address"

// IsAddress tells whether a text has the form of an address of a mailbox, as people can read
// it, and is no other address than it looks: it has no name, no comment and no quotes.
// Whether a mail server takes it shows when it is tried.
func IsAddress(s string) bool {
	box, host, ok := strings.Cut(s, "@")
	return ok && box != "" && host != "" && !strings.ContainsAny(box, " <>\"()") && !strings.ContainsAny(host, " <>\"()@") &&
		inert.Line(s) == s
}
