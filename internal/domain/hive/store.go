package hive

import (
	"time"

	"yardmaster/internal/db"
)

// reportRow is a report as it is stored.
type reportRow struct {
	TaskID, Lane, Runner string
	At                   time.Time
	Metrics              string
}

var (
	put = db.SWith[reportRow](`INSERT INTO lane_reports (task_id, lane, runner, at, metrics) VALUES (:task_id, :lane, :runner, :at, :metrics)
		ON CONFLICT (task_id) DO UPDATE SET lane = excluded.lane, runner = excluded.runner, at = excluded.at, metrics = excluded.metrics`)
	expire = db.S(`DELETE FROM lane_reports WHERE at < $1`)
	recent = db.Q[reportRow](`SELECT task_id, lane, runner, at, metrics FROM lane_reports WHERE at >= $1 ORDER BY at DESC, task_id LIMIT $2`)
)
