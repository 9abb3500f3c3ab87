package record

import (
	"slices"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// Recorded is what is stored of a pull request that a host tells of.
type Recorded struct {
	Title   string
	Body    string
	State   string
	HeadSHA string `db:"head_sha"`
	BaseRef string
	Draft   bool
	Labels  db.JSON[[]string]
	HostAt  int64
}

// Says tells whether a pull request of a host is recorded as it is.
func (known Recorded) Says(p codehost.Pull) bool {
	state := Closed
	switch {
	case p.Merged:
		state = Merged
	case p.Open:
		state = Open
	}
	return known.State == state && known.Title == p.Title && known.Body == p.Body && known.HeadSHA == p.HeadSHA &&
		known.BaseRef == p.BaseRef && known.Draft == p.Draft && slices.Equal(known.Labels.V, p.Labels)
}

// Same tells whether nothing was recorded in between.
func (known Recorded) Same(before Recorded) bool {
	return known.HostAt == before.HostAt && known.State == before.State && known.Title == before.Title && known.Body == before.Body &&
		known.HeadSHA == before.HeadSHA && known.BaseRef == before.BaseRef && known.Draft == before.Draft &&
		slices.Equal(known.Labels.V, before.Labels.V)
}
