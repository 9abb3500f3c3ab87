package nodes

import (
	"time"

	"yardmaster/internal/db"
)

// row is a row of nodes.
type row struct {
	ID, Name, Routes, Door, Boxes, Version string
	StartedAt, SeenAt                      time.Time
}

func (r row) node() Node {
	return Node{
		Self:      Self{ID: r.ID, Name: r.Name, Routes: r.Routes, Door: r.Door, Boxes: r.Boxes, Version: r.Version},
		StartedAt: r.StartedAt, SeenAt: r.SeenAt,
	}
}

func every(rows []row) (all []Node) {
	for _, r := range rows {
		all = append(all, r.node())
	}
	return all
}

// setPlaceArgs are the parameters of setPlace.
type setPlaceArgs struct {
	Name, NodeID, Boot string
	Busy, Since, Asked int64
}

// keepPlaceArgs are the parameters of keepPlace.
type keepPlaceArgs struct {
	Name, NodeID, Boot string
	Busy               int64
}

// sumRow is how many slots of a bucket are taken, and the second of the oldest.
type sumRow struct{ Taken, Oldest int64 }

type home struct{ Owner, Name string }

// enterArgs are the parameters of enter.
type enterArgs struct {
	ID, Boot, Name, Routes, Door, Boxes, Version string
	Now                                          int64
}

var (
	enter = db.SWith[enterArgs](`INSERT INTO nodes (id, boot, name, routes, door, boxes, version, started_at, seen_at)
		VALUES (:id, :boot, :name, :routes, :door, :boxes, :version, :now, :now)
		ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, name = excluded.name, routes = excluded.routes, door = excluded.door,
			boxes = excluded.boxes, version = excluded.version, started_at = excluded.started_at, seen_at = excluded.seen_at,
			left_at = 0`)
	seen   = db.S(`UPDATE nodes SET seen_at = $3 WHERE id = $1 AND boot = $2`)
	bootOf = db.Q[string](`SELECT boot FROM nodes WHERE id = $1`)
	// silentBoots are the processes that have neither been seen nor have stopped by themselves.
	silentBoots = db.Q[string](`SELECT boot FROM nodes WHERE seen_at > 0 AND seen_at <= $1 ORDER BY boot`)
	leave       = db.S(`UPDATE nodes SET seen_at = 0, left_at = $3 WHERE id = $1 AND boot = $2`)
	addresses   = db.Q[struct{ Routes, Door string }](`SELECT routes, door FROM nodes WHERE left_at = 0 ORDER BY id`)
	seenSince   = db.Q[row](`SELECT id, name, routes, door, boxes, version, started_at, seen_at FROM nodes WHERE seen_at > $1 ORDER BY id`)

	// gone removes what has not been seen for long, unless it has repositories.
	gone = db.S(`DELETE FROM nodes WHERE seen_at < $1 AND started_at < $1 AND left_at < $1
		AND NOT EXISTS (SELECT 1 FROM git_homes h WHERE h.node_id = nodes.id)`)
	gonePlaces = db.S(`DELETE FROM node_places WHERE NOT EXISTS
		(SELECT 1 FROM nodes n WHERE n.id = node_places.node_id AND n.boot = node_places.boot)`)

	placesOf = db.Q[placeRow](`SELECT p.node_id, p.busy, p.since, p.asked FROM node_places p
		JOIN nodes n ON n.id = p.node_id AND n.boot = p.boot WHERE p.name = $1 AND (n.seen_at > $2 OR n.left_at > $3)`)
	setPlace = db.SWith[setPlaceArgs](`INSERT INTO node_places (name, node_id, boot, busy, since, asked)
		VALUES (:name, :node_id, :boot, :busy, :since, :asked) ON CONFLICT (name, node_id)
		DO UPDATE SET boot = excluded.boot, busy = excluded.busy, since = excluded.since, asked = excluded.asked`)
	keepPlace = db.SWith[keepPlaceArgs](`UPDATE node_places SET busy = :busy WHERE name = :name AND node_id = :node_id AND boot = :boot`)

	takenOf = db.Q[sumRow](`SELECT COALESCE(SUM(taken), 0) AS taken, COALESCE(MIN(CASE WHEN taken > 0 THEN second END), 0) AS oldest
		FROM request_counts WHERE bucket = $1 AND second > $2`)
	takeSlots = db.S(`INSERT INTO request_counts (bucket, second, taken) VALUES ($1, $2, $3)
		ON CONFLICT (bucket, second) DO UPDATE SET taken = request_counts.taken + excluded.taken`)
	returnSlots = db.S(`UPDATE request_counts SET taken = taken - $3 WHERE bucket = $1 AND second = $2`)
	oldSlots    = db.S(`DELETE FROM request_counts WHERE second <= $1`)

	settle = db.S(`INSERT INTO git_homes (owner, name, node_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`)
	homeOf = db.Q[row](`SELECT n.id, n.name, n.routes, n.door, n.boxes, n.version, n.started_at, n.seen_at
		FROM git_homes h JOIN nodes n ON n.id = h.node_id WHERE h.owner = $1 AND h.name = $2`)
	elsewhere = db.Q[Away](`SELECT n.name AS node, h.owner, h.name FROM git_homes h JOIN nodes n ON n.id = h.node_id
		WHERE h.node_id <> $1 ORDER BY n.name, h.owner, h.name`)
	homesDown = db.Q[int64](`SELECT COUNT(*) FROM git_homes h JOIN nodes n ON n.id = h.node_id WHERE n.seen_at <= $1`)
	homesAt   = db.Q[home](`SELECT owner, name FROM git_homes WHERE node_id = $1 ORDER BY owner, name`)
)

// clock is the time of the database: the server's where there is one, and otherwise that of
// the transaction.
func clock(tx *db.Tx) (int64, error) {
	if tx.Engine() != db.Postgres {
		return tx.Micros(), nil
	}
	at, err := db.Select[int64](tx, db.Build(`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`))
	if err != nil {
		return 0, err
	}
	return at[0], nil
}

// alone keeps other transactions off a name until this one ends.
func alone(tx *db.Tx, name string) error {
	if tx.Engine() != db.Postgres {
		return nil
	}
	_, err := db.Select[string](tx, db.Build(`SELECT pg_advisory_xact_lock(hashtextextended(`, name).SQL(`, 595))::TEXT`))
	return err
}
