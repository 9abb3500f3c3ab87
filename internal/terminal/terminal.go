// Package terminal shows things to people on a terminal, and asks them: tables that fit,
// ages, colours where they are wanted, a picker, an editor, and the progress of what
// takes long. Text that strangers may have written is made inert on its way.
//
//	terminal.go  what the terminal can do, and colours
//	table.go     tables that fit its width
//	age.go       times as ages
//	pick.go      a choice among rows
//	edit.go      texts from an editor, a file or standard input
//	progress.go  what goes on while a person waits
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Screen is where text for people goes: its width, and whether it takes colours.
type Screen struct {
	Width  int  // columns; 0: no terminal, nothing is cut
	Colour bool // escape sequences for colours are written
	Live   bool // a terminal that can be drawn anew
}

// Of is what a file is as a screen. Colours are written to terminals alone, unless the
// environment says NO_COLOR (no-color.org) or has a dumb terminal.
func Of(f *os.File, env func(string) string) Screen {
	if !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	s := Screen{Width: 80, Live: env("TERM") != "dumb"}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		s.Width = n
	}
	s.Colour = s.Live && env("NO_COLOR") == ""
	return s
}

// Interactive tells whether a person can be asked: standard input and standard error
// are terminals.
func Interactive() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
}

// Tone is what a word means to the reader, whatever the word is.
type Tone int

// The tones, in the order of urgency.
const (
	Plain   Tone = iota
	Off          // it is over, and nothing came of it
	Wait         // it waits for its turn
	Run          // it goes on by itself
	Good         // it came out well
	Ask          // it waits for a person
	Bad          // it went wrong
	Strong       // a heading
	Faint        // of less weight
	Added        // a line that was added
	Removed      // a line that was removed
)

// codes are the parameters of the sequence that begins a tone (ECMA-48, SGR).
var codes = map[Tone]string{
	Off: "2", Wait: "2", Run: "34", Good: "32", Ask: "33", Bad: "31", Strong: "1", Faint: "2", Added: "32", Removed: "31",
}

// tones are the words for states, of every noun.
var tones = map[string]Tone{
	"pending": Wait, "waiting": Wait, "queued": Wait, "enrolled": Wait, "stored": Wait, "unread": Ask, "paused": Wait, "read": Off,
	"claimed": Run, "running": Run, "awaiting_ci": Run, "fixing_ci": Run, "drafting": Run, "batched": Run, "active": Run,
	"merging": Run, "draining": Run, "preparing": Run, "triaging": Run, "checking": Run, "testing": Run,
	"held": Ask, "awaiting_review": Ask, "mergeable": Ask, "escalated": Ask, "open": Ask, "blocked": Ask, "stalled": Ask, "stuck": Ask,
	"completed": Good, "merged": Good, "done": Good, "passed": Good, "online": Good, "resolved": Good, "answered": Good,
	"approved": Good, "triaged": Good, "ok": Good, "verified": Good, "healthy": Good, "applied": Good, "submitted": Good, "filed": Good,
	"failed": Bad, "lost": Bad, "revoked": Bad, "exhausted": Bad, "offline": Bad, "unfit": Bad, "unhealthy": Bad, "conflict": Bad,
	"invalid": Bad, "rejected": Bad,
	"cancelled": Off, "skipped": Off, "withdrawn": Off, "expired": Off, "dropped": Off, "closed": Off, "archived": Off, "drained": Off,
	"none": Off,
}

// ToneOf is the tone of a word for a state; Plain for a word that has none.
func ToneOf(state string) Tone { return tones[state] }

// Paint is text in a tone. The text must be inert.
func (s Screen) Paint(t Tone, text string) string {
	code := codes[t]
	if !s.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Enter goes to the terminal's other screen, if it has one that can be drawn anew. What the
// first one shows, and showed before, stays as it is. leave goes back to it.
func (s Screen) Enter(f *os.File) (leave func()) {
	restore := keepOutput(int(f.Fd()))
	s.control(f, "\x1b[?1049h")
	return func() { s.control(f, "\x1b[?1049l"); restore() }
}

// Clear puts the cursor into the first column of the first line and empties the screen,
// if that can be done, for what is drawn again.
func (s Screen) Clear(w io.Writer) { s.control(w, "\x1b[H\x1b[2J") }

func (s Screen) control(w io.Writer, sequence string) {
	if s.Live && s.Width > 0 {
		_, _ = io.WriteString(w, sequence)
	}
}
