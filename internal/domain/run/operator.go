package run

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// operatorOps are the capabilities for operators of the platform, who see a run
// of any account. A call that finds its run is recorded before it is answered.
func (s *Service) operatorOps() []op.Op {
	const operators = "Account and platform operator"
	read := policy.Require(policy.AdminReadRuns)
	return []op.Op{
		op.New(op.Row{ID: "account.platform_run_get", Method: "GET", Path: "/v1/admin/fleet/runs/{runId}", Group: operators, Rule: read,
			Summary: "The pulse of one run of any account; the look is noted",
			Doc:     "For operators. The look is written to the platform's audit log before it is answered."}, s.platformRun),
		op.Stream(op.Row{ID: "account.platform_run_tail", Method: "GET", Path: "/v1/admin/fleet/runs/{runId}/events",
			Group: operators, Rule: read, Events: frames(false),
			Summary: "Follow one run of any account; the look is noted, and the stream cannot be resumed",
			Doc: "For operators. Sends the run from its first event and follows it to its end; the look is written to the platform's audit " +
				"log before the stream opens."}, s.platformTail),
	}
}

// PlatformRun is a run of any account, with its owner.
type PlatformRun struct {
	_          struct{}  `doc:"A run of any account, with its owner." schema:"PlatformRun"`
	AccountID  string    `json:"account_id" format:"uuid" doc:"the account it belongs to"`
	Account    string    `json:"account" example:"acme" doc:"login of the account"`
	ProgressAt time.Time `json:"progress_at" doc:"when it last did something"`
	Run        Run       `json:"run" doc:"the run itself"`
}

func (s *Service) platformRun(ctx context.Context, in tailIn) (out PlatformRun, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, err := inspect(tx, "account.platform_run_get", in.RunID)
		if err != nil {
			return err
		}
		login, err := people.AccountLogin(tx, r.AccountID)
		if err != nil {
			return err
		}
		out = PlatformRun{AccountID: r.AccountID, Account: login, ProgressAt: r.ProgressAt, Run: wire(&r)}
		used, err := session.UsageOf(tx, r.AccountID, r.TaskID)
		for _, u := range used {
			if u.RunID == r.ID {
				out.Run.Usage = usageOf(u)
			}
		}
		return err
	})
	return out, err
}

// inspect finds a run of any account, and records the inspection. It returns
// fault.NotFound, and records nothing, if there is no such run.
func inspect(tx *db.Tx, capability, runID string) (Row, error) {
	if !id.Valid(runID) {
		return Row{}, fault.Missing("run")
	}
	r, ok, err := selectAnywhere.Maybe(tx, runID)
	if err == nil && !ok {
		err = fault.Missing("run")
	}
	if err != nil {
		return r, err
	}
	return r, event.RecordRead(tx, event.OperatorRead{Capability: capability, Account: r.AccountID, Run: runID})
}

func (s *Service) platformTail(ctx context.Context, in tailIn, sink *op.Sink) error {
	var r Row
	err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		r, err = inspect(tx, "account.platform_run_tail", in.RunID)
		return err
	})
	if err != nil {
		return err
	}
	return s.follow(db.WithAccount(ctx, r.AccountID), r.ID, 0, func(e Event) error {
		return sink.Send("", "event", e)
	}, sink)
}
