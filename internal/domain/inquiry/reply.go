package inquiry

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/citation"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/secretscan"
)

// The most that a reply may have.
const (
	mostReply  = 20_000 // bytes
	mostClaims = 12
	mostClaim  = 400 // characters
	mostCites  = 3   // of a claim
	mostCited  = 40  // lines of a citation
)

// reply is what the model answers.
type reply struct {
	Claims []said `json:"claims"`
}

type said struct {
	Text      string   `json:"text"`
	Citations []string `json:"citations"`
}

// parse reads a reply, alone or in a fence.
func parse(text string) (r reply, ok bool) {
	text = strings.TrimSpace(text)
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		if body, closed := strings.CutSuffix(strings.TrimPrefix(rest, "json"), "```"); closed {
			text = strings.TrimSpace(body)
		}
	}
	if len(text) > mostReply || !strings.HasPrefix(text, "{") {
		return r, false
	}
	if err := json.Unmarshal([]byte(text), &r, json.RejectUnknownMembers(true)); err != nil || r.Claims == nil {
		return r, false
	}
	r.Claims = r.Claims[:min(len(r.Claims), mostClaims)]
	for i := range r.Claims {
		r.Claims[i].Text = inert.Line(r.Claims[i].Text)
	}
	return r, true
}

// judge finds the places that bear a sentence out; without any, why tells the model what is wrong.
func judge(c said, p prompt, shown *evidence) (places []citation.Place, why string) {
	switch {
	case c.Text == "" || utf8.RuneCountInString(c.Text) > mostClaim:
		return nil, fmt.Sprintf("the text is empty or has more than %d characters", mostClaim)
	case p.leaks(c.Text):
		return nil, "it repeats what is no part of the repository"
	case secretscan.Scrub(c.Text) != c.Text:
		return nil, "it has what looks like a secret"
	case len(c.Citations) == 0:
		return nil, "it has no citation"
	}
	seen := map[citation.Place]bool{}
	for _, cite := range c.Citations[:min(len(c.Citations), mostCites)] {
		at, ok := citation.Parse(cite)
		if !ok || at.To-at.From >= mostCited {
			why = fmt.Sprintf("a citation is not path:line or path:line-line, of at most %d lines", mostCited)
			continue
		}
		lines := shown.lines(at)
		if lines == nil {
			why = "a citation is of lines that were not shown"
			continue
		}
		if f := citation.Check(c.Text, at, lines); f != "" {
			why = wrong[f]
		} else if !seen[at] {
			seen[at] = true
			places = append(places, at)
		}
	}
	return places, why
}

// wrong says what breaks a rule, without a word of the lines.
var wrong = map[citation.Fault]string{
	citation.Quote:        "words in quotes do not stand in the cited lines",
	citation.Name:         "a name does not stand in the cited lines",
	citation.Definition:   "the first name is used in the cited lines, and not defined there",
	citation.Abbreviation: "an abbreviation does not stand in the cited lines",
	citation.Number:       "a number does not stand in the cited lines",
	citation.Unit:         "the unit of a number does not stand in its line",
	citation.Link:         "an address does not stand in the cited lines",
	citation.Words:        "the cited lines are about something else",
}

// correction is the turn that tells the model why nothing of its reply is left.
func correction(faults []string) string {
	return "None of these claims is borne out by its lines:\n- " + strings.Join(faults, "\n- ") +
		"\n\nAnswer with a corrected JSON object, alone, and with {\"claims\":[]} if the lines do not answer the question."
}
