package modelkey

import (
	"cmp"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/llm"
)

var bases = db.Q[struct {
	Provider llm.Provider
	BaseURL  string
}](`SELECT DISTINCT provider, base_url FROM provider_keys WHERE deleted_at IS NULL ORDER BY provider, base_url`)

// Addresses are those of the models that accounts and people have keys for.
func Addresses(tx *db.Tx) (all []string, err error) {
	rows, err := bases.All(tx)
	for _, r := range rows {
		if at := cmp.Or(r.BaseURL, r.Provider.Base()); at != "" {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), err
}
