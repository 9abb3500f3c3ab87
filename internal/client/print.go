package client

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/lazy"
)

// Print is a Watcher that writes one line for each step, for people. It breaks lines
// that are longer than width characters between words; 0 breaks none.
func Print(out io.Writer, width int) Watcher { return Printer{Out: out, Width: width}.Watcher() }

// Printer writes what a Watcher is told, for people.
type Printer struct {
	Out   io.Writer
	Width int // characters of a line; 0: lines are not broken
	// Now is the time before a line about something that has no time of its own; nil: no line
	// has a time. An event of a run has one, and so has the end of a task.
	Now func() time.Time
	// Paint colours a line, which is inert, by what it is: task, run, agent, output, pull,
	// server, + and - for lines that an agent adds and removes; nil: no colours.
	Paint func(what, text string) string
	// Short makes the ids in a command short; nil: they are whole.
	Short func(command string) string
	// Page is the address of the page of an object; nil: none are shown.
	Page func(noun, id string) string
	// Other is the line of an event of a kind that there are no words for; nil: the kind.
	Other func(Event) string
}

// Watcher is the Watcher that prints.
func (p Printer) Watcher() Watcher {
	var at time.Time // of what is printed; zero: now
	line := func(what, text string) {
		if what == "output" { // its shape is what a program meant
			p.line(at, what, what, inert.Indented(expanded(text)))
			return
		}
		p.line(at, what, what, Inert(text))
	}
	var who string           // the source of text
	var text strings.Builder // its output since the last line end
	var begun time.Time      // when text began
	rest := func() {
		of := at
		at = begun
		line(who, text.String())
		text.Reset()
		at = of
	}
	hear := func(what, chunk string) {
		if what != who && text.Len() > 0 {
			rest()
		}
		if text.Len() == 0 {
			begun = at
		}
		who = what
		for {
			whole, left, ended := strings.Cut(chunk, "\n")
			text.WriteString(whole)
			if !ended {
				if text.Len() > mostHeld {
					rest()
				}
				return
			}
			whole = text.String()
			text.Reset()
			if chunk = left; Inert(whole) != "" || what == "output" {
				line(what, whole)
			}
		}
	}
	say := func(what, format string, a ...any) {
		if text.Len() > 0 {
			rest()
		}
		line(what, fmt.Sprintf(format, a...))
	}
	diffs, tools := shownDiffs{}, shownTools{}
	// whole is a line to copy from, which the terminal breaks if it has to: the end of a line there is none of its own.
	whole := func(what, before, copied string) {
		if text.Len() > 0 {
			rest()
		}
		q := p
		q.Width = 0
		q.line(at, what, what, Inert(before+copied))
	}
	then := func(what, command string) {
		if p.Short != nil {
			command = p.Short(command)
		}
		whole(what, "then: ", command)
	}
	page := func(what, noun, id string) {
		if p.Page != nil && id != "" {
			whole(what, "see ", p.Page(noun, id))
		}
	}
	return Watcher{
		State: func(t Task) {
			if at = (time.Time{}); t.Ended() && t.FinishedAt != nil {
				at = *t.FinishedAt
			}
			s := strings.ReplaceAll(t.Status, "_", " ")
			if t.Stuck {
				s += ", stuck"
			}
			if t.FailureKind != nil && (t.Stuck || t.Status == "failed" || t.Status == "pending" || t.Status == "held") {
				s += ", after " + strings.ReplaceAll(*t.FailureKind, "_", " ")
				if t.Failure != nil && *t.Failure != "" {
					s += ": " + *t.Failure
				}
			}
			say("task", "%s", s)
			for _, h := range t.Holds {
				say("task", "waits %s, until %s", Reason(h.Reason), h.Clear.Plain(h.ClearsWhen))
				if command := h.Clear.Command(); command != "" {
					then("task", command)
				}
				if id := h.Clear.Blocker(); id != "" {
					page("task", "blocker", id)
				}
			}
		},
		Event: func(_ Task, e Event) {
			at = e.At
			if e.Kind == "run.accepted" { // the calls of another run have the same ids
				clear(tools)
				clear(diffs)
			}
			u := updateOf(e)
			if chunk, ok := u.said(); ok {
				hear("agent", chunk)
				return
			}
			tool := tools.tell(u)
			line := describe(e)
			if tool.does != "" {
				line = tool.does
			}
			if line == e.Kind && p.Other != nil {
				line = p.Other(e)
			}
			if line != "" {
				say("run", "%s", line)
			}
			if tool.output != "" {
				hear("output", tool.output)
			}
			if edits := diffs.edited(u); len(edits) > 0 {
				say("edit", "%s", edits[0].text)
				for _, l := range edits[1:] {
					p.line(at, l.what, "", Inert(expanded(l.text)))
				}
			}
			if tool.ended != "" {
				say("failed", "%s", tool.ended)
			}
		},
		Pull: func(pr Pull) {
			at = pr.endedAt()
			checks := "checks " + pr.Checks
			if pr.Checks == "none" {
				checks = "no checks"
			}
			name := ""
			if pr.Number > 0 { // its code host has given it one
				name = fmt.Sprintf("#%d ", pr.Number)
			}
			say("pull", "%s%s, head %.10s, %s", name, pr.State, pr.HeadSHA, checks)
			if a := pr.PendingAction; a != nil && a.State == "pending" {
				say("pull", "%s waits for approval", a.Kind)
				then("pull", "yardmaster pr approve "+Word(pr.name()))
				if asks := pr.Warning(); asks != "" {
					say("pull", "%s", asks)
				} else if p.Page != nil && a.Question != "" {
					say("pull", "asked: %s", a.Question)
				}
				page("pull", "pr", pr.ID)
			}
		},
		Rest: func() {
			if text.Len() > 0 {
				rest()
			}
		},
		Lost: func(err error) {
			at = time.Time{}
			say("server", "%v; trying again", err)
		},
		Back: func() {
			at = time.Time{}
			say("server", "answers again")
		},
	}
}

