package release

import (
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
)

// Objects are those that rows name. Releases of the same bytes share one.
func Objects(tx *db.Tx, _ time.Time) (out []blob.Named, err error) {
	rows, err := allStored.All(tx)
	for _, r := range rows {
		out = append(out, blob.Named{Key: object(r.SHA256), Size: r.Size})
	}
	return out, err
}
