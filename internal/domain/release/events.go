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

type importedData struct {
	Channel string `json:"channel" doc:"its channel"`
	Version string `json:"version" doc:"its version"`
	Target  string `json:"target" doc:"the system and processor that it is for"`
	SHA256  string `json:"sha256" doc:"digest of the bytes, in hexadecimal"`
	Key     string `json:"key" doc:"id of the key that signed it"`
}

// The events of releases.
var (
	importedEvent = event.Declare[importedData]("release.imported", audience, "An operator put a signed program into the ledger.")
	haltedEvent   = event.Declare[haltedData]("release.halted", audience, "An operator halted a release: no box takes it any more.")
	restoredEvent = event.Declare[haltedData]("release.restored", audience, "An operator restored a release that was halted.")
)