// mostHeld is the most bytes of a line that are held back until its end comes.
const mostHeld = 64 << 10

// line writes an inert line, broken where it is too long. label stands before it, and before
// that the time at which it happened, with the date where that is long ago; zero is now.
func (p Printer) line(happened time.Time, what, label, text string) {
	at := ""
	if p.Now != nil {
		now, form := p.Now(), time.TimeOnly
		if happened.IsZero() {
			happened = now
		}
		if ago := now.Sub(happened); ago > 12*time.Hour || ago < -12*time.Hour {
			form = time.DateTime
		}
		at = happened.Local().Format(form)
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))] // of each part
	for part := range Broken(text[len(indent):], p.Width-len(margin)-len(at)-len(indent)) {
		if part = indent + part; p.Paint != nil {
			part = p.Paint(what, part)
		}
		if _, err := fmt.Fprintln(p.Out, strings.TrimRight(fmt.Sprintf("%s  %-9s %s", at, label, part), " ")); err != nil {
			return // nobody reads on
		}
		label, at = "", strings.Repeat(" ", len(at))
	}
}

// mostLines is the number of lines that are shown of one edit of an agent.
const mostLines = 40

// editLine is a line of an edit: what it is (+, - or a path) and its text.
type editLine struct{ what, text string }

// shownDiffs are the calls of tools that go on and whose diff is printed. Some agents report a diff when a call
// begins, and again when it is completed; others only then.
type shownDiffs map[string]bool

// mostDiffs is the largest number of calls that are kept: an agent does not have to end what it begins.
const mostDiffs = 1000

// edited are the edits of files that an agent reports and that were not printed: the path first, then the lines
// that it removes and adds.
func (s shownDiffs) edited(u *update) (out []editLine) {
	if !u.ofTool() {
		return nil
	}
	ends := u.Update == "tool_call_update" && u.Status == "completed"
	if ends && s[u.ID] {
		delete(s, u.ID)
		return nil
	}
	out = diffLines(u.Content)
	if len(out) > 0 && !ends && len(s) < mostDiffs {
		s[u.ID] = true
	}
	return out
}

func diffLines(content content) (out []editLine) {
	for _, c := range content {
		if c.Type != "diff" {
			continue
		}
		out = append(out, editLine{"edit", c.Path})
		var old []string
		if c.Old != nil {
			old = strings.Split(strings.TrimSuffix(*c.Old, "\n"), "\n")
		}
		now := strings.Split(strings.TrimSuffix(c.New, "\n"), "\n")
		// Lines at the beginning and the end that are the same are left out.
		for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			old, now = old[1:], now[1:]
		}
		for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
			old, now = old[:len(old)-1], now[:len(now)-1]
		}
		n := 0
		for _, side := range []struct {
			what  string
			lines []string
		}{{"-", old}, {"+", now}} {
			for _, l := range side.lines {
				if n++; n > mostLines {
					continue
				}
				out = append(out, editLine{side.what, side.what + " " + l})
			}
		}
		if n > mostLines {
			out = append(out, editLine{"edit", fmt.Sprintf("and %d lines more", n-mostLines)})
		}
	}
	return out
}

const margin = "  agent     "

// Broken breaks a line between words into parts of at most width characters; a
// longer word remains whole. A width under 20 breaks nothing. Each part takes the time of
// its own length, and none is made that is not asked for.
func Broken(line string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for width >= 20 {
			end := 0 // of the first width+1 characters
			for range width + 1 {
				if end == len(line) { // there are no more than width
					yield(line)
					return
				}
				_, size := utf8.DecodeRuneInString(line[end:])
				end += size
			}
			at := strings.LastIndexByte(line[:end], ' ')
			if at <= 0 {
				if at = strings.IndexByte(line, ' '); at <= 0 {
					break
				}
			}
			if !yield(strings.TrimRight(line[:at], " ")) {
				return
			}
			line = strings.TrimLeft(line[at:], " ")
		}
		yield(line)
	}
}

// Inert is untrusted text for one line of a terminal.
func Inert(s string) string { return inert.Line(s) }

// plainWord are the characters that no shell reads as more than themselves. A number sign
// begins a comment, and an equals sign the name of a program, where a word begins with it.
var plainWord = lazy.New(`^([\pL\pN_./:@,+-][\pL\pN_./:@,+=#-]*)?$`)

// Plain tells whether a text is one word of a command line as it is, or none.
func Plain(s string) bool { return plainWord.MatchString(s) }

// Word is untrusted text as one word of a command line that a person may copy into a
// shell; "" stays empty.
func Word(s string) string {
	s = Inert(s)
	if Plain(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// InertLines is untrusted text of several lines.
func InertLines(s string) string { return inert.Lines(s) }

// Escape is untrusted text for a terminal, with all of its lines and characters.
func Escape(s string) string { return inert.Escape(s) }
