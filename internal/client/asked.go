package client

import "strings"

// asked begins the message by which an agent is told the answers to its questions.
const asked = "You asked: "

// answersIn are the answers in such a message, without what is for the agent alone.
func answersIn(text string) (all []string) {
	more := false // the line before is of an answer
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if answer, is := strings.CutPrefix(line, "A person "); is {
			all, more = append(all, "a person "+answer), strings.HasPrefix(answer, "answers: ")
			continue
		}
		for _, begins := range []string{asked, "The MCP server ", "What is new is not in your environment yet.", "Go on with the task."} {
			more = more && !strings.HasPrefix(line, begins)
		}
		if more {
			all[len(all)-1] += " " + line
		}
	}
	return all
}
