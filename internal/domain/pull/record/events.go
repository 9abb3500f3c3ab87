package record

import (
	"time"

	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Trouble is a pull request that a person has to look at.
type Trouble struct {
	PRID, RepoID, URL, Category, Title, Body, Reason string
	TaskID                                           *string
}

// The lists that clients follow.
var (
	// Topic is the list of pull requests.
	Topic = &event.Topic{Name: "prs", Scope: policy.ReadPRs, Key: "pr_id", Fixed: true}
	// ApprovalTopic is the list of the questions that wait for a person.
	ApprovalTopic = &event.Topic{Name: "approvals", Scope: policy.ReadPRs}
)

// The data of events of pull requests.
type (
	OpenedData struct {
		HeadSHA string `json:"head_sha" doc:"its head"`
		Number  int64  `json:"number" doc:"its number in the repository"`
		TaskID  string `json:"task_id" doc:"the task that it came from"`
	}
	HeadData struct {
		HeadSHA string `json:"head_sha" doc:"its new head"`
	}
	ReopenedData struct {
		By      string `json:"by" doc:"who pushed the branch again"`
		HeadSHA string `json:"head_sha" doc:"its head"`
		Number  int64  `json:"number" doc:"its number in the repository"`
	}
	ClosedData struct {
		ClosedBy string  `json:"closed_by" doc:"who cancelled its task, or pushed"`
		HeadSHA  string  `json:"head_sha" doc:"its last head"`
		Number   int64   `json:"number" doc:"its number in the repository"`
		TaskID   *string `json:"task_id" doc:"the task that it came from; null without one"`
		Why      string  `json:"why" doc:"cancelled, branch_deleted or nothing_left"`
	}
	mergedData struct {
		HeadSHA  string    `json:"head_sha" doc:"the head that was merged"`
		MergeSHA string    `json:"merge_sha" doc:"the commit of the merge"`
		MergedAt time.Time `json:"merged_at" doc:"when it was merged"`
		MergedBy *string   `json:"merged_by" doc:"who decided the merge, or made it by hand; null if that is not known"`
		Number   int64     `json:"number" doc:"its number in the repository"`
		PlanID   *string   `json:"plan_id" doc:"the plan that its task is of; null without one"`
		PRID     string    `json:"pr_id" doc:"the pull request"`
		Repo     string    `json:"repo" doc:"owner/name"`
		TaskID   *string   `json:"task_id" doc:"the task that it came from; null without one"`
		URL      string    `json:"url" doc:"address of its page, for people"`
	}
	MergeFailedData struct {
		Reason string `json:"reason" doc:"host_failed, merge_conflict, or queue_failed: its check failed together with the base"`
	}
	OtherwiseData struct {
		HeadSHA  string `json:"head_sha" doc:"the head that was merged"`
		MergeSHA string `json:"merge_sha" doc:"the commit of the merge"`
		PRID     string `json:"pr_id" doc:"the pull request"`
		Why      string `json:"why" doc:"in what files the base differs, in words"`
	}
	ConflictData struct {
		BaseSHA string `json:"base_sha" doc:"the commit of the base that it conflicts with"`
		HeadSHA string `json:"head_sha" doc:"its head"`
	}
	RoundData struct {
		CIRounds       int64  `json:"ci_rounds" doc:"rounds that mend failed checks, with this one, since it was armed"`
		ConflictRounds int64  `json:"conflict_rounds" doc:"rounds that resolve conflicts, with this one, since it was armed"`
		ReviewRounds   int64  `json:"review_rounds" doc:"rounds that answer findings of reviews, with this one, since it was armed"`
		RequestRounds  int64  `json:"request_rounds" doc:"rounds that answer what people request, with this one, since it was armed"`
		HeadSHA        string `json:"head_sha" doc:"the head that is repaired"`
		State          string `json:"state" doc:"fixing_ci, resolving_conflict or answering_review"`
		TaskID         string `json:"task_id" doc:"the task of the round"`
	}
	ActionData struct {
		ActionID string `json:"action_id" doc:"the question that was answered with yes"`
		Error    string `json:"error,omitempty" doc:"why it was not done; left out if it was"`
		Kind     string `json:"kind" doc:"close, push, reopen or label"`
	}
	UnwatchedData struct {
		By string `json:"by" doc:"who asked for it: user:<id>, or code-host:<login>"`
	}
	ReviewedData struct {
		Counts    string `json:"counts" doc:"yes, or why the review does not count: no_permission, no_person, author, requester, other_head, not_first, not_open"`
		HeadSHA   string `json:"head_sha" doc:"the commit that its first delivery names"`
		Login     string `json:"login" doc:"of its author at the code host"`
		ReviewKey string `json:"review_key" doc:"id of the review at the code host"`
		State     string `json:"state" doc:"approved, changes_requested, or dismissed"`
	}
	RequestData struct {
		HeadSHA   string `json:"head_sha" doc:"the head at that time"`
		RequestID string `json:"request_id" doc:"the request"`
	}
	RearmedData struct {
		Forgiven int64  `json:"forgiven" doc:"rounds that no longer count"`
		Reason   string `json:"reason" doc:"why it is worth more rounds, in the words of the caller"`
	}
)

// MergedData is what pr.merged says. The document of the API shows it where it stands, and as no type of its own.
type MergedData = mergedData

// The events of a pull request.
var (
	OpenedEvent      = event.Declare[OpenedData]("pr.opened", Topic, "A pull request was opened.")
	HeadMovedEvent   = event.Declare[HeadData]("pr.head_moved", Topic, "The pull request has a new head.")
	ReopenedEvent    = event.Declare[ReopenedData]("pr.reopened", Topic, "The branch of the pull request, which was deleted, is back.")
	ClosedEvent      = event.Declare[ClosedData]("pr.closed", Topic, "The pull request was closed without a merge.")
	MergedEvent      = event.Declare[MergedData]("pr.merged", Topic, "The pull request was merged.")
	MergeFailedEvent = event.Declare[MergeFailedData]("pr.merge_failed", Topic, "An approved merge failed, and is not tried again.")
	ConflictEvent    = event.Declare[ConflictData]("pr.conflict", Topic, "The pull request conflicts with its base.")
	OtherwiseEvent   = event.Declare[OtherwiseData]("pr.merged_otherwise", Topic, "The base has other content after the merge than the merge that was tried and approved.")
	RoundEvent       = event.Declare[RoundData]("pr.babysit_round", Topic, "An agent begins to repair the pull request.")
	RearmedEvent     = event.Declare[RearmedData]("pr.babysit_rearmed", Topic, "Agents may repair the pull request again.")
	ActedEvent       = event.Declare[ActionData]("pr.action_applied", Topic, "What a person said yes to was done to the pull request.")
	NotActedEvent    = event.Declare[ActionData]("pr.action_failed", Topic, "What a person said yes to could not be done to the pull request.")
	UnwatchedEvent   = event.Declare[UnwatchedData]("pr.unwatched", Topic, "Somebody has had agents leave the pull request alone.")
	RequestedEvent   = event.Declare[RequestData]("pr.changes_requested", Topic, "A member requests changes, which holds the merge.")
	TakenBackEvent   = event.Declare[RequestData]("pr.request_withdrawn", Topic, "What somebody requests was taken back, or whoever requested it approves.")
	ReviewedEvent    = event.Declare[ReviewedData]("pr.reviewed_at_host", Topic, "Somebody has reviewed the pull request at the code host, or a review was dismissed there.")
)

// The data of events of questions.
type (
	AskedData struct {
		HeadSHA   string   `json:"head_sha" doc:"the head that the question is about"`
		Kind      string   `json:"kind" doc:"what is asked for: merge, close, push, reopen or label"`
		PRID      string   `json:"pr_id" doc:"the pull request that it is about"`
		Protected []string `json:"protected,omitzero" doc:"protected paths that it would change, at most 50; left out: none are known"`
		Weaker    []string `json:"weaker,omitzero" doc:"the fields of the policy file that would change; left out without protected paths"`
		Back      []string `json:"back,omitzero" doc:"files that the merge would bring back, which were dropped, at most 50; left out: it would bring nothing back that is known"`
	}
	ApprovedData struct {
		HeadSHA string `json:"head_sha" doc:"the head that is to be merged"`
		Kind    string `json:"kind,omitempty" doc:"what is to be done; left out of the answer to a question about a merge"`
		PRID    string `json:"pr_id" doc:"the pull request"`
	}
	CarriedData struct {
		Change   string  `json:"change" doc:"the change that both heads have: a SHA-256 over the changed files"`
		From     string  `json:"from" doc:"the head that the question or approval was about"`
		PRID     string  `json:"pr_id" doc:"the pull request"`
		PushedBy *string `json:"pushed_by" doc:"who pushed the new head; null if that is not known"`
		To       string  `json:"to" doc:"the head that takes it over"`
	}
	QuestionData struct {
		HeadSHA string `json:"head_sha" doc:"the head that the question is about"`
		PRID    string `json:"pr_id" doc:"the pull request that it is about"`
	}
)

// The events of a question about a pull request.
var (
	AskedEvent    = event.Declare[AskedData]("approval.asked", ApprovalTopic, "A person is asked about a head, or the policy orders it.")
	ApprovedEvent = event.Declare[ApprovedData]("approval.approved", ApprovalTopic, "Somebody approved the merge of a head, or ordered it.")
	CarriedEvent  = event.Declare[CarriedData]("approval.carried", ApprovalTopic, "A new head with the same change took the question or the approval over.")
	SkippedEvent  = event.Declare[QuestionData]("approval.skipped", ApprovalTopic, "Somebody declined the merge of a head.")
	ExpiredEvent  = event.Declare[QuestionData]("approval.expired", ApprovalTopic, "The question lapsed without an answer.")
	StaleEvent    = event.Declare[QuestionData]("approval.stale", ApprovalTopic, "The question is of no use any more.")
)

// QuestionsEnded are the events after which a question waits for nobody.
var QuestionsEnded = []event.Any{ApprovedEvent, SkippedEvent, ExpiredEvent, StaleEvent}

// Progress is a step of the pull request of a task.
type Progress struct {
	TaskID, PRID string
	// FailureKind is the reason why the task is stuck; only TaskStuck has one.
	FailureKind string
	// Why is the reason in words; only TaskStuck and TaskClosed have one.
	Why string
}

// Signals about the task that a pull request came from. The task moves with the pull
// request.
var (
	TaskAwaits       = event.DeclareSignal[Progress]("pull.task_awaits", "The head of the task's pull request has yet to be checked.")
	TaskAwaitsReview = event.DeclareSignal[Progress]("pull.task_awaits_review", "A person has yet to decide about the task's pull request.")
	TaskMergeable    = event.DeclareSignal[Progress]("pull.task_mergeable", "The merge of the task's pull request is ordered.")
	TaskMerged       = event.DeclareSignal[Progress]("pull.task_merged", "The task's pull request was merged.")
	TaskClosed       = event.DeclareSignal[Progress]("pull.task_closed", "The pull request was closed, though nobody cancelled the task.")
	TaskStuck        = event.DeclareSignal[Progress]("pull.task_stuck", "The task's pull request goes no further without a person.")
)

// Note is the end of a pull request that may have needed a person.
type Note struct{ PRID, Text string }

// Signals about the care that a pull request takes.
var (
	// RoundsSpent is sent when a person has to look at a pull request.
	RoundsSpent = event.DeclareSignal[Trouble]("pull.rounds_spent", "Agents have used up their rounds at a pull request.")
	SeenTo      = event.DeclareSignal[Note]("pull.seen_to", "A pull request needs no person any more.")
	// MergeTried is sent with the id of a question.
	MergeTried = event.DeclareSignal[string]("pull.merge_tried", "It is known what the merge that a question is about would change.")
	// TaskUnneeded is sent with the id of the task of a check or round.
	TaskUnneeded = event.DeclareSignal[string]("pull.task_unneeded", "The check or round of a pull request is of no use any more.")
)
