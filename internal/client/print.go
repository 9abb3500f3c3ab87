package client

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
)

// Print is a Watcher that writes one line for each step, for people. It breaks lines
// that are longer than width characters between words; 0 breaks none.
func Print(out io.Writer, width int) Watcher {
	line := func(what, text string) {
		for i, part := range broken(Inert(text), width-len(margin)) {
			if i > 0 {
				what = ""
			}
			fmt.Fprintf(out, "  %-9s %s\n", what, part)
		}
	}
	var who, text string // the source of text, and its output since the last line end
	hear := func(what, chunk string) {
		if what != who && text != "" {
			line(who, text)
			text = ""
		}
		who = what
		text += chunk
		for {
			whole, rest, ended := strings.Cut(text, "\n")
			if !ended {
				return
			}
			if text = rest; Inert(whole) != "" {
				line(what, whole)
			}
		}
	}
	say := func(what, format string, a ...any) {
		if text != "" {
			hear(who, "\n")
		}
		line(what, fmt.Sprintf(format, a...))
	}
	return Watcher{
		State: func(t Task) {
			s := t.Status
			if t.Stuck {
				s += ", stuck"
			}
			if t.FailureKind != nil && (t.Stuck || t.Status == "failed" || t.Status == "pending" || t.Status == "held") {
				s += ", after " + *t.FailureKind
				if t.Failure != nil && *t.Failure != "" {
					s += ": " + *t.Failure
				}
			}
			say("task", "%s", s)
			for _, h := range t.Holds {
				say("task", "waits: %s, until %s", h.Reason, h.ClearsWhen)
				if command := h.Clear.Command(); command != "" {
					say("task", "then: %s", command)
				}
			}
		},
		Event: func(_ Task, e Event) {
			if chunk, ok := agentText(e); ok {
				hear("agent", chunk)
				return
			}
			if chunk, ok := toolOutput(e); ok {
				hear("output", chunk)
				return
			}
			if line := describe(e); line != "" {
				say("run", "%s", line)
			}
		},
		Pull: func(p Pull) {
			checks := "checks " + p.Checks
			if p.Checks == "none" {
				checks = "no checks"
			}
			say("pull", "#%d %s, head %.10s, %s", p.Number, p.State, p.HeadSHA, checks)
			if p.PendingAction != nil && p.PendingAction.State == "pending" {
				say("pull", "%s waits for approval: yardmaster pr approve %s", p.PendingAction.Kind, p.ID)
				if asks := p.Warning(); asks != "" {
					say("pull", "%s", asks)
				}
			}
		},
		Lost: func(err error) { say("server", "%v; trying again", err) },
	}
}

const margin = "  agent     "

// broken breaks a line between words into parts of at most width characters; a
// longer word remains whole. A width under 20 breaks nothing.
func broken(line string, width int) (parts []string) {
	if width < 20 {
		return []string{line}
	}
	for utf8.RuneCountInString(line) > width {
		r := []rune(line)
		at := strings.LastIndexByte(string(r[:width+1]), ' ')
		if at <= 0 {
			if at = strings.IndexByte(line, ' '); at <= 0 {
				break
			}
		}
		parts = append(parts, strings.TrimRight(line[:at], " "))
		line = strings.TrimLeft(line[at:], " ")
	}
	return append(parts, line)
}

// Inert is untrusted text for one line of a terminal.
func Inert(s string) string { return inert.Line(s) }

// Escape is untrusted text for a terminal, with all of its lines and characters.
func Escape(s string) string { return inert.Escape(s) }

func agentText(e Event) (string, bool) {
	var u struct {
		Update  string `json:"sessionUpdate"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if e.Kind != "agent.update" || json.Unmarshal(e.Data, &u) != nil || u.Update != "agent_message_chunk" {
		return "", false
	}
	return u.Content.Text, true
}

// toolOutput is the latest output of a running tool.
func toolOutput(e Event) (string, bool) {
	var u struct {
		Update string `json:"sessionUpdate"`
		Meta   struct {
			Output *struct {
				Data string `json:"data"`
			} `json:"terminal_output_delta"`
		} `json:"_meta"`
	}
	if e.Kind != "agent.update" || json.Unmarshal(e.Data, &u) != nil || u.Update != "tool_call_update" || u.Meta.Output == nil {
		return "", false
	}
	return u.Meta.Output.Data, true
}

// describe summarises an event in one line; empty for an event that is not shown.
func describe(e Event) string {
	var d struct {
		Base, Resume, Agent, Version, Model, Isolation, SHA, Ref, State, Error string
		Update                                                                 string `json:"sessionUpdate"`
		Title                                                                  string
		Kind                                                                   string
		FailureKind                                                            string   `json:"failure_kind"`
		Holds                                                                  []string `json:"isolation_holds"`
		WIP                                                                    bool
		InputTokens                                                            int64 `json:"input_tokens"`
		OutputTokens                                                           int64 `json:"output_tokens"`
	}
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) != nil {
		return e.Kind
	}
	switch e.Kind {
	case "run.accepted":
		return "claimed and accepted by the box"
	case "prepared":
		s := fmt.Sprintf("checked out %.10s", d.Base)
		if d.Resume != "" {
			s += ", saved work of an earlier attempt"
		}
		return s
	case "started":
		s := strings.TrimSpace("agent " + d.Agent + " " + d.Version)
		if s += " started"; d.Model != "" {
			s += ", model " + d.Model
		}
		if s += ", isolation " + or(d.Isolation, "none"); len(d.Holds) > 0 {
			s += ", which holds " + strings.Join(d.Holds, ", ")
		}
		return s
	case "agent.update":
		if d.Update == "tool_call" {
			return fmt.Sprintf("tool: %s", or(d.Title, d.Kind))
		}
		return ""
	case "usage":
		return fmt.Sprintf("tokens: %d in, %d out", d.InputTokens, d.OutputTokens)
	case "git.pushed":
		s := fmt.Sprintf("pushed %.10s to %s", d.SHA, strings.TrimPrefix(d.Ref, "refs/heads/"))
		if d.WIP {
			s += " (unfinished work)"
		}
		return s
	case "run.halting":
		return strings.TrimSuffix("stopping the agent: "+d.FailureKind, ": ")
	case "run.finished":
		s := "finished: " + d.State
		if d.FailureKind != "" {
			s += ", " + d.FailureKind
		}
		if d.Error != "" {
			s += ": " + d.Error
		}
		return s
	case "preparing", "agent.permission":
		return ""
	}
	return e.Kind
}

func or(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}
