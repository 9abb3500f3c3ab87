package measure

import (
	"time"

	"yardmaster/internal/db"
)

// Stored is what the server stores, in bytes. All but Database is what package quota has measured
// last: repositories after each push, the rest every hour.
type Stored struct {
	Database              int64 `db:"-"` // now, with indexes and room that is free again
	Records, Git, Objects int64
	MeasuredAt            *time.Time // the oldest measurement that counts; nil: there is none
}

var stored = db.Q[Stored](`SELECT (SELECT CAST(COALESCE(SUM(record_bytes), 0) AS BIGINT) FROM account_measures) AS records,
	(SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM repo_sizes) AS git,
	(SELECT CAST(COALESCE(SUM(object_bytes), 0) AS BIGINT) FROM account_measures) AS objects,
	(SELECT MIN(measured_at) FROM account_measures) AS measured_at`)

// StoredNow reads what the server stores.
func StoredNow(tx *db.Tx) (out Stored, err error) {
	if out, err = stored.One(tx); err != nil {
		return out, err
	}
	size := db.Build(`SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()`)
	if tx.Engine() == db.Postgres {
		size = db.Build(`SELECT pg_database_size(current_database()) AS bytes`)
	}
	bytes, err := db.Select[int64](tx, size)
	if err == nil {
		out.Database = bytes[0]
	}
	return out, err
}
