// Package hive keeps what the lanes that fan work out say of themselves, and grades it for
// operators. A lane reports once for each task of it that comes to its end, in the transaction of
// that end. A row says nothing about whose task it was.
//
// Who writes what of a report:
//
//   - task, lane, runner, at: Note, of the task, of this program's version and of the time
//   - delivered: for scouts, that the last run brought a report, which package run knows; for
//     plans, that the task has a pull request, or completed without one
//   - first_try: that the task ended well and its first attempt was its last
//   - grounded: for scouts alone, how many lines of the report cite a place in the repository, of
//     how many, which package plan reads
//   - merged: for plans alone, that its pull request was merged
//
// Files: hive.go the lanes and their reports, ops.go the capability, store.go the statements.
package hive

import (
	"encoding/json"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// LaneName is the name of a lane.
type LaneName string

// The lanes.
const (
	Scouts = "scouts" // a scout in each of several repositories
	Plans  = "plans"  // the tasks of a plan
)

// Values lists all lanes.
func (LaneName) Values() []string { return []string{Scouts, Plans} }

// MetricName is what is counted.
type MetricName string

// The metrics. Each is counted as n of d.
const (
	Delivered = "delivered"
	FirstTry  = "first_try"
	Grounded  = "grounded"
	Merged    = "merged"
)

// Values lists all metrics.
func (MetricName) Values() []string { return []string{Delivered, FirstTry, Grounded, Merged} }

// keepFor is how long reports are kept.
const keepFor = 90 * 24 * time.Hour

// Count is n of d.
type Count struct {
	N int64 `json:"n"`
	D int64 `json:"d"`
}

// Yes counts one thing that was so, or not.
func Yes(so bool) Count {
	if so {
		return Count{N: 1, D: 1}
	}
	return Count{D: 1}
}

// Report is what a lane says of one of its tasks.
type Report struct {
	TaskID, Lane string
	Metrics      map[string]Count
}

// carried are the metrics of a lane, which each of its reports has to have.
func carried(lane string) []string {
	switch lane {
	case Scouts:
		return []string{Delivered, FirstTry, Grounded}
	case Plans:
		return []string{Delivered, FirstTry, Merged}
	}
	return nil
}

func lanesAll() []string { return []string{Scouts, Plans} }

func metricsAll() []string { return []string{Delivered, FirstTry, Grounded, Merged} }

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Version string // of this program
}

// Service keeps the reports.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Note keeps a report. A task that ends again, after it was dispatched anew, replaces what was said
// of it. Reports that are older than 90 days go.
func (s *Service) Note(tx *db.Tx, r Report) error {
	metrics, err := json.Marshal(r.Metrics)
	if err != nil {
		return err
	}
	said := reportRow{TaskID: r.TaskID, Lane: r.Lane, Runner: s.Version, At: tx.Now, Metrics: string(metrics)}
	if _, err := put.Exec(tx, said); err != nil {
		return err
	}
	_, err = expire.Exec(tx, tx.Now.Add(-keepFor))
	return err
}

// read is a report's metrics, and the keys that it lacks or that are no count; lanes that nobody
// knows have none that could be lacking, and are not read.
func (r reportRow) read() (metrics map[string]Count, unsatisfied []string) {
	var raw map[string]json.RawMessage
	if json.Unmarshal([]byte(r.Metrics), &raw) != nil {
		return nil, carried(r.Lane)
	}
	metrics = map[string]Count{}
	for _, key := range carried(r.Lane) {
		var c struct{ N, D *int64 }
		if json.Unmarshal(raw[key], &c) != nil || c.N == nil || c.D == nil || *c.N < 0 || *c.N > *c.D {
			unsatisfied = append(unsatisfied, key)
			continue
		}
		metrics[key] = Count{N: *c.N, D: *c.D}
	}
	return metrics, slices.Clip(unsatisfied)
}
