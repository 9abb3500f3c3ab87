package moves

import (
	"fmt"
	"strings"
)

// stepWords are the steps in words for people. A need that is not here is told by its name.
var stepWords = map[Step]string{
	{DoDone, ""}:               "nothing",
	{DoLook, ""}:               "git is asked: how the head stands to the base, and what a merge would do now",
	{DoCheck, ""}:              "its checks begin",
	{DoReview, ""}:             "a review begins; it also looks at each finding again that holds the merge",
	{DoRepair, KindConflict}:   "an agent resolves the conflict (2 rounds)",
	{DoRepair, KindCI}:         "an agent mends the check (3 rounds)",
	{DoRepair, KindRequest}:    "an agent makes the changes that were requested (3 rounds)",
	{DoRepair, KindReview}:     "an agent answers the findings (3 rounds)",
	{DoStopWork, ""}:           "the round ends, and is not counted",
	{DoTakeOver, ""}:           "the question or the approval holds for this head; a question is told anew",
	{DoAsk, ""}:                "a person is asked, in place of what was asked or decided before",
	{DoPushWork, ""}:           "the branch is moved to what the round has done",
	{DoEnter, ByPerson}:        "it enters the merge queue",
	{DoEnter, ByPolicy}:        "it enters the merge queue",
	{DoMerge, ByPerson}:        "it is merged",
	{DoMerge, ByPolicy}:        "it is merged",
	{DoRecord, ""}:             "the merge is recorded, with who made it",
	{DoClose, Cancelled}:       "it is closed",
	{DoClose, BranchDeleted}:   "it is closed",
	{DoClose, NothingLeft}:     "it is closed",
	{DoClose, Agreed}:          "it is closed",
	{DoReopen, ""}:             "it is opened again",
	{DoWait, ForHost}:          "it waits until the host takes calls again",
	{DoWait, ForOpening}:       "it waits for the host",
	{DoWait, ForMerge}:         "it waits for the answer of the host; nothing else is done meanwhile",
	{DoWait, ForIntent}:        "it waits until the host is called; until then it can be taken back",
	{DoWait, ForPeople}:        "nothing: it is shown",
	{DoWait, ForChecks}:        "it waits for them",
	{DoWait, ForReview}:        "it waits for the review",
	{DoWait, ForRound}:         "it waits for the agent",
	{DoWait, ForRest}:          "it waits 1, 5 or 15 minutes for the next round",
	{DoWait, ForBelow}:         "it waits for that",
	{DoWait, ForTurn}:          "it waits in the queue",
	{DoWait, ForGrace}:         "it waits as long as `merge.grace` says",
	{DoPerson, NeedBaseBranch}: "`base_missing`: the branch is pushed again, or it gets another base",
	{DoPerson, NeedHands}:      "`branch_not_ours`: somebody mends the branch, where agents do not push",
	{DoPerson, NeedReady}:      "`draft`: somebody marks it as ready",
	{DoPerson, NeedPermission}: "`permission_missing`: the owner of the repository grants it to the App",
	{DoPerson, NeedReview}:     "`review_held`: what holds the review's task is cleared, or findings are dismissed (`review.dismiss`)",
	{DoPerson, NeedEnable}:     "`repo_disabled`: the repository is enabled (`project.update`)",
	{DoPerson, NeedChanges}:    "`changes_requested`: whoever asked takes it back or approves; or `pr.rearm_babysit`",
}

const tableHead = "| | If | then | ended by |\n|---|---|---|---|\n"

// Table is the table in Markdown: one row for each line, in order.
func Table() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for i, l := range lines {
		then, ok := stepWords[l.Then]
		if !ok {
			then = fmt.Sprintf("`%s`", l.Then.Of)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, l.When, then, strings.Join(Enders[l.Then], ", "))
	}
	return b.String()
}
