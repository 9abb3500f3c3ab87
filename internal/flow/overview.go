package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/overview"
)

// FleetBoxes implements overview.Boxes.
type FleetBoxes struct{ Boxes *box.Service }

// Loads implements overview.Boxes.
func (f FleetBoxes) Loads(tx *db.Tx, most int) ([]overview.BoxLoad, error) {
	rows, err := f.Boxes.Fleet(tx, most)
	out := make([]overview.BoxLoad, len(rows))
	for i, b := range rows {
		out[i] = overview.BoxLoad{
			ID: b.ID, Name: b.Name, State: measure.BoxState(b.State), Presence: b.Presence.Status, Version: b.Presence.Version,
			Unfit:  b.Presence.Unfit,
			Active: int64(b.Presence.Active), Slots: b.Slots,
		}
		if t := b.Presence.Telemetry; t != nil {
			out[i].DiskFree = &t.DiskFree
		}
	}
	return out, err
}

// Knowledge implements overview.Knowledge.
type Knowledge struct{}

// Ages implements overview.Knowledge.
func (Knowledge) Ages(tx *db.Tx, repoIDs []string) (map[string]overview.PageAge, error) {
	all, err := kb.Ages(tx, repoIDs)
	out := make(map[string]overview.PageAge, len(all))
	for _, a := range all {
		out[a.RepoID] = overview.PageAge{Pages: a.Pages, Fresh: a.Fresh, Newest: a.Newest}
	}
	return out, err
}
