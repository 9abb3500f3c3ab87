package op

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"yardmaster/internal/client/inert"
)

const noAddress = "must be an e-mail address"

// IsAddress tells whether a text has the form of an address of a mailbox, as people can read
// it, and is no other address than it looks: it has no name, no comment and no quotes, and
// nothing that hides or turns around what is beside it. Its host is a name of the public kind:
// no address literal, no number, and nothing of this machine. Whether a mail server takes it
// shows when it is tried.
func IsAddress(s string) bool {
	box, host, ok := strings.Cut(s, "@")
	return ok && box != "" && len(box) <= 64 && utf8.ValidString(s) && !strings.ContainsAny(box, " <>\"()[]:;\\") && inert.Line(s) == s &&
		!strings.ContainsFunc(box, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) &&
		!strings.HasPrefix(box, ".") && !strings.HasSuffix(box, ".") && !strings.Contains(box, "..") && isMailHost(host)
}

// isMailHost tells whether a host is a domain name of two labels or more, none of which is
// empty, and the last of which is neither a number nor localhost.
func isMailHost(host string) bool {
	labels := strings.Split(strings.ToLower(norm.NFKC.String(host)), ".")
	for _, label := range labels {
		if label == "" || utf8.RuneCountInString(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }) {
			return false
		}
	}
	last := labels[len(labels)-1]
	first, _ := utf8.DecodeRuneInString(last)
	return len(labels) > 1 && len(host) <= 253 && unicode.IsLetter(first) && last != "localhost" && last != "localdomain"
}
