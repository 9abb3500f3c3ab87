package moves

type state struct{}

func (state) names() []string {
	return []string{"opening", "open", "closing", "reopening", "merged", "closed"}
}

// State is how far a pull request has come. Closing and reopening: a person has said yes
// to what an agent asked for, and it is yet to be done.
type State = fact[state]

// Values of State.
const (
	Opening State = iota + 1
	Open
	Closing
	Reopening
	Merged
	Closed
)

type abandoned struct{}

func (abandoned) names() []string { return []string{"no", "yes"} }

// Abandoned tells whether its task was cancelled.
type Abandoned = fact[abandoned]

// Values of Abandoned.
const (
	CaredFor Abandoned = iota + 1
	GivenUp
)

type enabled struct{}

func (enabled) names() []string { return []string{"on", "off"} }

// Enabled tells whether its repository is.
type Enabled = fact[enabled]

// Values of Enabled.
const (
	RepoOn Enabled = iota + 1
	RepoOff
)

type draft struct{}

func (draft) names() []string { return []string{"no", "yes"} }

// Draft tells whether it is one at its host.
type Draft = fact[draft]

// Values of Draft.
const (
	Ready Draft = iota + 1
	Drafted
)

type watch struct{}

func (watch) names() []string { return []string{"watched", "shown", "stopped"} }

// Watch tells whether agents look after it. Shown: it is of people, and nobody has asked
// for that. Stopped: a person has had agents leave it alone.
type Watch = fact[watch]

// Values of Watch.
const (
	Watched Watch = iota + 1
	Shown
	Stopped
)

type branch struct{}

func (branch) names() []string { return []string{"own", "theirs", "fork", "default"} }

// Branch tells whose branch it is. Agents never push to a fork or to the default branch.
type Branch = fact[branch]

// Values of Branch.
const (
	OwnBranch Branch = iota + 1
	TheirBranch
	ForkBranch
	DefaultBranch
)

type known struct{}

func (known) names() []string {
	return []string{"unread", "read", "branch gone", "nothing left", "landed", "no base"}
}

// Known is what git said. Unread: the head or the base has moved since, or a rule of what
// is protected has changed. Landed: the head is in the base, and we did not merge it.
type Known = fact[known]

// Values of Known.
const (
	Unread Known = iota + 1
	Read
	Gone
	Empty
	Landed
	NoBase
)

type fit struct{}

func (fit) names() []string { return []string{"clean", "conflict"} }

// Fit tells whether it merges into its base.
type Fit = fact[fit]

// Values of Fit; of no meaning while Known is Unread.
const (
	Clean Fit = iota + 1
	Conflict
)

type names struct{}

func (names) names() []string { return []string{"nothing", "something"} }

// Names tells whether a merge into the base of now would do something that a question has
// to name: change a protected path or weaken the policy, bring in work that was dropped,
// or bring back what the base has removed by a rewrite.
type Names = fact[names]

// Values of Names.
const (
	NamesNothing Names = iota + 1
	NamesSomething
)

type under struct{}

func (under) names() []string { return []string{"none", "unmerged"} }

// Under is the work below. Work that was dropped is no value of it: if the head still
// contains it, Names is NamesSomething.
type Under = fact[under]

// Values of Under.
const (
	NoneBelow Under = iota + 1
	UnmergedBelow
)

type checks struct{}

func (checks) names() []string {
	return []string{"due", "pending", "none", "passed", "failed", "missing", "infra", "action required", "base broken"}
}

// Checks is the result of the own check and of those at the host together. Due: nobody
// has begun or read them for this head. Infra: machines failed, ours or the host's.
type Checks = fact[checks]

// Values of Checks.
const (
	ChecksDue Checks = iota + 1
	ChecksPending
	ChecksNone
	ChecksPassed
	ChecksFailed
	ChecksMissing
	ChecksInfra
	ChecksAction
	ChecksBase
)

type review struct{}

func (review) names() []string {
	return []string{"none", "running", "held", "looked", "blind", "failed", "cancelled"}
}

// Review is the last run about this head. There is no value "due": whether one is due
// follows from the rules, each time that somebody asks.
type Review = fact[review]

// Values of Review.
const (
	ReviewNone Review = iota + 1
	ReviewRunning
	ReviewHeld // its task is held: no budget, or no seat that may
	ReviewLooked
	ReviewBlind
	ReviewFailed
	ReviewCancelled
)

type findings struct{}

func (findings) names() []string { return []string{"none", "open", "again"} }

// Findings are those that hold the merge. Again: a round has answered them or the head
// has moved, and the reviewer is to look at each once more.
type Findings = fact[findings]

// Values of Findings.
const (
	NoFindings Findings = iota + 1
	OpenFindings
	AgainFindings
)

type objections struct{}

func (objections) names() []string { return []string{"none", "fresh", "answered"} }

// Objections are requests for changes. AnsweredRequest: a round has, and whoever asked is yet to
// say what they think of it.
type Objections = fact[objections]

// Values of Objections.
const (
	NoRequest Objections = iota + 1
	FreshRequest
	AnsweredRequest
)

type round struct{}

func (round) names() []string { return []string{"none", "running", "going on", "resting"} }

