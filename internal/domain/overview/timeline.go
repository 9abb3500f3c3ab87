package overview

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/money"
)

// PhaseName says what went on.
type PhaseName string

// Values lists all, in the order in which Parts names them.
func (PhaseName) Values() []string {
	return []string{"queue", "prepare", "agent", "checks", "review", "repair", "person"}
}

// Phase is a part of the time of a task.
type Phase struct {
	_       struct{}   `doc:"A part of the time of a task." schema:"TimelinePhase"`
	Phase   PhaseName  `json:"phase" doc:"what went on"`
	BeganAt time.Time  `json:"began_at" doc:"when it began"`
	EndedAt *time.Time `json:"ended_at" doc:"when it ended; null: it goes on"`
	TaskID  *string    `json:"task_id" format:"uuid" doc:"the task whose run it is: this one, or a check, review or repair of its pull request; null of a merge question"`
	RunID   *string    `json:"run_id" format:"uuid" doc:"its run; null of a person"`
	Attempt int64      `json:"attempt" example:"1" doc:"of its run; 0 of a person"`
	Cause   *string    `json:"cause" example:"box_lost" doc:"slug of what it is about: why the try before failed; blocker or approval of a person; null: nothing before it"`
	Outcome *string    `json:"outcome" enum:"succeeded,failed,interrupted,lost,answered,submitted,withdrawn,expired,approved,applied,skipped,stale" example:"succeeded" doc:"how it ended, as its run, blocker or question has it; null: it goes on, or another phase tells"`
	CostUSD *string    `json:"cost_usd" format:"decimal" example:"0.42" doc:"of its run, decimal US dollars; null: no call had a price"`
}

// Part is how long a task was in one phase.
type Part struct {
	_       struct{}  `doc:"How long a task was in one phase." schema:"TimelinePart"`
	Phase   PhaseName `json:"phase" doc:"the phase"`
	Seconds int64     `json:"seconds" example:"372" doc:"the sum of its times, whole seconds; phases may overlap"`
}

// Timeline is the time of a task.
type Timeline struct {
	_       struct{}   `doc:"Where the time of a task went, with the checks, reviews and repairs of its pull request." schema:"TaskTimeline"`
	TaskID  string     `json:"task_id" format:"uuid" doc:"the task"`
	FiledAt time.Time  `json:"filed_at" doc:"when it was filed"`
	EndedAt *time.Time `json:"ended_at" doc:"when it ended; null: it is open"`
	At      time.Time  `json:"at" doc:"the time of the answer, up to which what goes on is counted"`
	Lead    int64      `json:"lead_seconds" example:"2400" doc:"from filed to ended, or to at"`
	Parts   []Part     `json:"parts" doc:"how long it was in each phase that there was"`
	Phases  []Phase    `json:"phases" doc:"the phases, of at most 500 runs and 500 questions, by when they began"`
}

type timelineIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the task"`
}

func (s *Service) timeline(ctx context.Context, in timelineIn) (out Timeline, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if !id.Valid(in.ID) {
			return fault.Missing("task")
		}
		t, ok, err := measure.WayOf(tx, in.ID)
		if err != nil || !ok {
			if err == nil {
				err = fault.Missing("task")
			}
			return err
		}
		runs, asked, err := measure.Stays(tx, in.ID)
		if err != nil {
			return err
		}
		out = Timeline{TaskID: in.ID, FiledAt: t.CreatedAt, EndedAt: t.FinishedAt, At: tx.Now, Phases: []Phase{}, Parts: []Part{}}
		for _, r := range runs {
			out.Phases = append(out.Phases, ofRun(r)...)
		}
		for _, q := range asked {
			out.Phases = append(out.Phases, ofPerson(q))
		}
		if len(runs) == 0 && t.FinishedAt == nil {
			out.Phases = append(out.Phases, Phase{Phase: "queue", BeganAt: t.CreatedAt, TaskID: &out.TaskID})
		}
		slices.SortStableFunc(out.Phases, func(a, b Phase) int { return a.BeganAt.Compare(b.BeganAt) })
		out.sum()
		return nil
	})
	return out, err
}

// ofRun are the phases of a run: the wait for a box, the checkout, and the work.
func ofRun(r measure.Stay) []Phase {
	works := map[string]PhaseName{"ci": "checks", "review": "review", "babysit": "repair"}[r.Kind]
	if works == "" {
		works = "agent"
	}
	one := Phase{BeganAt: r.BeganAt, EndedAt: r.EndedAt, TaskID: &r.TaskID, RunID: &r.ID, Attempt: r.Attempt, Cause: r.Before}
	waits, prepares, work := one, one, one
	waits.Phase, waits.BeganAt, waits.EndedAt = "queue", r.WaitsFrom, &r.BeganAt
	prepares.Phase = "prepare"
	if r.StartedAt == nil { // it never came to work, or has not yet
		prepares.Outcome = r.Outcome
		return []Phase{waits, prepares}
	}
	prepares.EndedAt = r.StartedAt
	work.Phase, work.BeganAt, work.Outcome, work.CostUSD = works, *r.StartedAt, r.Outcome, money.DollarsOrNone(r.CostMicros)
	return []Phase{waits, prepares, work}
}

func ofPerson(q measure.Stay) Phase {
	out := Phase{Phase: "person", BeganAt: q.BeganAt, EndedAt: q.EndedAt, Cause: &q.Kind, TaskID: db.NullText(q.TaskID)}
	if q.EndedAt != nil {
		out.Outcome = q.Outcome
	}
	return out
}

// sum counts how long each phase took.
func (t *Timeline) sum() {
	end := t.At
	if t.EndedAt != nil {
		end = *t.EndedAt
	}
	t.Lead = int64(max(0, end.Sub(t.FiledAt)) / time.Second)
	took := map[PhaseName]time.Duration{}
	for _, p := range t.Phases {
		until := t.At
		if p.EndedAt != nil {
			until = *p.EndedAt
		}
		took[p.Phase] += max(0, until.Sub(p.BeganAt))
	}
	for _, name := range PhaseName("").Values() {
		p := PhaseName(name)
		if d, there := took[p]; there {
			t.Parts = append(t.Parts, Part{Phase: p, Seconds: int64(d / time.Second)})
		}
	}
}
