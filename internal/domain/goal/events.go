package goal

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// renamedData is the data of the event of a rename.
type renamedData struct {
	Title string `json:"title" doc:"its title from now on"`
}

var renamedEvent = event.Declare[renamedData]("goal.renamed", event.Audience(policy.AdminReadPlat),
	"An operator gave a goal of the platform another title at its code host.")
