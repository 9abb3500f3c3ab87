package onboarding

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of this package. The handlers check the scopes.
func (s *Service) Ops() []op.Op {
	const group = "Billing keys, donations, grants, onboarding, MCP"
	return []op.Op{
		op.New(op.Row{
			ID:      "account.next_steps",
			Method:  "GET",
			Path:    "/v1/next-steps",
			Group:   "Account and platform operator",
			Rule:    policy.PerRequest(),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "What stands between this credential and its first scout",
			Doc: "Every rung is there, in order. One that the credential may not see is unknown, with the scope that is " +
				"missing. With repo, which needs read:repos, it says how that repository stands as well.",
		}, s.nextSteps),
		op.New(op.Row{
			ID:      "onboarding.state",
			Method:  "GET",
			Path:    "/v1/onboarding/state",
			Group:   group,
			Rule:    policy.PerRequest().Demanding(policy.ReadAccount),
			Summary: "How far the account has come",
			Doc:     "For the account as a whole, whoever asks. Needs read:account.",
		}, s.state),
		op.New(op.Row{
			ID:      "onboarding.advance",
			Method:  "POST",
			Path:    "/v1/onboarding/advance",
			Group:   group,
			Rule:    policy.PerRequest().Demanding(policy.WriteAccount),
			Refuses: []op.Refusal{{Status: 422, Slug: "platform-witnessed"}},
			Summary: "Report one event that only the caller can witness",
			Doc: "Takes welcome_seen and tour_finished; the other events the platform sees for itself, and refuses. " +
				"Reporting one again changes nothing. Needs write:account.",
		}, s.advance),
		op.New(op.Row{
			ID:      "project.install_landing",
			Method:  "GET",
			Path:    "/gh/installed",
			Group:   "Repositories",
			Rule:    policy.Public(),
			Lenient: true,
			NoStore: true,
			Summary: "The page on which a person lands after installing the App at a code host",
			Doc: "Says what happens next, and changes nothing: accounts and repositories come of what the code host tells. " +
				"Whether the installation is known is told to members of its account alone.",
		}, s.installed),
	}
}

type nextStepsIn struct {
	Repo string `json:"repo,omitempty" maxLength:"200" pattern:"^[^/]+/[^/]+$" says:"must have the form OWNER/NAME" doc:"owner/name, to ask about one repository as well"`
}

func (s *Service) nextSteps(ctx context.Context, in nextStepsIn) (out NextSteps, err error) {
	a := policy.From(ctx)
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		f, err := s.facts(tx)
		if err != nil {
			return err
		}
		about, repoID := (*NextStepRepo)(nil), ""
		if in.Repo != "" {
			if about, f.repo, err = s.readRepo(tx, a, in.Repo); err != nil {
				return err
			}
		}
		if f.repo != nil {
			repoID = f.repo.ID
		}
		if f.Fleet, err = s.Rungs.Fleet(tx, a.Label(), repoID); err != nil {
			return err
		}
		out = climb(a, f)
		out.Repo = about
		return nil
	})
	return out, err
}

// readRepo reads one repository if the actor has read:repos. about holds the facts that
// no rung shows. It returns fault.NotFound if there is no such repository.
func (s *Service) readRepo(tx *db.Tx, a policy.Actor, full string) (about *NextStepRepo, _ *askedRepo, err error) {
	about = &NextStepRepo{Repo: full}
	if !a.Scopes.Has(policy.Scopes(policy.ReadRepos)) {
		scope := string(policy.ReadRepos)
		about.MissingScope = &scope
		return about, nil, nil
	}
	owner, name, _ := strings.Cut(full, "/")
	r, ok, err := repoByName.Maybe(tx, tx.Account, owner, name)
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	if err != nil {
		return nil, nil, err
	}
	about.Onboarded = &r.Onboarded
	stored, reachable, err := s.Rungs.Secrets(tx, r.ID)
	if stored {
		about.Secrets = &reachable
	}
	return about, &askedRepo{full, r}, err
}

func (s *Service) state(ctx context.Context, _ op.None) (out State, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = s.read(tx)
		return err
	})
	return out, err
}

func (s *Service) read(tx *db.Tx) (State, error) {
	f, err := s.facts(tx)
	if err != nil {
		return State{}, err
	}
	events, err := reported.All(tx, tx.Account)
	return funnel(f, events), err
}

type advanceIn struct {
	Event string `json:"event" enum:"welcome_seen,tour_finished,key_set,gh_app_installed,yml_validated,yml_invalid" example:"welcome_seen" doc:"the last four are seen by the platform itself, and refused"`
}

func (s *Service) advance(ctx context.Context, in advanceIn) (out State, err error) {
	if witnessed[in.Event] {
		return out, fault.Newf(fault.Unprocessable, "platform-witnessed", "The platform sees %s for "+
			"itself; it cannot be reported.", in.Event)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := report.Exec(tx, tx.Account, in.Event, tx.Micros())
		if err != nil {
			return err
		}
		if out, err = s.read(tx); err != nil || n == 0 {
			return err // n is 0 for an event that was reported before
		}
		return advancedEvent.Record(tx, event.Subject{ID: tx.Account}, advancedData{Event: in.Event, State: string(out.State)})
	})
	return out, err
}
