package digest

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about digests.
var audience = event.Audience(policy.ReadDigests)

type madeData struct {
	Headline string `json:"headline" doc:"the digest in one line"`
	Kind     string `json:"kind" doc:"daily or weekly"`
	Period   string `json:"period" doc:"the date at which its time ends"`
	Quiet    bool   `json:"quiet" doc:"true: nothing happened and nothing waits, and nobody was mailed"`
}

var madeEvent = event.Declare[madeData]("digest.made", audience, "A digest was made.")
