package run

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// signs tell failures of a provider, which agents report as their own, by what
// they say. The first that matches decides.
var signs = []struct {
	pattern *regexp.Regexp
	kind    string
}{
	{says(`429`, `rate.?limit|too many requests`), task.ProviderRateLimit},
	{says(`402`, `insufficient.?(?:quota|credit|funds)|exceeded your current quota|credit balance`), task.ProviderQuota},
	{says(`401|403`, `invalid.{0,10}api.?key|authentication.?error|unauthori[sz]ed`), task.ProviderAuth},
	{says(`413`, `context.?(?:length|window)|prompt is too long|maximum context`), task.ContextOverflow},
	{says(``, `model.{0,40}(?:not found|does not exist|unavailable|not available)`), task.ModelUnavailable},
	{says(`500|502|503|504|529`, `overloaded|service unavailable|bad gateway`), task.ProviderUnavailable},
}

// says matches the words, or one of the HTTP statuses where it is named as one.
func says(status, words string) *regexp.Regexp {
	if status != "" {
		words = `(?:http|status|code|error)[^0-9\n]{0,12}(?:` + status + `)\b|` + words
	}
	return regexp.MustCompile(`(?i)` + words)
}

// failureKind derives the kind of a failure from what was reported. A kind that
// says more than "the agent failed" is believed.
func failureKind(kind, text string) string {
	if task.KnownFailure(kind) && kind != task.AgentError && kind != task.AgentCrashed {
		return kind
	}
	for _, s := range signs {
		if s.pattern.MatchString(text) {
			return s.kind
		}
	}
	if task.KnownFailure(kind) {
		return kind
	}
	return task.AgentError
}

// outcomeOf reads a box's last word: how the run ended, and the failure kind
// unless it succeeded.
func outcomeOf(f *protocol.Finished) (outcome, kind string) {
	switch f.State {
	case protocol.Succeeded:
		return Succeeded, ""
	case protocol.Blocked:
		return Interrupted, task.Blocked
	case protocol.Halted:
		// Halts that the control plane asked for have fenced the run already;
		// what is left is a box that gives its work back.
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

// end ends a live, locked run: its tokens die, its session is over, and who
// follows it is told.
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

// Stop takes an in-flight task's run away from its box. The task is locked and is
// moved by the caller.
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
	if why == task.StopCancelled {
		mode = protocol.HaltNow
	}
	return CommandOwed.Send(tx, Command{r.BoxID, protocol.Command{V: protocol.Version, ID: id.New(), Kind: protocol.CommandHalt,
		Run: r.ID, Attempt: int(r.Attempt), Mode: mode, Reason: why}})
}

// Halt makes the box of a live run save what there is and end it; the task then
// goes where a failure of the kind leads. Again, and of an ended run, it does
// nothing.
func Halt(tx *db.Tx, runID, kind, why string) error {
	r, ok, err := selectAnywhere.ForUpdate().Maybe(tx, runID)
	if err != nil || !ok || r.EndedAt != nil || r.Halting != "" {
		return err
	}
	if _, err := setHalting.Exec(tx, r.ID, kind, why); err != nil {
		return err
	}
	return CommandOwed.Send(tx, Command{r.BoxID, protocol.Command{V: protocol.Version, ID: id.New(), Kind: protocol.CommandHalt,
		Run: r.ID, Attempt: int(r.Attempt), Mode: protocol.HaltGraceful, Reason: why}})
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

// Pulse tells how the newest run of a task of tx.Account is doing; nil if it has
// had none.
func Pulse(tx *db.Tx, taskID string) (*task.Pulse, error) {
	rows, err := selectAttempts.All(tx, tx.Account, taskID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := wire(&rows[len(rows)-1])
	return &task.Pulse{ID: r.ID, State: r.State, Outcome: r.Outcome, Agent: r.Agent, Model: r.Model, Isolation: r.Isolation,
		LastSeq: r.LastSeq, ProgressAt: rows[len(rows)-1].ProgressAt.Truncate(time.Millisecond), LeaseExpiresAt: r.LeaseExpiresAt}, nil
}

// lose ends a run that its box no longer holds, if still says so once it is
// locked, and puts its task back into the queue.
func (s *Service) lose(tx *db.Tx, l lease, kind, text string, still func(*Row) bool) error {
	defer tx.About(l.AccountID)()
	t, ok, err := task.Lock(tx, l.AccountID, l.TaskID)
	if err != nil || !ok {
		return err
	}
	r, ok, err := selectOfAccount.ForUpdate().Maybe(tx, l.AccountID, l.ID)
	if err != nil || !ok || r.EndedAt != nil || still != nil && !still(&r) {
		return err
	}
	if r.Halting != "" {
		kind, text = r.Halting, cmp.Or(r.HaltingWhy, text)
	}
	if err := s.end(tx, &r, Lost, kind, text); err != nil {
		return err
	}
	return s.Tasks.AttemptFailed(tx, &t, kind, text)
}

// Drained ends the live runs of a box that was drained and is not there to hand
// them back, and queues their tasks again. It answers how many there were.
func (s *Service) Drained(tx *db.Tx, boxID string) (int, error) {
	return s.evacuate(tx, boxID, task.BoxDrained, "The box was drained while it was offline.")
}

// Revoked ends the live runs of a box that was revoked, and queues their tasks
// again: no token of them is worth anything any more, not even for saving the
// work. It answers how many there were.
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
			// Nothing is saved by a box that is not to be trusted any more.
			if _, err := forgetTokens.Exec(tx, r.ID); err != nil {
				return i, err
			}
		}
	}
	return len(runs), nil
}

// HandBack takes back the live runs of a box that was stopped, but those that it
// still names. A run that it had not begun was given to it as it stopped: its task
// goes back into the queue as if it had not been tried. The caller holds the lock
// of the box.
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
