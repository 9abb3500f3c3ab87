package onboarding

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

// Ops are the capabilities of this package. Their handlers assert the scopes.
func (s *Service) Ops() []op.Op {
	const group = "Billing keys, donations, grants, onboarding, MCP"
	return []op.Op{
		op.New(op.Row{ID: "account.next_steps", Method: "GET", Path: "/v1/next-steps", Group: "Account and platform operator", Rule: policy.PerRequest(),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "What stands between this credential and its first scout"}, s.nextSteps),
		op.New(op.Row{ID: "onboarding.state", Method: "GET", Path: "/v1/onboarding/state", Group: group, Rule: policy.PerRequest(),
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}},
			Summary: "How far the account has come"}, s.state),
		op.New(op.Row{ID: "onboarding.advance", Method: "POST", Path: "/v1/onboarding/advance", Group: group, Rule: policy.PerRequest(),
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}, {Status: 422, Slug: "platform-witnessed"}},
			Summary: "Report one event that only the caller can witness"}, s.advance),
	}
}

// demand asserts a scope from within a handler.
func demand(ctx context.Context, scope policy.Scope) error {
	return policy.Require(scope).Check(policy.From(ctx))
}

type nextStepsIn struct {
	Repo string `json:"repo,omitempty" maxLength:"200" pattern:"^[^/]+/[^/]+$" doc:"owner/name, to ask about one repository as well"`
}

func (s *Service) nextSteps(ctx context.Context, in nextStepsIn) (out NextSteps, err error) {
	if in.Repo != "" {
		if err := demand(ctx, policy.ReadRepos); err != nil {
			return out, err
		}
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		f, err := s.facts(tx)
		if err != nil {
			return err
		}
		out = climb(policy.From(ctx), f)
		if in.Repo == "" {
			return nil
		}
		owner, name, _ := strings.Cut(in.Repo, "/")
		onboarded, ok, err := repoOnboarded.Maybe(tx, tx.Account, owner, name)
		if err == nil && !ok {
			err = fault.Missing("repository")
		}
		out.Repo = &NextStepRepo{Repo: in.Repo, Onboarded: onboarded}
		return err
	})
	return out, err
}

func (s *Service) state(ctx context.Context, _ op.None) (out OnboardingState, err error) {
	if err := demand(ctx, policy.ReadAccount); err != nil {
		return out, err
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = s.read(tx)
		return err
	})
	return out, err
}

func (s *Service) read(tx *db.Tx) (OnboardingState, error) {
	f, err := s.facts(tx)
	if err != nil {
		return OnboardingState{}, err
	}
	events, err := reported.All(tx, tx.Account)
	return funnel(f, events), err
}

type advanceIn struct {
	Event string `json:"event" enum:"welcome_seen,tour_finished,key_set,gh_app_installed,yml_validated,yml_invalid" doc:"the last four are seen by the platform itself, and refused"`
}

func (s *Service) advance(ctx context.Context, in advanceIn) (out OnboardingState, err error) {
	if err := demand(ctx, policy.WriteAccount); err != nil {
		return out, err
	}
	if witnessed[in.Event] {
		return out, fault.Newf(fault.Unprocessable, "platform-witnessed", "The platform sees %s for itself; it cannot be reported.", in.Event)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := report.Exec(tx, tx.Account, in.Event, tx.Micros())
		if err != nil {
			return err
		}
		if out, err = s.read(tx); err != nil || n == 0 {
			return err // n is 0: reported before
		}
		return event.Record(tx, event.Change{Kind: "onboarding.advanced", Object: tx.Account, Data: map[string]string{"event": in.Event, "state": out.State}})
	})
	return out, err
}
