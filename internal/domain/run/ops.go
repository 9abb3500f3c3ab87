package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

const (
	group       = "Tasks"
	backfillMax = 500 // events that a stream reads at once
)

// Ops are the capabilities of this package: clients read runs by them.
func (s *Service) Ops() []op.Op {
	read := policy.Require(policy.ReadTasks)
	return append([]op.Op{
		op.New(op.Row{ID: "task.attempts", Method: "GET", Path: "/v1/tasks/{id}/attempts",
			Group: group, Rule: read, Paging: &op.Paging{Default: 100, Max: 200},
			Summary: "Every try of a task, oldest first",
			Doc: "One row for each time a box took the task, with how it ended. The failure kind is read anew from what the box said, so an " +
				"old try may name a better kind than the task did then."}, s.attempts),
		op.New(op.Row{ID: "task.run_events", Method: "GET", Path: "/v1/tasks/{id}/events", Group: group, Rule: read,
			Summary: "The timeline of a task's run; can wait for news",
			Doc: "Events after since_seq, in order. A task that no box has started answers run_id null and no events. With wait_ms the call " +
				"waits for the first new event and answers an empty page if none comes; send the same since_seq again. A run that has ended answers " +
				"at once."}, s.events),
		op.New(op.Row{ID: "task.result", Method: "GET", Path: "/v1/tasks/{id}/report", Group: group, Rule: read,
			Summary: "What a task delivered",
			Doc: "The report of the newest run, and what all tries declared on their way. A task that has delivered nothing yet answers " +
				"report null, not 404."}, s.result),
		op.Stream(op.Row{ID: "task.run_tail", Method: "GET", Path: "/v1/fleet/runs/{runId}/events",
			Group: group, Rule: read, Resume: true, Events: frames(true),
			Summary: "Follow the timeline of one run: backfill, tail, end",
			Doc: "Sends every stored event of the run as a frame named event, then each new one as it comes, and at last a frame named end " +
				"with how the run ended. The id of a frame is the number of its event."}, s.tail),
	}, s.operatorOps()...)
}

// frames are the frames of a run's stream. A stream whose events have no ids
// begins anew after a connection breaks.
func frames(resume bool) []op.Event {
	return []op.Event{
		{Name: "event", Data: Event{}, ID: resume, Doc: "Something that happened, in order of seq."},
		{Name: "end", Data: End{}, ID: true, Doc: "The run is over and all was sent. The id is that of the last row with .end behind it."},
	}
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the task"`
}

// find reads a task of tx.Account. It returns fault.NotFound in the same words
// for unknown, foreign and malformed ids.
func find(tx *db.Tx, taskID string) (task.Row, error) {
	if !id.Valid(taskID) {
		return task.Row{}, fault.Missing("task")
	}
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err == nil && !ok {
		err = fault.Missing("task")
	}
	return t, err
}

func findRun(tx *db.Tx, runID string) (Row, error) {
	if !id.Valid(runID) {
		return Row{}, fault.Missing("run")
	}
	r, ok, err := selectOfAccount.Maybe(tx, tx.Account, runID)
	if err == nil && !ok {
		err = fault.Missing("run")
	}
	return r, err
}

type attemptsIn struct {
	op.PageIn
	ID      string `json:"id" format:"uuid" doc:"id of the task"`
	Compare bool   `json:"compare,omitempty" doc:"true: say what each has reported, and the first 20 of a page what they have changed"`
}

