package run

import (
	"cmp"
	"regexp"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// providerFailures recognise failures of a provider, which agents report as
// their own, by their text. The first match decides.
var providerFailures = sync.OnceValue(func() []saying {
	return []saying{
		{says(`429`, `rate.?limit|too many requests`), task.ProviderRateLimit},
		{says(`402`, `insufficient.?(?:quota|credit|funds)|exceeded your current quota|credit balance`), task.ProviderQuota},
		{says(`401|403`, `invalid.{0,10}api.?key|authentication.?error|unauthori[sz]ed`), task.ProviderAuth},
		{says(`413`, `context.?(?:length|window)|prompt is too long|maximum context`), task.ContextOverflow},
		{says(``, `model.{0,40}(?:not found|does not exist|unavailable|not available)`), task.ModelUnavailable},
		{says(`500|502|503|504|529`, `overloaded|service unavailable|bad gateway`), task.ProviderUnavailable},
	}
})

// saying is a pattern and the failure that it tells of.
type saying struct {
	pattern *regexp.Regexp
	kind    string
}

// says returns a pattern for the words, or for one of the HTTP statuses where
// the text calls it a status.
func says(status, words string) *regexp.Regexp {
	if status != "" {
		words = `(?:http|status|code|error)[^0-9\n]{0,12}(?:` + status + `)\b|` + words
	}
	return regexp.MustCompile(`(?i)` + words)
}

// failureKind derives the kind of a failure from the report of a box. A
// reported kind that is more specific than "the agent failed" is kept.
func failureKind(kind, text string) string {
	if task.KnownFailure(kind) && kind != task.AgentError && kind != task.AgentCrashed {
		return kind
	}
	for _, s := range providerFailures() {
		if s.pattern.MatchString(text) {
			return s.kind
		}
	}
	if task.KnownFailure(kind) {
		return kind
	}
	return task.AgentError
}

// outcomeOf returns how the run ended by its box's last event, and the failure
// kind unless it succeeded.
func outcomeOf(f *protocol.Finished) (outcome, kind string) {
	switch f.State {
	case protocol.Succeeded:
		return Succeeded, ""
	case protocol.Blocked:
		return Interrupted, task.Blocked
	case protocol.Halted:
		// A halt that the control plane asked for has ended the run already, so
		// this box hands back its work.
		if task.KnownFailure(f.Kind) {
			return Interrupted, f.Kind
		}
		return Interrupted, task.BoxDrained
	case protocol.Lost:
		if task.KnownFailure(f.Kind) {
			return Lost, f.Kind
		}
		return Lost, task.BoxLost
	}
	return Failed, failureKind(f.Kind, f.Error)
}

// end ends a live, locked run and its session, revokes its tokens, records the
// event and wakes the streams that follow the run.
func (s *Service) end(tx *db.Tx, r *Row, outcome, kind, text string) error {
	r.State, r.Outcome, r.FailureKind, r.Error, r.EndedAt = Ended, &outcome, db.NullText(kind), db.NullText(text), &tx.Now
	_, err := endRun.Exec(tx, *r)
	if err != nil {
		return err
	}
	if _, err := revokeTokens.Exec(tx, r.ID, tx.Now); err != nil {
		return err
	}
	if err := session.End(tx, r.ID, outcome); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.RunTopic(r.ID))
	return endedEvent.Record(tx, event.Subject{ID: r.ID, Account: r.AccountID, RepoID: r.RepoID},
		endedData{Attempt: r.Attempt, BoxID: r.BoxID, FailureKind: r.FailureKind, Outcome: outcome, TaskID: r.TaskID})
}

// Stop ends the run of a task in flight and has its box stop it. The caller has
// locked the task, and moves it.
func (s *Service) Stop(tx *db.Tx, u task.Unwanted) error {
	t, why := u.Task, u.Why
	r, ok, err := selectLive.ForUpdate().Maybe(tx, t.AccountID, t.ID)
	if err != nil || !ok {
		return err
	}
	if err := s.end(tx, &r, Interrupted, "", why); err != nil {
		return err
	}
	mode := protocol.HaltGraceful
	if why == task.StopCancelled || why == task.StopRepoGone { // nobody wants the work, or it can be saved nowhere
		mode = protocol.HaltNow
	}
	return CommandQueued.Send(tx, Command{r.BoxID, protocol.Command{V: protocol.Version, ID: id.New(), Kind: protocol.CommandHalt,
		Run: r.ID, Attempt: int(r.Attempt), Mode: mode, Reason: why}})
}

