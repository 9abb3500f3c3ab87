package command

import (
	"fmt"
	"strings"
)

// What is said in answer. No text has the name of the server with a verb behind it, and
// nothing of the command is repeated: an answer is no command, also where somebody quotes
// it.
const (
	wordsReview = "Agents review the present head. What they find and confirm is posted here; if there is nothing, the check says so."
	wordsRebase = "An agent brings the base into the branch."
	wordsFix    = "Agents look after this pull request from now on: failed checks, conflicts, and what reviews ask for."
	wordsStop   = "Agents leave this pull request alone from now on. A merge that has begun already goes on."
)

// declined says why nothing was done.
func declined(why string) string { return "Nothing was done. " + quiet(why) }

// Facts are what is known of a pull request.
type Facts struct {
	State, HeadSHA, BaseRef, Mergeable, Checks string

	Draft, Fork, Watched bool
	Round                string // what an agent does on the branch; ""
	WaitsUntil           string // what a person has to do; ""
	Asked                bool   // the question about the merge waits
	Ordered              bool   // the merge was ordered
	Objections           int64  // people whose last review requests changes
	Review               string // how far the review of the head by agents is; "" if there is none
	Findings             []Finding
	Page                 string // address of the page
}

// Finding is a finding that waits for an answer.
type Finding struct{ Severity, Claim, Place string }

// maxShown limits the findings that an answer lists.
const maxShown = 10

var rounds = map[string]string{
	"fixing_ci": "An agent repairs the checks now.", "resolving_conflict": "An agent brings the base into the branch now.",
	"answering_review": "An agent answers the review now.",
}

var checkWords = map[string]string{
	"none": "no check is required", "pending": "the checks have not ended", "passed": "the checks have passed",
	"failed": "checks have failed",
}

// explain says how a pull request stands.
func explain(f Facts) string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, "* "+format+"\n", a...) }
	if f.State != "open" {
		say("It is %s.", f.State)
	} else {
		text := "Of the head " + short(f.HeadSHA) + ", " + checkWords[f.Checks]
		switch f.Mergeable {
		case "conflict":
			text += "; it conflicts with " + quiet(f.BaseRef)
		case "clean":
			text += "; it merges into " + quiet(f.BaseRef) + " without a conflict"
		}
		say("%s.", text)
	}
	switch {
	case f.Fork:
		say("Its branch is in another repository: agents review it when they are asked to, and never push there.")
	case !f.Watched:
		say("Agents leave it alone.")
	case f.Round != "":
		say("%s", rounds[f.Round])
	case f.Draft:
		say("It is a draft: nothing is asked about it.")
	}
	if f.Ordered {
		say("Its merge is ordered.")
	}
	switch {
	case f.WaitsUntil != "":
		say("It waits until %s.", f.WaitsUntil)
	case f.Asked:
		say("It waits until a person decides about the merge.")
	}
	if f.Objections > 0 {
		say("%d of its reviewers ask for changes.", f.Objections)
	}
	if f.Review != "" {
		say("The review by agents: %s.", f.Review)
	}
	if n := len(f.Findings); n > 0 {
		say("Findings that wait for an answer: %d.", n)
		for i, x := range f.Findings {
			if i == maxShown {
				say("And %d more.", n-maxShown)
				break
			}
			fmt.Fprintf(&b, "  * %s, `%s`: %s\n", x.Severity, strings.ReplaceAll(x.Place, "`", "'"), quiet(x.Claim))
		}
	}
	if f.Page != "" {
		say("All of it: %s", f.Page)
	}
	return strings.TrimSpace(b.String())
}

func short(sha string) string { return sha[:min(len(sha), 12)] }

// quiet takes the meaning from what a host would act on: mentions, references, comments
// in HTML. The text becomes one line.
func quiet(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("@", "@\u200b", "#", "#\u200b", "<!--", "<\u200b!--").Replace(s)
}
