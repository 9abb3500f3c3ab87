package release

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience sees these events in the platform's audit trail; no topic follows them.
var audience = event.Audience(policy.AdminReadPlat)

type haltedData struct {
	Channel   string `json:"channel" doc:"its channel"`
	Version   string `json:"version" doc:"its version"`
	Artifacts int64  `json:"artifacts" doc:"builds that no box takes any more, or may take again"`
	Why       string `json:"why,omitempty" doc:"what is wrong with it"`
}

// The events of releases.
var (
	haltedEvent   = event.Declare[haltedData]("release.halted", audience, "An operator halted a release: no box takes it any more.")
	restoredEvent = event.Declare[haltedData]("release.restored", audience, "An operator restored a release that was halted.")
)
