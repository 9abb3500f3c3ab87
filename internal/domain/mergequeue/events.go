package mergequeue

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a subscriber needs for the events of merge queues.
var audience = event.Audience(policy.ReadPRs)

// The data of events of merge queues.
type (
	queuedData struct {
		BaseRef string `json:"base_ref" doc:"the branch that it is merged into"`
		HeadSHA string `json:"head_sha" doc:"the head"`
		PRID    string `json:"pr_id" doc:"the pull request"`
		Queue   string `json:"queue" doc:"own, or host: that of the code host"`
	}
	leftData struct {
		HeadSHA string `json:"head_sha" doc:"the head"`
		PRID    string `json:"pr_id" doc:"the pull request"`
		Why     string `json:"why" doc:"why it left the queue without a merge"`
	}
	begunData struct {
		BaseRef string   `json:"base_ref" doc:"the branch"`
		PRIDs   []string `json:"pr_ids" doc:"the pull requests, in the order in which they are merged"`
	}
	passedData struct {
		BaseRef string `json:"base_ref" doc:"the branch"`
		BaseSHA string `json:"base_sha" doc:"the commit of the branch that the heads were merged into"`
		Reused  bool   `json:"reused" doc:"whether the same files had been checked before, so that nothing was run"`
		SHA     string `json:"sha" doc:"the candidate"`
	}
	endedData struct {
		BaseRef string `json:"base_ref" doc:"the branch"`
		SHA     string `json:"sha" doc:"the candidate; empty: there was none yet"`
		Why     string `json:"why" doc:"why it ended"`
	}
)

// The events of merge queues. The object of the first two is a place in a queue, that of
// the others a batch.
var (
	queuedEvent  = event.Declare[queuedData]("merge.queued", audience, "An approved head waits in a merge queue.")
	leftEvent    = event.Declare[leftData]("merge.unqueued", audience, "A head left its merge queue without a merge.")
	begunEvent   = event.Declare[begunData]("merge.batch_begun", audience, "Heads are to be checked together.")
	passedEvent  = event.Declare[passedData]("merge.batch_passed", audience, "The heads of a batch passed together, and are merged.")
	failedEvent  = event.Declare[endedData]("merge.batch_failed", audience, "The heads of a batch did not pass together.")
	droppedEvent = event.Declare[endedData]("merge.batch_dropped", audience, "A batch ended unfinished: the heads that are left are gathered again.")
	mergedEvent  = event.Declare[endedData]("merge.batch_merged", audience, "All heads of a batch are merged.")
)
