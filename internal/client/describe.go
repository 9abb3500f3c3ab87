package client

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Happened is the event of a frame of session.events; false if the frame is none.
func (f Frame) Happened() (Event, bool) {
	var e struct {
		Cursor string          `json:"cursor"`
		At     time.Time       `json:"at"`
		Kind   string          `json:"kind"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(f.Data, &e) != nil || e.Kind == "" {
		return Event{}, false
	}
	seq, _ := strconv.ParseInt(e.Cursor, 10, 64) // 0 where it is no number
	return Event{Seq: seq, At: e.At, Kind: e.Kind, Data: e.Data}, true
}

// describe summarises an event in one line; empty for an event that is not shown, and the kind for one that
// there are no words for.
func describe(e Event) string {
	var d struct {
		Base, Resume, Agent, Version, Model, Isolation, SHA, Ref, State, Error string
		Title                                                                  string
		Kind                                                                   string
		FailureKind                                                            string   `json:"failure_kind"`
		Holds                                                                  []string `json:"isolation_holds"`
		WIP                                                                    bool
		File, Reason, Question, Why, Text, Reply, Slug                         string
		Trigger, Detail, Outcome                                               string
		Pull                                                                   int64
		Answers                                                                []string
		Lacks                                                                  []struct{ Path, Reason string }
		More                                                                   int   `json:"more_lacks"`
		TookMS                                                                 int64 `json:"took_ms"`
		InputTokens                                                            int64 `json:"input_tokens"`
		OutputTokens                                                           int64 `json:"output_tokens"`
	}
	if e.Kind == "agent.update" { // see tools.go
		return ""
	}
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) != nil {
		return e.Kind
	}
	switch e.Kind {
	case "run.accepted":
		return "claimed and accepted by the box"
	case "environment":
		return environmentSaid(d.State, d.Why, d.TookMS)
	case "prepared":
		s := fmt.Sprintf("checked out %.10s", d.Base)
		if d.Resume != "" {
			s += ", saved work of an earlier attempt"
		}
		for i, l := range d.Lacks {
			s += map[bool]string{true: "; not in it: ", false: ", "}[i == 0] + l.Path + " (" + l.Reason + ")"
		}
		if d.More > 0 {
			s += fmt.Sprintf(" and %d others", d.More)
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
	case "usage":
		return fmt.Sprintf("tokens: %d in, %d out", d.InputTokens, d.OutputTokens)
	case "git.pushed":
		s := fmt.Sprintf("pushed %.10s to %s", d.SHA, strings.TrimPrefix(d.Ref, "refs/heads/"))
		if d.WIP {
			s += " (unfinished work)"
		}
		return s
	case "user.message":
		switch {
		case len(d.Answers) > 0:
			return strings.Join(d.Answers, "; ")
		case d.Text != "":
			return fmt.Sprintf("a person says (%s): %s", d.State, d.Text)
		case d.Reply != "":
			return "it answers the person: " + d.Reply
		}
		return "the message of a person is " + d.State
	case "ask.filed":
		return "filed an ask: " + d.Title
	case "action.proposed":
		return fmt.Sprintf("proposes to %s #%d: %s", d.Kind, d.Pull, d.Why)
	case "page.proposed":
		return "proposes a text for the page " + d.Slug + ": " + d.Why
	case "blocker.declared":
		return "needs a person: " + or(d.Question, d.Kind)
	case "outbox.refused":
		return d.File + " was refused: " + d.Reason
	case "command.refused":
		return "the box refused a command: " + or(d.Reason, d.Kind)
	case "run.parked":
		return "waits for a person"
	case "run.resumed":
		return "goes on"
	case "run.lease_lost":
		return "the box lost its lease"
	case "output.truncated":
		return "some output was left out"
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
	case "session.opened": // of a session without a run, as the next ones
		return strings.TrimSuffix("opened for "+or(d.Kind, d.Trigger)+", model "+d.Model, ", model ")
	case "prompt":
		return "the model is asked: " + d.Text
	case "answer":
		return "it answers: " + d.Text
	case "call.failed":
		return "a call of the model failed: " + d.Detail
	case "session.ended":
		return "ended: " + d.Outcome
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

// environmentSaid tells what became of the environment of a run.
func environmentSaid(state, why string, tookMS int64) string {
	switch state {
	case "making":
		return "the prepare script runs"
	case "ready":
		return fmt.Sprintf("the prepare script has made the environment ready in %.1f s", float64(tookMS)/1000)
	case "kept":
		return "the environment is there from an earlier run"
	case "skipped":
		return "no environment: " + why
	}
	return "the environment is not ready: " + why
}
