package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/hive"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
)

// ReportLanes has the lanes that fan work out say what became of each of their tasks. One that was
// cancelled came to no end of its own.
func ReportLanes(h *hive.Service, runs *run.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if !t.Status.Terminal() || t.Status == task.Cancelled {
			return nil
		}
		well := t.Status != task.Failed
		switch {
		case t.PlanID != nil:
			merged := hive.Count{}
			if t.PRID != nil {
				merged = hive.Yes(t.Status == task.Merged)
			}
			return h.Note(tx, hive.Report{TaskID: t.ID, Lane: hive.Plans, Metrics: map[string]hive.Count{
				hive.Delivered: hive.Yes(well || t.PRID != nil), hive.FirstTry: hive.Yes(well && t.Attempt <= 1), hive.Merged: merged,
			}})
		case t.Kind == task.KindScout:
			if ok, err := plan.OfFanout(tx, t.ID); err != nil || !ok {
				return err
			}
			defer tx.About(t.AccountID)()
			report, _, ok, err := runs.Survey(tx, t)
			if err != nil {
				return err
			}
			n, d := plan.Grounded(report)
			return h.Note(tx, hive.Report{TaskID: t.ID, Lane: hive.Scouts, Metrics: map[string]hive.Count{
				hive.Delivered: hive.Yes(ok && well), hive.FirstTry: hive.Yes(well && t.Attempt <= 1), hive.Grounded: {N: n, D: d},
			}})
		}
		return nil
	}
}
