package backlog

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

var audience = event.Audience(policy.ReadTasks)

// The data of events.
type (
	importedData struct {
		Filed      int64 `json:"filed" doc:"issues that became asks"`
		IssuesKept bool  `json:"issues_kept" doc:"whether the host keeps issues at all"`
		Open       int   `json:"open" doc:"issues that were open at the host"`
	}
	failedData struct {
		Filed  int64  `json:"filed" doc:"issues that had become asks"`
		Reason string `json:"reason" doc:"host_unavailable"`
	}
)

// The events of an import.
var (
	requestedEvent = event.Declare[event.None]("backlog.import_requested", audience, "An operator asked to import a repository's issues.")
	importedEvent  = event.Declare[importedData]("backlog.imported", audience, "The issues of a repository were imported.")
	failedEvent    = event.Declare[failedData]("backlog.import_failed", audience, "The import was given up: the host did not answer.")
)