func (s *Service) attempts(ctx context.Context, in attemptsIn) (page op.Page[Run], err error) {
	var tries []Row
	var of task.Row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if of, err = find(tx, in.ID); err != nil {
			return err
		}
		at, after, _, err := in.AfterTime()
		if err != nil {
			return err
		}
		rows, err := pageAttempts.All(tx, pageAttemptsArgs{
			AccountID: tx.Account, TaskID: in.ID, CreatedAt: at, ID: after, Limit: in.Size(),
		})
		if err != nil {
			return err
		}
		part := op.NewPage(in.PageIn, rows, func(r Row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
		used, err := session.UsageOf(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		tries, page = part.Data, op.Page[Run]{Data: make([]Run, len(part.Data)), NextCursor: part.NextCursor}
		for i := range part.Data {
			page.Data[i] = wire(&part.Data[i])
			for _, u := range used {
				if u.RunID == part.Data[i].ID {
					page.Data[i].Usage = usageOf(u)
				}
			}
		}
		return nil
	})
	if err == nil && in.Compare {
		err = s.compare(ctx, of.RepoID, *cmp.Or(of.BaseSHA, new(string)), tries, page.Data)
	}
	return page, err
}

// wire returns a run as clients see it. It derives the failure kind anew, so
// that old tries show what later versions recognise.
func wire(r *Row) Run {
	w := Run{
		ID: r.ID, TaskID: r.TaskID, Attempt: r.Attempt, BoxID: r.BoxID, Right: r.right(), Epoch: r.Attempt,
		State:   measure.RunState(r.State),
		Outcome: (*measure.Outcome)(r.Outcome), FailureKind: r.FailureKind,
		EndedReason: r.Error, Isolation: (*protocol.Isolation)(r.Isolation), Agent: r.Agent, AgentVersion: r.AgentVersion,
		Template: r.Template, Model: db.NullText(r.Model), ResumeSHA: r.ResumeSHA, PushedSHA: r.Tip, LiveChannel: reachable(r),
		LastSeq: r.CommittedSeq, CreatedAt: r.CreatedAt, AcceptedAt: r.AcceptedAt,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}
	w.LeftOut = r.leftOut()
	if r.IsolationHolds != nil {
		w.Holds = r.IsolationHolds.V
	}
	if r.EndedAt == nil {
		until := r.LeaseExpiresAt
		w.LeaseExpiresAt = &until
	}
	if r.Outcome != nil && *r.Outcome == Failed && r.FailureKind != nil {
		text := ""
		if r.Error != nil {
			text = *r.Error
		}
		kind := failureKind(*r.FailureKind, text)
		w.FailureKind = &kind
	}
	if w.EndedReason == nil {
		w.EndedReason = w.FailureKind
	}
	return w
}

// right is by what right the box has the run.
func (r *Row) right() *BoxRight {
	if r.BoxRight == nil {
		return nil
	}
	return &BoxRight{Kind: *r.BoxRight, UserID: r.ConsentBy, AgreedAt: r.ConsentAt}
}

// lent tells whether the run is on a box that another account has lent.
func (r *Row) lent() bool { return r.BoxRight != nil && *r.BoxRight == fleet.Gift }

type eventsIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the task"`
	RunID    string `json:"run_id,omitempty" format:"uuid" doc:"one try of the task; the newest that began unless given"`
	SinceSeq int64  `json:"since_seq,omitempty" minimum:"0" doc:"events after this number; send the next_since_seq of the answer before"`
	PerPage  int    `json:"per_page,omitempty" minimum:"1" maximum:"1000" default:"200" doc:"events a page"`
	WaitMS   int64  `json:"wait_ms,omitempty" minimum:"0" maximum:"25000" doc:"how long to wait for a first new event, in milliseconds; 0 answers at once"`
}

// Timeline is the answer of task.run_events.
type Timeline struct {
	_            struct{} `doc:"A page of the timeline of a run."`
	RunID        *string  `json:"run_id" format:"uuid" doc:"the run that the events are of; null until a box has begun"`
	Events       []Event  `json:"events" doc:"in the order of seq; empty when there are none after since_seq"`
	NextSinceSeq int64    `json:"next_since_seq" doc:"send it back as since_seq for what follows"`

	ReapedAt *time.Time `json:"reaped_at" example:"null" doc:"since when only what the report shows is left; null: all events are there"`
}

