package talk

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a subscriber needs for the events of conversations.
var audience = event.Audience(policy.ReadPRs)

// The data of events of a conversation.
type (
	// Said is the data of CommentedEvent.
	Said struct {
		CommentID string `json:"comment_id" doc:"the comment"`
		OnLine    bool   `json:"on_line" doc:"whether it is about a line"`
		PRID      string `json:"pr_id" doc:"the pull request"`
		ThreadID  string `json:"thread_id" doc:"the thread; one at a code host has its name there"`
	}
	endedData struct {
		PRID     string `json:"pr_id" doc:"the pull request"`
		ThreadID string `json:"thread_id" doc:"the thread"`
	}
)

// The events of a conversation. Each is about the pull request.
var (
	CommentedEvent = event.Declare[Said]("pr.commented", audience, "Somebody has said something about a pull request.")
	resolvedEvent  = event.Declare[endedData]("pr.thread_resolved", audience, "Somebody has resolved a thread of a pull request.")
	reopenedEvent  = event.Declare[endedData]("pr.thread_reopened", audience, "Somebody has opened a thread of a pull request again.")
)