// Round is an agent at work on the branch. GoingOn: a person asked for the round, or the
// head has moved since it began, so it goes on to its end. Resting: the last one changed
// nothing, and the next one waits for its time.
type Round = fact[round]

// Values of Round.
const (
	NoRound Round = iota + 1
	RoundRunning
	RoundGoingOn
	Resting
)

type (
	ci        struct{}
	conflicts struct{}
	requests  struct{}
	reviews   struct{}
)

func (ci) names() []string        { return ladder }
func (conflicts) names() []string { return ladder }
func (requests) names() []string  { return ladder }
func (reviews) names() []string   { return ladder }

var ladder = []string{"left", "spent"}

// The rounds that are left of each kind, since the pull request was armed.
type (
	CI        = fact[ci]
	Conflicts = fact[conflicts]
	Requests  = fact[requests]
	Reviews   = fact[reviews]
)

// Values of CI, Conflicts, Requests and Reviews.
const (
	RoundsLeft  = 1
	RoundsSpent = 2
)

type push struct{}

func (push) names() []string { return []string{"none", "asked", "granted"} }

// Push is how far a person is with letting agents push to the branch.
type Push = fact[push]

// Values of Push.
const (
	NoPush Push = iota + 1
	PushAsked
	PushGranted
)

type seat struct{}

func (seat) names() []string { return []string{"free", "full"} }

// Seat tells whether the queue of the account takes more work.
type Seat = fact[seat]

// Values of Seat.
const (
	SeatFree Seat = iota + 1
	SeatFull
)

type question struct{}

func (question) names() []string { return []string{"none", "open", "narrow", "declined", "expired"} }

// Question is the last one about this head. Narrow: it is open, and does not name all
// that Names is about.
type Question = fact[question]

// Values of Question.
const (
	NoQuestion Question = iota + 1
	Asked
	Narrow
	Declined
	Expired
)

type refused struct{}

func (refused) names() []string { return []string{"no", "yes"} }

// Refused tells whether a person has said no to any of its heads.
type Refused = fact[refused]

// Values of Refused.
const (
	NeverRefused Refused = iota + 1
	WasRefused
)

type carry struct{}

func (carry) names() []string {
	return []string{"none", "maybe a question", "maybe a yes", "a question", "a yes"}
}

// Carry is a decision about an earlier head. Maybe: git has yet to say whether the change
// is the same.
type Carry = fact[carry]

// Values of Carry.
const (
	NoCarry Carry = iota + 1
	MaybeQuestion
	MaybeYes
	CarryQuestion
	CarryYes
)

type yes struct{}

func (yes) names() []string { return []string{"no", "fresh", "firm", "narrow"} }

// Yes is the order of a person to merge this head. FreshRequest: given a moment ago, so that it
// can be taken back before anything begins. Narrow: what it was given for did not name
// all that Names is about.
type Yes = fact[yes]

// Values of Yes.
const (
	NoYes Yes = iota + 1
	YesFresh
	YesFirm
	YesNarrow
)

type turn struct{}

func (turn) names() []string { return []string{"free", "out", "waiting"} }

// Turn is the place in a merge queue. Free: there is no queue, or its turn has come.
type Turn = fact[turn]

// Values of Turn.
const (
	TurnFree Turn = iota + 1
	TurnOut
	TurnWaiting
)

type act struct{}

func (act) names() []string { return []string{"none", "put", "called", "failed"} }

// Act is the intent to merge. Put: the host was not called, or has said that it did
// nothing. Called: the call is out, and may have merged. Failed: no try is left.
type Act = fact[act]

// Values of Act.
const (
	NoAct Act = iota + 1
	ActPut
	ActCalled
	ActFailed
)

type host struct{}

func (host) names() []string { return []string{"answers", "busy", "refuses"} }

// Host is how the last call went. Refuses: a permission is missing, or the App is gone.
type Host = fact[host]

// Values of Host.
const (
	HostAnswers Host = iota + 1
	HostBusy
	HostRefuses
)

type mode struct{}

func (mode) names() []string { return []string{"ask", "auto", "never"} }

// Mode is merge.mode of the policy.
type Mode = fact[mode]

// Values of Mode.
const (
	ModeAsk Mode = iota + 1
	ModeAuto
	ModeNever
)

type reviewer struct{}

func (reviewer) names() []string { return []string{"auto", "on request or off"} }

// Reviewer tells whether the policy asks for a review of each head.
type Reviewer = fact[reviewer]

// Values of Reviewer.
const (
	ReviewAuto Reviewer = iota + 1
	ReviewUnasked
)

type oncancel struct{}

func (oncancel) names() []string { return []string{"close", "keep"} }

// OnCancel is merge.on_cancel of the policy.
type OnCancel = fact[oncancel]

// Values of OnCancel.
const (
	CancelCloses OnCancel = iota + 1
	CancelKeeps
)

type pushes struct{}

func (pushes) names() []string { return []string{"ask", "auto", "never"} }

// Pushes is pulls.push of the policy.
type Pushes = fact[pushes]

// Values of Pushes.
const (
	PushesAsk Pushes = iota + 1
	PushesAuto
	PushesNever
)
