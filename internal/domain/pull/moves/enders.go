package moves

// Enders are the changes that end a wait, the likeliest first. For a wait for a person
// the first is what needs_person names, if its Can holds; a wait without such a call names
// none, and says in words what ends it.
var Enders = map[Step][]string{
	{DoWait, ForOpening}:       {"opened", "not opened"},
	{DoWait, ForMerge}:         {"merge answered"},
	{DoWait, ForIntent}:        {"merge called"},
	{DoWait, ForHost}:          {"host answers"},
	{DoWait, ForPeople}:        {"pr.merge", "push", "label", "merged there", "closed there"},
	{DoWait, ForChecks}:        {"checks pass", "checks fail"},
	{DoWait, ForRound}:         {"round ends"},
	{DoWait, ForRest}:          {"rest is over"},
	{DoWait, ForSeat}:          {"seat free"},
	{DoWait, ForReview}:        {"review ends"},
	{DoWait, ForGrace}:         {"grace is over", "approve taken back"},
	{DoWait, ForBelow}:         {"work below is merged or dropped"},
	{DoWait, ForTurn}:          {"turn comes", "thrown out of the queue"},
	{DoPerson, NeedDecision}:   {"pr.approve_pending", "pr.skip_pending"},
	{DoPerson, NeedAgain}:      {"pr.ask_again", "pr.merge"},
	{DoPerson, NeedExpired}:    {"pr.ask_again", "pr.merge"},
	{DoPerson, NeedMerge}:      {"pr.merge"},
	{DoPerson, NeedRetry}:      {"pr.merge"},
	{DoPerson, NeedRearm}:      {"pr.rearm_babysit", "push"},
	{DoPerson, NeedChanges}:    {"request settled", "pr.rearm_babysit"},
	{DoPerson, NeedPush}:       {"push approved", "push declined"},
	{DoPerson, NeedStopped}:    {"pr.rearm_babysit", "push"},
	{DoPerson, NeedBase}:       {"pr.rearm_babysit", "checks begin again"},
	{DoPerson, NeedCheck}:      {"pr.rearm_babysit", "checks begin again"},
	{DoPerson, NeedApproval}:   {"pr.rearm_babysit", "checks begin again"},
	{DoPerson, NeedMachine}:    {"pr.rearm_babysit", "checks begin again"},
	{DoPerson, NeedReady}:      {"ready for review"},
	{DoPerson, NeedEnable}:     {"project.update on"},
	{DoPerson, NeedPermission}: {"permission granted"},
	{DoPerson, NeedBaseBranch}: {"base is back", "retarget"},
	{DoPerson, NeedHands}:      {"push"},
	{DoPerson, NeedReview}:     {"review goes on", "review.dismiss"},
}

// calls are the guards of the changes that a person brings about by a call. A capability
// refuses a call whose guard does not hold.
var calls = map[string]func(Facts, Rules) bool{
	"pr.approve_pending": func(f Facts, _ Rules) bool { return open(f) && f.Question.Is(Asked) },
	"pr.skip_pending":    func(f Facts, _ Rules) bool { return open(f) && f.Question.Is(Asked, Narrow) },
	"approve taken back": func(f Facts, _ Rules) bool { return open(f) && !f.Yes.Is(NoYes) && !called(f) },
	"pr.ask_again": func(f Facts, _ Rules) bool {
		return decidable(f) && f.Yes.Is(NoYes) && !f.Question.Is(Asked, Narrow)
	},
	"pr.merge":               func(f Facts, _ Rules) bool { return decidable(f) && !called(f) && !f.Question.Is(Narrow) },
	"pr.rearm_babysit":       func(f Facts, _ Rules) bool { return tendable(f) },
	"push approved":          func(f Facts, _ Rules) bool { return open(f) && f.Push.Is(PushAsked) },
	"push declined":          func(f Facts, _ Rules) bool { return open(f) && f.Push.Is(PushAsked) },
	"review.request_changes": func(f Facts, _ Rules) bool { return open(f) },
	"request settled":        func(f Facts, _ Rules) bool { return live(f) && f.Objections.Is(FreshRequest, AnsweredRequest) },
	"review.dismiss":         func(f Facts, _ Rules) bool { return live(f) && f.Findings.Is(OpenFindings, AgainFindings) },
	"review goes on":         func(f Facts, _ Rules) bool { return live(f) && f.Review.Is(ReviewHeld) },
	"project.update off":     func(f Facts, _ Rules) bool { return live(f) && f.Enabled.Is(RepoOn) },
	"project.update on":      func(f Facts, _ Rules) bool { return f.Enabled.Is(RepoOff) },
	"review.rerun": func(f Facts, _ Rules) bool {
		return open(f) && f.Enabled.Is(RepoOn) && f.Known.Is(Read) && f.Abandoned.Is(CaredFor) &&
			f.Review.Is(ReviewLooked, ReviewBlind, ReviewFailed, ReviewCancelled)
	},
	"task.cancel": func(f Facts, _ Rules) bool {
		return f.State.Is(Opening, Open, Closing) && f.Branch.Is(OwnBranch) && f.Abandoned.Is(CaredFor)
	},
	"close agreed":  func(f Facts, _ Rules) bool { return open(f) && f.Abandoned.Is(CaredFor) },
	"reopen agreed": func(f Facts, _ Rules) bool { return f.State.Is(Closed) && f.Abandoned.Is(CaredFor) },
}

func open(f Facts) bool { return f.State.Is(Open) }

// live tells whether a pull request is open, or an agreed close is yet to be done.
func live(f Facts) bool { return f.State.Is(Open, Closing) }

// called tells whether the host may have merged: no order can be taken back then.
func called(f Facts) bool { return f.Act.Is(ActCalled) }

// tendable tells whether agents may be told to look after it: pr.rearm_babysit refuses a
// fork. To look after the default branch is to check, review and ask, without rounds.
func tendable(f Facts) bool { return open(f) && f.Enabled.Is(RepoOn) && !f.Branch.Is(ForkBranch) }

// decidable tells whether a person may decide about the head: its checks hold nothing.
func decidable(f Facts) bool { return open(f) && f.Known.Is(Read) && green(f) }
