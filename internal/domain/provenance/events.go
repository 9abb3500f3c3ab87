package provenance

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

type signedData struct {
	MergeSHA string `json:"merge_sha" doc:"the commit of the merge"`
}

var signedEvent = event.Declare[signedData]("pr.provenance_signed", event.Audience(policy.ReadPRs), "What the merge of the pull request came of was signed.")
