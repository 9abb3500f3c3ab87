package lease

import (
	"time"

	"yardmaster/internal/db"
)

// server is a server that uses the database, or that was killed.
type server struct {
	ID        string
	Cluster   bool
	Name      string
	Process   string
	Beats     int64
	StartedAt time.Time
}

// gate is a name of package meta. Every server locks it to take or read leases, so
// that of two servers that start together one sees the other.
const gate = "servers"

var (
	selectServers = db.Q[server](`SELECT id, cluster, name, process, beats, started_at FROM servers ORDER BY started_at, id`)
	insertServer  = db.SWith[insertServerArgs](`INSERT INTO servers (id, cluster, name, process, started_at)
		VALUES (:id, :cluster, :name, :process, :started_at)`)
	beat         = db.S(`UPDATE servers SET beats = beats + 1 WHERE id = $1`)
	deleteServer = db.S(`DELETE FROM servers WHERE id = $1`)
)

// insertServerArgs are the parameters of insertServer.
type insertServerArgs struct {
	ID            string
	Cluster       bool
	Name, Process string
	StartedAt     int64
}