func (s *Service) events(ctx context.Context, in eventsIn) (Timeline, error) {
	out, settled, err := s.timeline(ctx, in)
	if err != nil || settled || in.WaitMS == 0 {
		return out, err
	}
	over := time.NewTimer(time.Duration(in.WaitMS) * time.Millisecond)
	defer over.Stop()
	for {
		ofTask := s.Hub.Watch(event.TaskTopic(in.ID))
		var ofRun <-chan struct{}
		if out.RunID != nil {
			ofRun = s.Hub.Watch(event.RunTopic(*out.RunID))
		}
		watched := out.RunID
		out, settled, err = s.timeline(ctx, in)
		if err != nil || settled {
			return out, err
		}
		if out.RunID != nil && (watched == nil || *watched != *out.RunID) {
			continue // a run began meanwhile: watch its topic
		}
		select {
		case <-ofTask:
		case <-ofRun:
		case <-over.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// timeline reads one page. settled tells that waiting is pointless: there are
// events, or none will come.
func (s *Service) timeline(ctx context.Context, in eventsIn) (out Timeline, settled bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = Timeline{Events: []Event{}, NextSinceSeq: in.SinceSeq}
		t, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		r, err := chosen(tx, &t, in.RunID)
		if err != nil {
			return err
		}
		if r == nil {
			settled = t.Status.Terminal()
			return nil
		}
		out.RunID = &r.ID
		rows, err := selectEvents.All(tx, r.ID, in.SinceSeq, in.PerPage)
		if err != nil {
			return err
		}
		for _, e := range rows {
			out.Events = append(out.Events, e.wire())
			out.NextSinceSeq = e.Seq
		}
		settled = len(rows) > 0 || r.EndedAt != nil
		if r.EndedAt != nil {
			out.ReapedAt, _, err = reapedAt.Maybe(tx, r.ID)
		}
		return err
	})
	return out, settled, err
}

// chosen returns the run that the caller names, or else the newest that has
// events; nil if none has. It returns fault.NotFound if the named run is not
// one of the task.
func chosen(tx *db.Tx, t *task.Row, runID string) (*Row, error) {
	if runID != "" {
		r, err := findRun(tx, runID)
		if err == nil && r.TaskID != t.ID {
			err = fault.Missing("run")
		}
		return &r, err
	}
	rows, err := selectAttempts.All(tx, tx.Account, t.ID)
	if err != nil {
		return nil, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].CommittedSeq > 0 {
			return &rows[i], nil
		}
	}
	return nil, nil
}

// Artifact names an artifact of a task.
type Artifact struct {
	_           struct{}  `doc:"An artifact of a task, by reference: artifact.get has its bytes." schema:"TaskArtifact"`
	ID          string    `json:"id" format:"uuid" doc:"id of the artifact"`
	RunID       *string   `json:"run_id" format:"uuid" doc:"the try that stored it; null: none did"`
	Name        string    `json:"name" example:"coverage.txt" doc:"name of the file"`
	ContentType string    `json:"content_type" example:"text/plain" doc:"media type, as whoever stored it says"`
	Size        int64     `json:"size" example:"48211" doc:"in bytes"`
	CreatedAt   time.Time `json:"created_at" doc:"when it was recorded"`
}

// TaskResult is the result of a task, derived from its stored events. Report is
// the newest run's; artifacts are those of all tries.
type TaskResult struct {
	_             struct{}         `doc:"What a task delivered, over all its tries." schema:"TaskResult"`
	TaskID        string           `json:"task_id" format:"uuid" doc:"id of the task"`
	RunID         *string          `json:"run_id" format:"uuid" doc:"the newest try, whose report it is; null before the first"`
	Status        task.Status      `json:"status" example:"completed" doc:"state of the task"`
	Report        *string          `json:"report" example:"The footer now computes the year." doc:"markdown; null when nothing was delivered yet"`
	ReportMD      string           `json:"report_md" enum:"report_md,final_turn,none" doc:"where the report comes from: a report file, the closing words of the agent, or none"`
	ReportMissing bool             `json:"report_missing" example:"false" doc:"whether the newest run failed because it delivered nothing"`
	Artifacts     []Artifact       `json:"artifacts" doc:"by reference: those of all tries whose bytes are there, the newest 200, newest first"`
	RawTasks      []RawTask        `json:"raw_tasks" doc:"what the tries filed"`
	AskIDs        []string         `json:"ask_ids" format:"uuid" doc:"the asks that came of it"`
	Blocker       *DeclaredBlocker `json:"blocker" example:"null" doc:"the newest that a try declared; null when none did"`
	Devops        *string          `json:"devops" example:"null" doc:"one line that sums the report of a task of kind devops up; null for other kinds, and before its report"`
	ScoutContext  *ScoutContext    `json:"scout_context" example:"null" doc:"what a survey found; null for other kinds, and before its report"`
	Result        json.RawMessage  `json:"result" example:"null" doc:"what the report ends with, valid under the task's result_schema; null without"`
	RunsSeen      int64            `json:"runs_seen" doc:"how many tries there were; above 1 it was retried"`

	LeftOut []protocol.LeftOut `json:"left_out" doc:"what the agent of the newest try made and the work does not have"`
}

