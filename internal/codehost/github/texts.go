package github

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

// longest is the length at which a text is cut, in bytes. GitHub refuses a body of more
// than 65,536 characters, and it is not said everywhere what a character is.
const longest = 60000

const cutNote = "\n\n*The rest was cut: GitHub takes no longer text.*"

// cut shortens a text to what GitHub takes. It ends a block of code that it cuts.
func cut(s string) string { return cutAt(s, longest) }

func cutAt(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) <= most {
		return s
	}
	end := most - len(cutNote) - len("\n```")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	s = s[:end]
	if strings.Count("\n"+s, "\n```")%2 == 1 {
		s += "\n```"
	}
	return s + cutNote
}

// short is a title that GitHub takes: at most 255 characters.
func short(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if r := []rune(s); len(r) > 255 {
		return string(r[:254]) + "…"
	}
	return s
}

const markerHead = "<!-- ym:"

var markers = lazy.New(`\n*<!-- ym:[0-9A-Za-z-]{1,64} -->\s*$`)

// marker stands at the end of a text, where people do not see it, and says that a
// codehost.Once has had its effect. It counts only in texts of our own bot.
func marker(once codehost.Once) string { return markerHead + string(once) + " -->" }

// marked is a text as it is sent: cut, and with the marker of once unless that is "".
func marked(body string, once codehost.Once) string {
	body = strings.ReplaceAll(cut(body), markerHead, "<!-- ym-") // what is left never reads as one
	if once == "" {
		return body
	}
	return strings.TrimSpace(body + "\n\n" + marker(once))
}

// unmarked is a text of GitHub without our marker.
func unmarked(body string) string {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	return markers.ReplaceAllString(body, "")
}

// onceSkew is how much the clocks of the database and of GitHub may differ where GitHub
// says whose an object is.
const onceSkew = time.Hour

// carries tells whether a text of our own bot, of some time, is the effect of a
// codehost.Once: it has its marker, and is not older. Whoever may edit comments of the
// bot could add a marker, but not one that is not used yet: its id cannot be guessed.
func carries(body string, at time.Time, once codehost.Once) bool {
	return once != "" && strings.Contains(body, marker(once)) && !at.Before(since(once))
}

// since is when a codehost.Once was made, less an hour for clocks that differ; the zero
// time if its id does not tell.
func since(once codehost.Once) time.Time {
	u, err := uuid.Parse(string(once))
	if err != nil || u.Version() != 7 {
		return time.Time{}
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec).Add(-onceSkew).UTC()
}

// atoi is a number that a pattern has matched, or one in its place for "".
func atoi(s string, none int) int {
	if s == "" {
		return none
	}
	n, _ := strconv.Atoi(s)
	return n
}
