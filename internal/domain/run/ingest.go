package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// errMoved says that another transaction has stored events of the run
// meanwhile.
var errMoved = errors.New("run: its events have moved on")

// The limits of the fields of events, in bytes.
const (
	maxKind   = 64
	maxWord   = 200
	maxError  = 4 << 10
	maxReport = 64 << 10
	maxOutput = 64 << 10
	maxPaths  = 1000
)

// Append stores the events of one envelope and carries out their effects, in
// one transaction, and returns how far the attempt's events are stored. Events
// that are stored already are passed over. An envelope that leaves a gap stores
// nothing, which the answer shows. For an attempt that the box does not hold,
// or no longer holds, the answer says Closed. Append returns fault.Invalid for
// a malformed envelope, and fault.TooLarge if the run has too many events.
func (s *Service) Append(ctx context.Context, boxID string, e protocol.Envelope) (out protocol.Appended, err error) {
	if e.V != protocol.Version || len(e.Events) == 0 {
		return out, fault.New(fault.Invalid, "", "The envelope is of another version of the protocol, or has no events.")
	}
	if len(e.Events) > protocol.MaxEvents { // other boxes wait while these are stored
		return out, fault.Newf(fault.Invalid, "", "One envelope holds at most %d events.", protocol.MaxEvents)
	}
	if slices.ContainsFunc(e.Events, func(ev protocol.Event) bool { return !utf8.Valid(ev.Data) }) {
		return out, fault.New(fault.Invalid, "", "The envelope holds an event that is no text.") // no database stores it
	}
	leave, err := s.gate.enter(ctx, boxID)
	if err != nil {
		return out, err
	}
	defer leave()
	at, err := s.branchAt(ctx, boxID, e)
	if err != nil {
		return out, err
	}
	for err = errMoved; errors.Is(err, errMoved) && ctx.Err() == nil; {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			out = protocol.Appended{}
			return s.ingest(tx, boxID, e, at, &out)
		})
	}
	return out, err
}

// branchAt asks the code host for the commit of the branch that a run has
// pushed if e says that the run succeeded. It is "" otherwise.
func (s *Service) branchAt(ctx context.Context, boxID string, e protocol.Envelope) (string, error) {
	delivers := slices.ContainsFunc(e.Events, func(ev protocol.Event) bool {
		var f protocol.Finished
		return ev.Kind == protocol.EventFinished && json.Unmarshal(ev.Data, &f) == nil && f.State == protocol.Succeeded && f.Tip != ""
	})
	if !delivers {
		return "", nil
	}
	var b branchRow
	var ok bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		b, ok, err = selectBranch.Maybe(tx, boxID, e.Run)
		return err
	})
	if err != nil || !ok || b.Branch == "" {
		return "", err
	}
	return s.Branches.At(ctx, b.RepoID, b.Branch)
}

func (s *Service) ingest(tx *db.Tx, boxID string, e protocol.Envelope, at string, out *protocol.Appended) error {
	h, ok, err := selectHead.Maybe(tx, boxID, e.Run)
	if err != nil {
		return err
	}
	if !ok || h.Attempt != int64(e.Attempt) {
		out.Closed = true
		return nil
	}
	out.Seq, out.Closed = h.CommittedSeq, h.EndedAt != nil || h.Strayed
	fresh, follows := after(e.Events, h.CommittedSeq)
	if out.Closed || !follows || len(fresh) == 0 {
		return nil
	}
	if h.EventBytes+storedBytes(fresh) > protocol.MaxRunBytes {
		return fault.Newf(fault.TooLarge, "", "The events of one run are at most %d MiB.", protocol.MaxRunBytes>>20)
	}
	if !slices.ContainsFunc(fresh, isState) {
		return s.append(tx, e, out, fresh)
	}
	defer tx.About(h.AccountID)()
	// A transaction locks the box first, then the task, then the run.
	if slices.ContainsFunc(fresh, blamesBox) {
		if err := queue.LockBox(tx, boxID); err != nil {
			return err
		}
	}
	t, ok, err := task.Lock(tx, h.AccountID, h.TaskID)
	if err != nil {
		return err
	}
	r, alive, err := selectOfBox.ForUpdate().Maybe(tx, boxID, e.Run)
	if err != nil {
		return err
	}
	if !ok || !alive || r.EndedAt != nil {
		out.Closed = true
		return nil
	}
	if i := slices.IndexFunc(fresh, func(ev protocol.Event) bool { return ev.Kind == protocol.EventFinished }); i >= 0 {
		fresh = fresh[:i+1] // nothing follows the end
	}
	if err := s.append(tx, e, out, fresh); err != nil {
		return err
	}
	for _, ev := range fresh {
		if err := s.apply(tx, &t, &r, ev, at); err != nil {
			return err
		}
	}
	if r.EndedAt == nil {
		return store(tx, &r)
	}
	return nil
}

