package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// update is what an agent tells: a piece of its text, or something of a call of a tool.
type update struct {
	Update  string          `json:"sessionUpdate"`
	ID      string          `json:"toolCallId"`
	Title   string          `json:"title"`
	Kind    string          `json:"kind"`
	Status  string          `json:"status"`
	Content content         `json:"content"`
	Input   json.RawMessage `json:"rawInput"`
	Ended   json.RawMessage `json:"rawOutput"`
	Meta    struct {
		Output *struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
		Exit *exited `json:"terminal_exit"`
	} `json:"_meta"`
}

// content is the list of what a tool answers, or the one piece of an agent's text.
type content []part

// part is a piece of text, what a tool prints, or the change of a file.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Content struct {
		Text string `json:"text"`
	} `json:"content"`
	Path string  `json:"path"`
	Old  *string `json:"oldText"`
	New  string  `json:"newText"`
}

// UnmarshalJSON reads a list of parts, or one.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		*c = make(content, 1)
		return json.Unmarshal(b, &(*c)[0])
	}
	return json.Unmarshal(b, (*[]part)(c))
}

// updateOf is what an event of an agent tells, read once for all that show a part of it; nil for every other event.
func updateOf(e Event) *update {
	var u update
	if e.Kind != "agent.update" || json.Unmarshal(e.Data, &u) != nil {
		return nil
	}
	return &u
}

// said is a piece of the agent's text.
func (u *update) said() (string, bool) {
	if u == nil || u.Update != "agent_message_chunk" {
		return "", false
	}
	if len(u.Content) == 0 {
		return "", true
	}
	return u.Content[0].Text, true
}

// ofTool tells whether an update is about a call of a tool.
func (u *update) ofTool() bool {
	return u != nil && (u.Update == "tool_call" || u.Update == "tool_call_update")
}

// exited is what a program ended with, in the two spellings of agents.
type exited struct {
	Code  *int `json:"exit_code"`
	Camel *int `json:"exitCode"`
}

// command is the command line that a call runs; "" if it says none.
func (u *update) command() string {
	var in struct {
		Command json.RawMessage `json:"command"`
	}
	if json.Unmarshal(u.Input, &in) != nil {
		return ""
	}
	var text string
	var words []string
	switch {
	case json.Unmarshal(in.Command, &text) == nil:
		return text
	case json.Unmarshal(in.Command, &words) == nil:
		return strings.Join(words, " ")
	}
	return ""
}

// exit is what the program of a call ended with.
func (u *update) exit() (code int, known bool) {
	var of exited
	if u.Meta.Exit != nil {
		of = *u.Meta.Exit
	} else if json.Unmarshal(u.Ended, &of) != nil {
		return 0, false
	}
	for _, c := range []*int{of.Code, of.Camel} {
		if c != nil {
			return *c, true
		}
	}
	return 0, false
}

// shownTools are the calls that go on, by their ids: what was shown of each.
type shownTools map[string]*shownTool

type shownTool struct {
	title   string
	runs    bool            // whether the title is a command line, in place of which none comes that is less
	printed strings.Builder // grows with each piece of what a program prints
}

// toolTold is what an update of a call shows: a line about what it does, its output that was not shown, and how it
// ended.
type toolTold struct{ does, output, ended string }

// tell notes an update of a call and answers what it shows. Some agents name a call by its tool and say only later
// what it runs; some repeat in each update what was printed before.
func (s shownTools) tell(u *update) (out toolTold) {
	if !u.ofTool() {
		return out
	}
	of := s[u.ID]
	if of == nil {
		if of = (&shownTool{}); len(s) < mostDiffs {
			s[u.ID] = of
		}
	}
	runs := u.command()
	title := or(runs, u.Title)
	if u.Update == "tool_call" {
		title = or(title, u.Kind)
	}
	if title != "" && title != of.title && (runs != "" || !of.runs) {
		out.does, of.title, of.runs = "tool: "+title, title, runs != ""
	}
	if u.Meta.Output != nil {
		out.output = u.Meta.Output.Data
		of.printed.WriteString(out.output)
	}
	var all strings.Builder
	for _, c := range u.Content {
		if c.Type == "content" {
			all.WriteString(c.Content.Text)
		}
	}
	if text, had := all.String(), of.printed.String(); text != "" && strings.TrimSpace(text) != strings.TrimSpace(had) {
		fresh, _ := strings.CutPrefix(text, had)
		of.printed.Reset()
		of.printed.WriteString(text)
		out.output += fresh
	}
	if u.Status != "completed" && u.Status != "failed" {
		return out
	}
	if out.output != "" && !strings.HasSuffix(out.output, "\n") {
		out.output += "\n"
	}
	delete(s, u.ID)
	switch code, known := u.exit(); {
	case known && (code != 0 || u.Status == "failed"):
		out.ended = fmt.Sprintf("failed, exit %d", code)
	case u.Status == "failed":
		out.ended = "failed: " + or(of.title, "the tool")
	}
	return out
}

// expanded is a line with spaces in the place of tabs, to each eighth column.
func expanded(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	at := 0
	for part := range strings.SplitAfterSeq(line, "\t") {
		text, tab := strings.CutSuffix(part, "\t")
		b.WriteString(text)
		at += utf8.RuneCountInString(text)
		if tab {
			n := 8 - at%8
			b.WriteString(strings.Repeat(" ", n))
			at += n
		}
	}
	return b.String()
}
