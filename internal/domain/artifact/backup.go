package artifact

import (
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
)

// Objects are those that rows name.
func Objects(tx *db.Tx, _ time.Time) (out []blob.Named, err error) {
	rows, err := allShown.All(tx)
	for _, r := range rows {
		out = append(out, blob.Named{Key: r.key(), Size: r.Size})
	}
	return out, err
}