// Halt makes the box of a live run save its work and end the run; the task then
// moves on as after a failure of the kind. A second call, and one for an ended
// run, changes nothing.
func Halt(tx *db.Tx, runID, kind, why string) error {
	r, ok, err := selectAnywhere.ForUpdate().Maybe(tx, runID)
	if err != nil || !ok || r.EndedAt != nil || r.Halting != "" {
		return err
	}
	if _, err := setHalting.Exec(tx, r.ID, kind, why); err != nil {
		return err
	}
	return CommandQueued.Send(tx, Command{r.BoxID, protocol.Command{V: protocol.Version, ID: id.New(), Kind: protocol.CommandHalt,
		Run: r.ID, Attempt: int(r.Attempt), Mode: protocol.HaltGraceful, Reason: why}})
}

// Park is Halt, after which the task waits until a time without a try being counted. Only the
// first call that halts a run decides what for.
func Park(tx *db.Tx, runID, kind, why string, until time.Time) error {
	r, ok, err := selectAnywhere.ForUpdate().Maybe(tx, runID)
	if err != nil || !ok || r.EndedAt != nil || r.Halting != "" {
		return err
	}
	if _, err := setParking.Exec(tx, r.ID, until); err != nil {
		return err
	}
	return Halt(tx, runID, kind, why)
}

// failed settles the task of a run that has ended without success, as fail does unless the run
// was parked.
func (s *Service) failed(tx *db.Tx, t *task.Row, r *Row, kind, text string, fail func(*db.Tx, *task.Row, string, string) error) error {
	if r.HaltingUntil != nil && kind == r.Halting {
		return s.Tasks.Parked(tx, t, kind, text, *r.HaltingUntil)
	}
	return fail(tx, t, kind, text)
}

// Endings lists how the tries of a task of tx.Account ended, oldest first.
func Endings(tx *db.Tx, taskID string) (out []task.Ending, err error) {
	rows, err := selectAttempts.All(tx, tx.Account, taskID)
	for _, r := range rows {
		if r.Outcome != nil {
			out = append(out, task.Ending{Outcome: *r.Outcome, FailureKind: r.FailureKind})
		}
	}
	return out, err
}

