package moves

import "slices"

// Call answers the change that ends a wait by the call of a person, if the call is allowed
// now; "" if people end the wait elsewhere, as the words of the need say.
func Call(f Facts, r Rules, s Step) string {
	for _, name := range Enders[s] {
		if can := calls[name]; can != nil && can(f, r) {
			return name
		}
	}
	return ""
}

// Reviewed is what the API says of the review of a head: a state, and a verdict only if
// somebody has looked.
func Reviewed(f Facts, r Rules) (state, verdict string) {
	switch {
	case f.Review.Is(ReviewNone) && r.Reviewer.Is(ReviewAuto) && f.Watch.Is(Watched) && f.Draft.Is(Ready):
		return "due", ""
	case f.Review.Is(ReviewNone):
		return "off", ""
	case !f.Review.Is(ReviewLooked):
		return f.Review.String(), "" // running, held, blind, failed or cancelled
	case f.Findings.Is(NoFindings):
		return "reviewed", "success"
	}
	return "reviewed", "failure"
}

// What is told because facts have changed, whoever has changed them.
const (
	ToldAsked = "question asked"              // event, mail with links for this head, a row of the inbox
	ToldEnded = "question ended"              // event with its reason; the row is settled, links answer 409
	ToldOrder = "order ended"                 // event
	ToldHelp  = "help is wanted"              // an escalation
	ToldOver  = "help is not wanted any more" // it is resolved
)

// asksHelp are the needs that nobody was asked about by a question: they escalate, once.
var asksHelp = []string{NeedRearm, NeedRetry, NeedCheck, NeedApproval, NeedMachine, NeedHands, NeedPermission, NeedBaseBranch}

// Told lists what is told when one step leads from before to after. by is the step whose
// effect it was, or no step. It looks at the difference alone, so that no handler, pass
// or event can forget to tell.
func Told(before, after Facts, r Rules, by Step) (out []string) {
	was, is := before.Question.Is(Asked, Narrow), after.Question.Is(Asked, Narrow)
	anew := by.Do == DoAsk
	if was && (!is || anew) {
		out = append(out, ToldEnded)
	}
	if is && (!was || anew) {
		out = append(out, ToldAsked)
	}
	if !before.Yes.Is(NoYes) && after.Yes.Is(NoYes) && !after.State.Is(Merged) {
		out = append(out, ToldOrder)
	}
	old, now := Next(before, r), Next(after, r)
	helped := old.Do == DoPerson && slices.Contains(asksHelp, old.Of)
	wanted := now.Do == DoPerson && slices.Contains(asksHelp, now.Of)
	if helped && old != now {
		out = append(out, ToldOver)
	}
	if wanted && old != now {
		out = append(out, ToldHelp)
	}
	return out
}

// Began answers what pr.rearm_babysit has begun: the next step, if it is another one than
// before; else false, and the answer says that nothing was to be done.
func Began(before, after Facts, r Rules) (Step, bool) {
	now := Next(after, r)
	return now, now != Next(before, r)
}