// after returns the events after seq, and whether they follow it without a gap.
func after(events []protocol.Event, seq int64) (rest []protocol.Event, follows bool) {
	for len(events) > 0 && events[0].Seq <= seq {
		events = events[1:]
	}
	for i := range events {
		if events[i].Seq != seq+1+int64(i) {
			return nil, false
		}
	}
	return events, true
}

// storedBytes estimates the bytes that events take in the database.
func storedBytes(events []protocol.Event) (n int64) {
	for _, e := range events {
		n += int64(len(e.Data)+len(e.Kind)) + 64
	}
	return n
}

// append stores events that follow out.Seq. It returns errMoved if another
// transaction has stored events of the run.
func (s *Service) append(tx *db.Tx, e protocol.Envelope, out *protocol.Appended, events []protocol.Event) error {
	last := events[len(events)-1].Seq
	n, err := advance.Exec(tx, advanceArgs{
		ID: e.Run, Seq: out.Seq, CommittedSeq: last, ProgressAt: tx.Now, EventBytes: storedBytes(events), Activity: activity(events),
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return errMoved
	}
	out.Seq = last
	stored := slices.Clone(events)
	for i := range stored {
		stored[i].Kind = clean(stored[i].Kind, maxKind)
	}
	s.Hub.Notify(tx, event.RunTopic(e.Run))
	return insertEvents(tx, e.Run, e.Attempt, stored)
}

// isState tells whether an event changes the run or its task, and not the
// timeline alone.
func isState(e protocol.Event) bool {
	switch e.Kind {
	case protocol.EventAccepted, protocol.EventPrepared, protocol.EventStarted, protocol.EventPushed, protocol.EventFinished,
		protocol.EventParked, protocol.EventResumed, protocol.EventAsk, protocol.EventBlocker, protocol.EventAction,
		protocol.EventPage:
		return true
	}
	return false
}

// blamesBox tells whether an event may end its run for a fault of the box.
func blamesBox(e protocol.Event) bool {
	var f protocol.Finished
	return e.Kind == protocol.EventFinished && json.Unmarshal(e.Data, &f) == nil && f.Kind == task.BoxUnfit
}

// apply carries out the effect of one event of the live run r. at is the commit
// of its branch if the event ends the run.
func (s *Service) apply(tx *db.Tx, t *task.Row, r *Row, e protocol.Event, at string) error {
	switch e.Kind {
	case protocol.EventAccepted:
		if r.AcceptedAt == nil {
			r.AcceptedAt = &tx.Now
		}
	case protocol.EventPrepared:
		p, ok := read[protocol.Prepared](s, r, e)
		if !ok {
			return nil
		}
		r.ResumeSHA = db.NullText(clean(p.Resume, maxWord))
		if base := clean(p.Base, maxWord); base != "" {
			return s.Tasks.SetBase(tx, t, base)
		}
	case protocol.EventStarted:
		p, _ := read[protocol.Started](s, r, e)
		r.State, r.StartedAt = Live, &tx.Now
		r.AgentVersion, r.AgentSession = db.NullText(clean(p.Version, maxWord)), db.NullText(clean(p.Session, maxWord))
		r.Isolation = db.NullText(clean(p.Isolation, maxWord))
		r.IsolationHolds = holdsOf(p)
		if model := clean(p.Model, maxWord); model != "" {
			r.Model = model
			if err := session.NoteModel(tx, r.ID, model); err != nil {
				return err
			}
		}
		if t.Status == task.Claimed {
			return s.Tasks.MarkRunning(tx, t)
		}
	case protocol.EventPushed:
		p, ok := read[protocol.Pushed](s, r, e)
		sha := clean(p.SHA, maxWord)
		if !ok || sha == "" {
			return nil
		}
		if !p.WIP {
			r.Tip = &sha
			return nil
		}
		return s.Tasks.SetWIP(tx, t, sha, paths(p.Paths))
	case protocol.EventParked:
		r.State = Parked
	case protocol.EventResumed:
		r.State, r.WokenAt = Live, nil
		_, err := resumeRun.Exec(tx, r.ID)
		return err
	case protocol.EventAsk, protocol.EventBlocker, protocol.EventAction, protocol.EventPage:
		return s.declared(tx, t, r, e)
	case protocol.EventFinished:
		f, ok := read[protocol.Finished](s, r, e)
		if !ok {
			f = protocol.Finished{State: protocol.Failed, Kind: task.AgentCrashed,
				Error: "The box's last word about the run could not be read."}
		}
		// The envelope may hold the end together with the events before it.
		if err := store(tx, r); err != nil {
			return err
		}
		return s.finish(tx, t, r, Ending{f, at})
	}
	return nil
}

// read decodes the data of an event. Malformed data has no effect: the box
// would send the same again. It is logged for debugging only, because a box
// could send nothing else.
func read[T any](s *Service, r *Row, e protocol.Event) (v T, ok bool) {
	if err := json.Unmarshal(e.Data, &v); err != nil {
		s.Logger.Debug("event with malformed data", "run", r.ID, "seq", e.Seq, "kind", e.Kind, "error", err)
		return *new(T), false
	}
	return v, true
}

// finish ends a run as its box reports and moves the task on.
func (s *Service) finish(tx *db.Tx, t *task.Row, r *Row, f Ending) error {
	f.Tip, f.Base, f.Session = clean(f.Tip, maxWord), clean(f.Base, maxWord), clean(f.Session, maxWord)
	f.Error, f.Report, f.Output, f.Paths = clean(f.Error, maxError), clean(f.Report, maxReport), clean(f.Output, maxOutput), paths(f.Paths)
	if f.Left = leftOut(&f.Finished); len(f.Left) > 0 {
		r.LeftOut = &db.JSON[[]protocol.LeftOut]{V: f.Left}
	}
	if f.State == protocol.Succeeded && undelivered(t, r, &f.Finished) {
		f.State, f.Kind, f.Error = protocol.Failed, task.ReportMissing, "The agent ended without commits and without a report."
	}
	outcome, kind := outcomeOf(&f.Finished)
	if outcome == Succeeded {
		if _, wrong, why := t.Result(f.Report); wrong != "" {
			// The next try begins from the pushed commits.
			outcome, kind = Failed, wrong
			f.State, f.Kind, f.Error, f.WIP = protocol.Failed, wrong, why, f.WIP || f.Tip != ""
		}
	}
	unfit := kind == task.BoxUnfit // also when the halt below changes kind
	if r.Halting != "" && outcome != Succeeded {
		// A refused call may have made the agent give up before the halt came,
		// and the agent takes the refusal for a failure of the provider.
		kind, f.Error = r.Halting, cmp.Or(r.HaltingWhy, f.Error)
		if outcome == Failed {
			outcome = Interrupted
		}
	}
	if f.Session != "" {
		r.AgentSession = &f.Session
	}
	if f.Tip != "" {
		r.Tip = &f.Tip
	}
	r.Report, r.ReportBy = db.NullText(f.Report), nil
	if r.Report != nil {
		by := "final_turn"
		if f.ReportBy == "report_md" {
			by = f.ReportBy
		}
		r.ReportBy = &by
	}
	if unfit {
		shown, err := s.Boxes.FaultShown(tx, r.BoxID, f.Error)
		if err != nil {
			return err
		}
		if err := BoxBlamed.Send(tx, Blame{r.BoxID, f.Error}); err != nil {
			return err
		}
		f.Error = shown
	}
	if err := s.end(tx, r, outcome, kind, f.Error); err != nil {
		return err
	}
	if f.WIP && f.Tip != "" {
		if err := s.Tasks.SetWIP(tx, t, f.Tip, f.Paths); err != nil {
			return err
		}
	}
	if t.Status == task.Claimed && outcome == Succeeded {
		// The run ended before its box said that it had started.
		if err := s.Tasks.MarkRunning(tx, t); err != nil {
			return err
		}
	}
	if settled, err := s.Settler.Settle(tx, t, r, f); err != nil || settled {
		return err
	}
	if outcome == Succeeded {
		return s.Tasks.Complete(tx, t)
	}
	fail := s.Tasks.AttemptFailed
	if f.Busy && (kind == task.PushRejected || kind == task.CheckoutFailed) {
		fail = s.Tasks.HostSilent
	}
	if err := s.failed(tx, t, r, kind, detail(f.Error, kind), fail); err != nil {
		return err
	}
	if kind == task.Blocked && r.WokenAt != nil && t.Status == task.Held {
		// The answer that the task waited for came as the run ended.
		return s.Tasks.Release(tx, t)
	}
	return nil
}

// undelivered tells whether a run that succeeded has neither commits nor a
// report though its kind needs them.
func undelivered(t *task.Row, r *Row, f *protocol.Finished) bool {
	return f.Tip == "" && strings.TrimSpace(f.Report) == "" && t.Kind != task.KindCI && r.Agent != commandAgent
}

func detail(text, kind string) string {
	if text != "" {
		return text
	}
	return "The run ended with " + kind + "."
}

// clean cuts a box's text to about max bytes and removes the characters that
// the database cannot store.
func clean(s string, max int) string {
	if len(s) > max {
		s = s[:max]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}

func paths(list []string) []string {
	out := make([]string, 0, min(len(list), maxPaths))
	for _, p := range list[:min(len(list), maxPaths)] {
		out = append(out, clean(p, 500))
	}
	return out
}

// holdsOf returns the protections that the run's level of isolation held, 32 at
// most; nil if the box did not say.
func holdsOf(p protocol.Started) *db.JSON[[]string] {
	if p.Holds == nil {
		return nil
	}
	out := &db.JSON[[]string]{V: []string{}}
	for _, h := range p.Holds[:min(len(p.Holds), 32)] {
		out.V = append(out.V, clean(h, maxWord))
	}
	return out
}
