package run

import "yardmaster/internal/db"

// States counts the runs of all accounts that have not ended, by their state.
// The map has every such state.
func States(tx *db.Tx) (map[string]int64, error) {
	out := map[string]int64{Leased: 0, Live: 0, Parked: 0}
	rows, err := countStates.All(tx)
	for _, r := range rows {
		out[r.State] = r.N
	}
	return out, err
}
