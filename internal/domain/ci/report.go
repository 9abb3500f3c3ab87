package ci

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/observe"
)

// CheckName is the name of the check of a repository's own command at hosts that keep
// checks.
const CheckName = "yardmaster/check"

// States of a check at a host, see codehost.OwnCheck.
const (
	atHostQueued    = "queued"
	atHostRunning   = "running"
	atHostPassed    = "success"
	atHostFailed    = "failure"
	atHostCancelled = "cancelled"
)

// Times and sizes of reports. What a host has is held against the check every
// reportEvery, until the host has its end.
const (
	reportEvery = 5 * time.Minute
	reportBytes = 48 << 10 // of the end of the output; a host takes 65,535 characters
)

// reportKind tells a host the state of a check. Only the newest state is told.
var reportKind = intent.Declare[reportArgs, string]("ci.report", true)

type reportArgs struct{ CheckID, State string }

// atHost is the state that a host is to have of a check. The check of a repository that
// was switched off is not waited for.
func (r reportRow) atHost(enabled bool) string {
	switch r.Status {
	case Passed:
		return atHostPassed
	case Failed:
		return atHostFailed
	case Queued, Running:
		if enabled {
			return map[string]string{Queued: atHostQueued, Running: atHostRunning}[r.Status]
		}
	}
	return atHostCancelled
}

// over tells whether a check has ended.
func (r reportRow) over() bool { return r.Status != Queued && r.Status != Running }

// object is the line of the intents about a check.
func (r reportRow) object() string {
	if r.PRID != "" {
		return r.PRID + "/check"
	}
	return "check:" + r.ID
}

// keepsChecks tells whether the host of a repository keeps checks.
func (s *Service) keepsChecks(r repo.Ref) bool {
	forge, err := s.Hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(codehost.KeepChecks)
}

// report has the host of a repository told the state of a check of tx.Account. fresh says
// that the check begins anew.
func (s *Service) report(tx *db.Tx, r repo.Ref, checkID string, fresh bool) error {
	if !s.keepsChecks(r) {
		return nil
	}
	if _, err := wantReport.Exec(tx, wantReportArgs{CheckID: checkID, AccountID: tx.Account, Fresh: fresh}); err != nil {
		return err
	}
	s.reportQueue.Add(tx, checkID, due.Entry{Account: tx.Account, After: reportEvery})
	c, ok, err := reportOf.Maybe(tx, tx.Account, checkID)
	if err != nil || !ok {
		return err
	}
	return s.putReport(tx, r, c)
}

func (s *Service) putReport(tx *db.Tx, r repo.Ref, c reportRow) error {
	rank := int64(intent.ForReviews)
	if c.over() {
		rank = intent.ForRuns
	}
	_, err := reportKind.Put(tx, intent.Want[reportArgs]{
		Repo: r, Object: c.object(), Rank: rank, Args: reportArgs{CheckID: c.ID, State: c.atHost(r.Enabled)},
	})
	return err
}

// reportChange is report for a check of which the caller has no repository.
func (s *Service) reportChange(tx *db.Tx, repoID, checkID string) error {
	r, ok, err := repo.ByID(tx, repoID)
	if err != nil || !ok {
		return err
	}
	return s.report(tx, r, checkID, false)
}

// readReport holds what a host was told against the check: one whose end was not told is
// told again, and one of a repository that was switched off is ended at its host.
func (s *Service) readReport(ctx context.Context, j due.Job[struct{}]) due.Outcome {
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		over, err := s.heldAgainst(tx, j.Key)
		switch {
		case err != nil:
			observe.Complain(ctx, s.Logger, "hold a report against its check", err, slog.String("id", j.Key))
			return due.Outcome{}, err
		case over:
			return due.Done(func(tx *db.Tx) error { return s.endReport(tx, j.Key) }), nil
		}
		return due.Wait(reportEvery), nil
	})
}

// heldAgainst tells whether the host needs to be told no more of a check.
func (s *Service) heldAgainst(tx *db.Tx, checkID string) (over bool, err error) {
	c, ok, err := reportOf.Maybe(tx, tx.Account, checkID)
	if err != nil || !ok {
		return true, err
	}
	r, there, err := repo.ByID(tx, c.RepoID)
	if err != nil || !there {
		return true, err
	}
	if c.Told == c.atHost(r.Enabled) {
		return c.over(), nil
	}
	if waits, err := intent.Waits(tx, r.ID, c.object()); err != nil || waits || !s.keepsChecks(r) {
		return false, err
	}
	return false, s.putReport(tx, r, c)
}

// endReport has the host of a check told no more.
func (s *Service) endReport(tx *db.Tx, checkID string) error {
	s.reportQueue.Drop(tx, checkID)
	_, err := endReport.Exec(tx, checkID)
	return err
}

// reporter carries out ci.report.
type reporter struct{ s *Service }

// Still implements intent.Handler: a state that the check has left is not told.
func (reporter) Still(tx *db.Tx, c intent.Call[reportArgs]) (bool, error) {
	now, ok, err := reportOf.Maybe(tx, tx.Account, c.Args.CheckID)
	return ok && now.atHost(c.Repo.Enabled) == c.Args.State && now.Told != c.Args.State, err
}

// Do implements intent.Handler.
func (h reporter) Do(ctx context.Context, f codehost.Forge, c intent.Call[reportArgs]) (string, error) {
	var now reportRow
	err := h.s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now, err = reportOf.One(tx, tx.Account, c.Args.CheckID)
		return err
	})
	if err != nil {
		return "", &codehost.BusyError{Cause: err}
	}
	title, summary := now.text(c.Args.State)
	out := codehost.OwnCheck{Name: CheckName, SHA: now.SHA, State: c.Args.State, Title: title, Summary: summary}
	if now.PRID != "" {
		out.DetailsURL = h.s.Pulls.Page(now.PRID)
	}
	return f.SetCheck(ctx, c.Repo.HostRepo(), c.ID, out)
}

// Done implements intent.Handler. A host that refuses the report is not asked again: the
// refusal itself is brought to people by intents. One that did not answer is.
func (h reporter) Done(tx *db.Tx, c intent.Call[reportArgs], _ string, failure error) error {
	if _, busy := errors.AsType[*codehost.BusyError](failure); busy {
		return nil
	}
	if failure != nil {
		return h.s.endReport(tx, c.Args.CheckID)
	}
	_, err := toldReport.Exec(tx, c.Args.CheckID, c.Args.State)
	return err
}

// text is a check as people read it at a host.
func (r reportRow) text(state string) (title, summary string) {
	command := fenced(r.Command)
	switch state {
	case atHostQueued:
		return "Waits for a box", "A box is to run:\n\n" + command
	case atHostRunning:
		return "Runs on a box", "A box runs:\n\n" + command
	case atHostPassed:
		title = "Passed"
	case atHostFailed:
		title = "Failed"
		if r.ExitCode != nil {
			title = fmt.Sprintf("Failed with exit code %d", *r.ExitCode)
		}
	default:
		return "Ended without a result", "It was cancelled, or no box has run it to its end:\n\n" + command
	}
	summary = "A box has run:\n\n" + command
	if r.Output != "" {
		summary += "\n\nThe end of the output:\n\n" + fenced(r.Output[max(0, len(r.Output)-reportBytes):])
	}
	return title, summary
}

// fenced is a text in a block that the text cannot end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSpace(strings.ToValidUTF8(text, "")) + "\n" + fence
}
