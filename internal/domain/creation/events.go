package creation

import (
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// The data of events.
type (
	createdData struct {
		Repo      string  `json:"repo" doc:"owner/name"`
		Host      string  `json:"host" doc:"the code host that has it"`
		Template  string  `json:"template" doc:"name of the files that it begins with"`
		Version   int64   `json:"version" doc:"of those files"`
		CommitSHA *string `json:"commit_sha" doc:"its first commit; null: somebody else made one"`
		TaskID    *string `json:"scaffold_task_id" doc:"the task that sets it up; null: none was queued"`
	}
	failedData struct {
		Repo string `json:"repo" doc:"owner/name"`
		Host string `json:"host" doc:"the code host that was to have it"`
		Why  string `json:"why" doc:"what was in the way"`
	}
)

// The events of a creation.
var (
	createdEvent = event.Declare[createdData]("repo.created", repo.Topic, "A repository was made, with its first commit.")
	FailedEvent  = event.Declare[failedData]("repo.creation_failed", repo.Topic, "The making of a repository was given up.")
)
