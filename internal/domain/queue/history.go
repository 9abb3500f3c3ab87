package queue

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/money"
)

// triesAtOnce is how many tries are read by one statement.
const triesAtOnce = 1000

type historyIn struct {
	op.PageIn
	Hours int64 `json:"hours,omitempty" minimum:"1" maximum:"744" example:"168" doc:"how far back; 168 unless sent"`
}

// Try is a try at a task as task.history shows it.
type Try struct {
	_             struct{}         `doc:"A try at a task, with the waits before it." schema:"TaskTry"`
	RunID         string           `json:"run_id" format:"uuid" doc:"the run"`
	TaskID        string           `json:"task_id" format:"uuid" doc:"its task"`
	Repo          string           `json:"repo" doc:"owner/name"`
	Kind          task.Kind        `json:"kind" doc:"kind of the task"`
	Template      string           `json:"template" example:"default" doc:"of the task; empty for a check"`
	Priority      int64            `json:"priority" example:"50" doc:"of the task"`
	CreatedAt     time.Time        `json:"created_at" doc:"when the task was made"`
	ReadyAt       time.Time        `json:"ready_at" doc:"when a box could have had it, as far as is recorded: what held it is not"`
	ClaimedAt     time.Time        `json:"claimed_at" doc:"when a box took it"`
	EndedAt       *time.Time       `json:"ended_at" doc:"when the try ended; null: it goes on"`
	Outcome       *measure.Outcome `json:"outcome" doc:"of the try; null: it goes on"`
	CostUSD       *string          `json:"cost_usd" format:"decimal" example:"0.42" doc:"of the try, decimal US dollars; null: no call had a price"`
	UnpricedCalls int64            `json:"unpriced_calls" example:"0" doc:"calls that are not in it"`
	MergeMode     *string          `json:"merge_mode" example:"ask" doc:"merge.mode of the policy then; null: not recorded"`
	Merged        bool             `json:"merged" doc:"whether the task's pull request was merged since"`
	Asked         int64            `json:"asked" example:"1" doc:"how often a person was asked about its merge"`
	Protected     int64            `json:"protected" example:"0" doc:"of those, about what a person is asked about in every mode"`
}

// history lists the tries of an account in the order in which they were claimed.
func (s *Service) history(ctx context.Context, in historyIn) (out op.Page[Try], err error) {
	micros, after, more, err := in.AfterTime()
	if err != nil {
		return out, err
	}
	if in.Hours == 0 {
		in.Hours = 168
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		at := time.UnixMicro(0)
		if more {
			at = time.UnixMicro(micros)
		}
		rows, err := measure.Tries(tx, measure.Since(tx.Now.Add(-time.Duration(in.Hours)*time.Hour)), at, after, in.Size())
		out = op.ShowPage(in.PageIn, rows, func(t measure.Try) []string { return op.TimeKey(t.ClaimedAt, t.SessionID) }, shown)
		return err
	})
	return out, err
}

// Tries are those of tx.Account that were claimed since a time, in the order of the claims;
// false if there are more than most.
func Tries(tx *db.Tx, since time.Time, most int) (all []Try, whole bool, err error) {
	at, after := time.UnixMicro(0), ""
	for len(all) <= most {
		rows, err := measure.Tries(tx, measure.Since(since), at, after, triesAtOnce)
		if err != nil {
			return nil, false, err
		}
		for _, r := range rows {
			all = append(all, shown(r))
			at, after = r.ClaimedAt, r.SessionID
		}
		if len(rows) < triesAtOnce {
			return all, len(all) <= most, nil
		}
	}
	return all[:most], false, nil
}

func shown(t measure.Try) Try {
	return Try{
		RunID: t.RunID, TaskID: t.TaskID, Repo: t.Repo, Kind: task.Kind(t.Kind), Template: t.Template, Priority: t.Priority,
		CreatedAt: t.CreatedAt,
		ReadyAt:   t.ReadyAt(), ClaimedAt: t.ClaimedAt, EndedAt: t.EndedAt, Outcome: (*measure.Outcome)(t.Outcome),
		CostUSD:       money.DollarsOrNone(t.CostMicros),
		UnpricedCalls: t.Unpriced, MergeMode: db.NullText(t.MergeMode()), Merged: t.Merged, Asked: t.Asked, Protected: t.Protected,
	}
}

// TaskKind is the kind of a task in a record.
type TaskKind = task.Kind
