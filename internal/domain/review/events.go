package review

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a subscriber needs for the events of reviews.
var audience = event.Audience(policy.ReadPRs)

// The data of events of reviews.
type (
	queuedData struct {
		HeadSHA  string `json:"head_sha" doc:"the head that is reviewed"`
		PRID     string `json:"pr_id" doc:"the pull request"`
		SinceSHA string `json:"since_sha,omitempty" doc:"the head that was reviewed before: only what has changed since is looked at; left out: all of the change"`
	}
	blindData struct {
		Gap     string `json:"gap" doc:"no_credential: no model key fits the template; unresolved: the template is gone or names no model"`
		HeadSHA string `json:"head_sha" doc:"the head that nobody has looked at"`
		PRID    string `json:"pr_id" doc:"the pull request"`
	}
	rebasedData struct {
		FromSHA string `json:"from_sha" doc:"the head with the same change that was reviewed"`
		HeadSHA string `json:"head_sha" doc:"the head"`
		PRID    string `json:"pr_id" doc:"the pull request"`
	}
	completedData struct {
		FindingsKept int64  `json:"findings_kept" doc:"findings posted"`
		Fixed        int64  `json:"fixed" doc:"findings of earlier reviews that the head does not have any more"`
		HeadSHA      string `json:"head_sha" doc:"the head"`
		PRID         string `json:"pr_id" doc:"the pull request"`
		Unlooked     int64  `json:"unlooked" doc:"findings of earlier reviews that were to be looked at again, and were not"`
		Verdict      string `json:"verdict" doc:"success, or failure: findings hold the merge"`
	}
	endedData struct {
		HeadSHA string `json:"head_sha" doc:"the head"`
		PRID    string `json:"pr_id" doc:"the pull request"`
		Why     string `json:"why" doc:"what ended it"`
	}
	refusedData struct {
		Findings int64  `json:"findings" doc:"how many the code host did not take"`
		HeadSHA  string `json:"head_sha" doc:"the head"`
		PRID     string `json:"pr_id" doc:"the pull request"`
		Why      string `json:"why" doc:"why it did not"`
	}
	dismissedData struct {
		PRID   string `json:"pr_id" doc:"the pull request"`
		Reason string `json:"reason,omitempty" doc:"why it is none, in the words of the caller"`
		Rule   bool   `json:"rule" doc:"whether the like of it is not named in the repository again; false: it is dismissed for this pull request alone"`
	}
	forgottenData struct {
		RepoID string `json:"repo_id" doc:"the repository"`
	}
)

// The events of a review, and of a finding.
var (
	queuedEvent    = event.Declare[queuedData]("review.queued", audience, "A head of a pull request is to be reviewed.")
	blindEvent     = event.Declare[blindData]("review.blind", audience, "No model is there to review a head: its check is neutral.")
	rebasedEvent   = event.Declare[rebasedData]("review.rebased", audience, "A head changes what a reviewed one does, and is not reviewed again.")
	completedEvent = event.Declare[completedData]("review.completed", audience, "A review has ended, and its findings are posted.")
	failedEvent    = event.Declare[endedData]("review.failed", audience, "A review could not be carried out.")
	cancelledEvent = event.Declare[endedData]("review.cancelled", audience, "A review is of no use any more, or was cancelled.")
	refusedEvent   = event.Declare[refusedData]("review.refused", audience, "A code host did not take the findings of a review: they are shown here alone.")
	dismissedEvent = event.Declare[dismissedData]("review.dismissed", audience, "Somebody says that a finding is none.")
	forgottenEvent = event.Declare[forgottenData]("review.rule_deleted", audience, "Findings like a dismissed one may be named again.")
)