func (s *Service) result(ctx context.Context, in idIn) (out TaskResult, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		out = TaskResult{TaskID: t.ID, Status: t.Status, ReportMD: "none", Artifacts: []Artifact{}, RawTasks: []RawTask{},
			AskIDs: []string{}, LeftOut: []protocol.LeftOut{}}
		runs, err := selectAttempts.All(tx, tx.Account, t.ID)
		if err != nil {
			return err
		}
		out.RunsSeen = int64(len(runs))
		if len(runs) > 0 {
			r := &runs[len(runs)-1]
			out.RunID, out.LeftOut = &r.ID, r.leftOut()
			out.ReportMissing = r.FailureKind != nil && *r.FailureKind == task.ReportMissing
			if out.Report = r.Report; r.ReportBy != nil {
				out.ReportMD = *r.ReportBy
			}
			if r.Outcome != nil && *r.Outcome == Succeeded && r.Report != nil {
				result, _, _ := t.Result(*r.Report)
				out.Result = json.RawMessage(result)
			}
			if t.Kind == task.KindScout && r.Report != nil {
				repo, err := s.Tasks.RepoByID(tx, t.RepoID)
				if err != nil {
					return err
				}
				out.ScoutContext = survey(repo.FullName(), *r.Report)
			}
			if t.Kind == task.KindDevops && r.Report != nil {
				out.Devops = &survey("", *r.Report).Summary
			}
		}
		stored, err := s.Artifacts.OfTask(tx, t.ID)
		if err != nil {
			return err
		}
		out.Artifacts = append(out.Artifacts, stored...)
		if err := s.foldDeclared(tx, &t, runs, &out); err != nil {
			return err
		}
		if out.ScoutContext != nil {
			out.ScoutContext.Blocker = out.Blocker
		}
		return nil
	})
	return out, err
}

type tailIn struct {
	RunID string `json:"runId" format:"uuid" doc:"id of the run"`
}

// End is the last frame of task.run_tail.
type End struct {
	_           struct{}         `doc:"A run that is over: the last frame of its stream."`
	RunID       string           `json:"run_id" format:"uuid" doc:"id of the run"`
	Outcome     *measure.Outcome `json:"outcome" doc:"how it ended"`
	FailureKind *string          `json:"failure_kind" example:"null" doc:"slug of what went wrong; null when nothing did"`
	LastSeq     int64            `json:"last_seq" doc:"number of the last event"`
}

func (s *Service) tail(ctx context.Context, in tailIn, sink *op.Sink) error {
	since, err := sink.Since()
	if err != nil {
		return err
	}
	// An id of another account must not be watched.
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		_, err := findRun(tx, in.RunID)
		return err
	})
	if err != nil {
		return err
	}
	return s.follow(ctx, in.RunID, since, func(e Event) error {
		return sink.Send(strconv.FormatInt(e.Seq, 10), "event", e)
	}, sink)
}

// follow sends the events of a run of the context's account after since, and
// the end, to a sink. send writes the frame of one event.
func (s *Service) follow(ctx context.Context, runID string, since int64, send func(Event) error, sink *op.Sink) error {
	for {
		changed := s.Hub.Watch(event.RunTopic(runID))
		r, rows, err := s.readOnce(ctx, runID, since, changed)
		if err != nil {
			return err
		}
		if r.EndedAt == nil {
			sink.Open()
		}
		for _, e := range rows {
			if err := send(e.wire()); err != nil {
				return err
			}
			since = e.Seq
		}
		switch {
		case len(rows) == backfillMax:
			continue
		case r.EndedAt != nil:
			return sink.End(r.CommittedSeq,
				End{RunID: r.ID, Outcome: (*measure.Outcome)(r.Outcome), FailureKind: wire(&r).FailureKind, LastSeq: r.CommittedSeq})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// step is one read of a stream.
type step struct {
	run  Row
	rows []storedEvent
}

// readOnce reads the next events for a stream. Streams that wait for the same
// change and have come equally far share one read. A change that is stored
// after the read began closes the channel that they all watch, so that none
// misses it.
func (s *Service) readOnce(ctx context.Context, runID string, since int64, changed <-chan struct{}) (Row, []storedEvent, error) {
	out, err, _ := s.reads.Do(fmt.Sprint(runID, since, changed), func() (any, error) {
		var st step
		err := s.DB.Read(context.WithoutCancel(ctx), func(tx *db.Tx) (err error) {
			if st.run, err = findRun(tx, runID); err != nil {
				return err
			}
			st.rows, err = selectEvents.All(tx, runID, since, backfillMax)
			return err
		})
		return st, err
	})
	st, _ := out.(step)
	return st.run, st.rows, err
}
