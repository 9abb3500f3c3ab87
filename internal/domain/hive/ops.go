package hive

import (
	"cmp"
	"context"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

const (
	group = "Account and platform operator"
	// someDays is the length of the window unless the caller names another one.
	someDays = 7
	// mostReports is how many reports of a window are read, the newest.
	mostReports = 50_000
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "account.platform_hive", Method: "GET", Path: "/v1/admin/hive", Group: group, Rule: policy.Require(policy.AdminReadPlat),
			Summary: "What the lanes that fan work out say of themselves",
			Doc: "For operators: the tasks of each lane that came to their end within the window, whosever they were. A rate over nothing " +
				"has d 0; a metric that a lane does not carry has no counts. Reports of older programs that lack what is asked of them now are " +
				"not counted, and stand under unparseable. The look is written to the platform's audit log.",
		}, s.hive),
	}
}

// Hive is what the lanes say of themselves.
type Hive struct {
	_           struct{}      `doc:"What the lanes that fan work out say of themselves." schema:"PlatformHive"`
	From        time.Time     `json:"from" doc:"beginning of the window"`
	To          time.Time     `json:"to" doc:"its end"`
	Lanes       []Lane        `json:"lanes" doc:"every lane, also one that said nothing"`
	Unparseable []Unparseable `json:"unparseable" doc:"reports that were not counted, by the program that wrote them and what they lack"`
	More        bool          `json:"more" doc:"true: only the newest 50000 reports of the window were read"`
}

// Lane is a lane, graded.
type Lane struct {
	_       struct{}   `doc:"A lane that fans work out, graded." schema:"HiveLane"`
	Lane    LaneName   `json:"lane" doc:"scouts: one in each of several repositories; plans: the tasks of plans"`
	Reports int64      `json:"reports" example:"12" doc:"tasks that came to their end and are counted"`
	Last    *time.Time `json:"last" doc:"when the newest did; null: none"`
	Metrics []Metric   `json:"metrics" doc:"every metric, also those that the lane does not carry"`
}

// Metric is a rate of a lane.
type Metric struct {
	_      struct{}   `doc:"A rate of a lane: n of d." schema:"HiveMetric"`
	Metric MetricName `json:"metric" doc:"delivered: brought a report, or a pull request; first_try: ended well without a second one; grounded: claims that cite a place; merged: its pull request was"`
	Status string     `json:"status" enum:"ok,warn,bad,no_data,not_on_contract" doc:"ok from 0.85, warn from 0.6; no_data: d is 0; not_on_contract: the lane does not carry it"`
	N      *int64     `json:"n,omitempty" example:"11" doc:"so many"`
	D      *int64     `json:"d,omitempty" example:"12" doc:"of so many"`
}

// Unparseable are reports that lack what is asked of them now.
type Unparseable struct {
	_           struct{}  `doc:"Reports that lack what is asked of them." schema:"HiveUnparseable"`
	Lane        string    `json:"lane" example:"scouts" doc:"as they name it"`
	Runner      string    `json:"runner" example:"1.3.0" doc:"version of the program that wrote them"`
	Unsatisfied []string  `json:"unsatisfied" example:"[\"grounded\"]" doc:"the metrics that they lack, or have no counts of; lane: nobody knows the lane"`
	Rows        int64     `json:"rows" example:"3" doc:"how many"`
	LastWritten time.Time `json:"last_written" doc:"when the newest was written"`
}

type hiveIn struct {
	Days int `json:"days,omitempty" minimum:"1" maximum:"90" example:"7" doc:"length of the window, in days of 24 hours; 7 unless given"`
}

func (s *Service) hive(ctx context.Context, in hiveIn) (out Hive, err error) {
	days := cmp.Or(in.Days, someDays)
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.platform_hive"}, func(tx *db.Tx) error {
		from := tx.Now.Add(-time.Duration(days) * 24 * time.Hour)
		rows, err := recent.All(tx, from, mostReports+1)
		out = count(rows[:min(len(rows), mostReports)])
		out.From, out.To, out.More = from, tx.Now, len(rows) > mostReports
		return err
	})
	return out, err
}

// count grades reports, the newest first.
func count(rows []reportRow) Hive {
	out := Hive{Lanes: []Lane{}, Unparseable: []Unparseable{}}
	sums := map[string]map[string]Count{}
	for _, name := range lanesAll() {
		out.Lanes = append(out.Lanes, Lane{Lane: LaneName(name), Metrics: []Metric{}})
		sums[name] = map[string]Count{}
	}
	for _, r := range rows {
		i := slices.Index(lanesAll(), r.Lane)
		metrics, lacks := r.read()
		if i < 0 {
			lacks = []string{"lane"}
		}
		if len(lacks) > 0 {
			out.reject(r, lacks)
			continue
		}
		lane := &out.Lanes[i]
		if lane.Reports++; lane.Last == nil {
			lane.Last = &r.At
		}
		for key, c := range metrics {
			sum := sums[r.Lane][key]
			sums[r.Lane][key] = Count{N: sum.N + c.N, D: sum.D + c.D}
		}
	}
	for i := range out.Lanes {
		lane := &out.Lanes[i]
		for _, key := range metricsAll() {
			if !slices.Contains(carried(string(lane.Lane)), key) {
				lane.Metrics = append(lane.Metrics, Metric{Metric: MetricName(key), Status: "not_on_contract"})
				continue
			}
			c := sums[string(lane.Lane)][key]
			lane.Metrics = append(lane.Metrics, Metric{Metric: MetricName(key), Status: grade(c), N: &c.N, D: &c.D})
		}
	}
	return out
}

// reject counts a report among those that are not read. The newest comes first.
func (h *Hive) reject(r reportRow, lacks []string) {
	for i := range h.Unparseable {
		if u := &h.Unparseable[i]; u.Lane == r.Lane && u.Runner == r.Runner && slices.Equal(u.Unsatisfied, lacks) {
			u.Rows++
			return
		}
	}
	h.Unparseable = append(h.Unparseable, Unparseable{Lane: r.Lane, Runner: r.Runner, Unsatisfied: lacks, Rows: 1, LastWritten: r.At})
}

func grade(c Count) string {
	switch {
	case c.D == 0:
		return "no_data"
	case 100*c.N >= 85*c.D:
		return "ok"
	case 100*c.N >= 60*c.D:
		return "warn"
	}
	return "bad"
}