// Pulse describes the newest run of a task of tx.Account; nil if the task has
// had none.
func Pulse(tx *db.Tx, taskID string) (*task.Pulse, error) {
	rows, err := selectAttempts.All(tx, tx.Account, taskID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := wire(&rows[len(rows)-1])
	return &task.Pulse{ID: r.ID, State: r.State, Outcome: r.Outcome, Agent: r.Agent, Model: r.Model, Isolation: r.Isolation,
		LastSeq: r.LastSeq, ProgressAt: rows[len(rows)-1].ProgressAt, LeaseExpiresAt: r.LeaseExpiresAt}, nil
}

// lose ends a run that its box no longer holds, and puts its task back into the
// queue. If confirm is not nil, it decides, once the run is locked, whether
// that is still so.
func (s *Service) lose(tx *db.Tx, l lease, kind, text string, confirm func(*Row) bool) error {
	defer tx.About(l.AccountID)()
	t, ok, err := task.Lock(tx, l.AccountID, l.TaskID)
	if err != nil || !ok {
		return err
	}
	r, ok, err := selectOfAccount.ForUpdate().Maybe(tx, l.AccountID, l.ID)
	if err != nil || !ok || r.EndedAt != nil || confirm != nil && !confirm(&r) {
		return err
	}
	if r.Halting != "" {
		kind, text = r.Halting, cmp.Or(r.HaltingWhy, text)
	}
	if err := s.end(tx, &r, Lost, kind, text); err != nil {
		return err
	}
	return s.failed(tx, &t, &r, kind, text, s.Tasks.AttemptFailed)
}

// Drained ends the live runs of a box that was drained and is offline, so that
// it cannot hand them back, and puts their tasks back into the queue. It
// returns their number.
func (s *Service) Drained(tx *db.Tx, boxID string) (int, error) {
	return s.evacuate(tx, boxID, task.BoxDrained, "The box was drained while it was offline.")
}

// Revoked ends the live runs of a revoked box and puts their tasks back into
// the queue. No token of the runs is valid afterwards, not even for saving the
// work. It returns their number.
func (s *Service) Revoked(tx *db.Tx, boxID string) (int, error) {
	return s.evacuate(tx, boxID, task.BoxLost, "The box was revoked.")
}

func (s *Service) evacuate(tx *db.Tx, boxID, kind, text string) (int, error) {
	runs, err := selectLiveOnBox.All(tx, boxID)
	if err != nil {
		return 0, err
	}
	for i, r := range runs {
		if err := s.lose(tx, lease{r.ID, r.AccountID, r.TaskID}, kind, text, nil); err != nil {
			return i, err
		}
		if kind == task.BoxLost {
			// A box that is no longer trusted saves nothing.
			if _, err := forgetTokens.Exec(tx, r.ID); err != nil {
				return i, err
			}
		}
	}
	return len(runs), nil
}

// TakeBack ends the live runs that a box may not hold any more, because somebody has taken
// back what they had agreed to, and puts their tasks back into the queue. No token of the
// runs is valid afterwards. The caller holds the lock of the box.
func (s *Service) TakeBack(tx *db.Tx, boxID string) error {
	runs, err := selectStrayedOnBox.All(tx, boxID)
	for _, l := range runs {
		if err := s.takeBack(tx, l); err != nil {
			return err
		}
	}
	return err
}

// takeBack ends a run if its box may not hold it any more. What waits for the box of that
// account's is deleted.
func (s *Service) takeBack(tx *db.Tx, l lease) error {
	var box string // from which it is taken
	var failed error
	err := s.lose(tx, l, task.BoxLost, "The box may not take work of this account any more.", func(r *Row) bool {
		var stays bool
		if _, stays, failed = selectHeld.Maybe(tx, r.BoxID, r.ID, r.Attempt); failed == nil && !stays {
			box = r.BoxID
		}
		return box != ""
	})
	if err = cmp.Or(err, failed); err != nil || box == "" {
		return err
	}
	if _, err := forgetTokens.Exec(tx, l.ID); err != nil {
		return err
	}
	return s.Boxes.DropMessages(tx, box, l.AccountID)
}

// HandBack ends the live runs of a box that has stopped, except those that held
// names. A run that the box had not begun was given to it as it stopped: its
// task goes back into the queue as if it had not been tried. The caller holds
// the lock of the box.
func (s *Service) HandBack(tx *db.Tx, boxID string, held []protocol.RunRef) error {
	live, err := selectLiveOnBox.All(tx, boxID)
	if err != nil {
		return err
	}
	for i := range live {
		r := &live[i]
		if slices.ContainsFunc(held, func(h protocol.RunRef) bool { return h.Run == r.ID && int64(h.Attempt) == r.Attempt }) {
			continue
		}
		if err := s.handBack(tx, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) handBack(tx *db.Tx, r *Row) error {
	defer tx.About(r.AccountID)()
	t, ok, err := task.Lock(tx, r.AccountID, r.TaskID)
	if err != nil || !ok {
		return err
	}
	now, ok, err := selectOfAccount.ForUpdate().Maybe(tx, r.AccountID, r.ID)
	if err != nil || !ok || now.EndedAt != nil {
		return err
	}
	if now.AcceptedAt != nil || now.CommittedSeq > 0 || now.Halting != "" {
		return s.lose(tx, lease{r.ID, r.AccountID, r.TaskID}, task.BoxLost, "The box was stopped without the run.", nil)
	}
	if err := s.end(tx, &now, Lost, task.BoxDrained, "The box was stopped before it began the run."); err != nil {
		return err
	}
	return s.Tasks.Requeue(tx, &t, "box_left")
}
