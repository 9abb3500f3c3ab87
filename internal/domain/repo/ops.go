package repo

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Repositories"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "project.list", Method: "GET", Path: "/v1/repos", Group: group, Rule: policy.Require(policy.ReadRepos), Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The account's repositories, newest first"}, s.list),
		op.New(op.Row{ID: "project.get", Method: "GET", Path: "/v1/repos/{owner}/{repo}", Group: group, Rule: policy.Require(policy.ReadRepos),
			Summary: "One repository"}, s.get),
		op.New(op.Row{ID: "project.update", Method: "PATCH", Path: "/v1/repos/{owner}/{repo}", Group: group, Rule: policy.Require(policy.WriteRepos),
			Refuses: []op.Refusal{{Status: 402, Slug: "payment-required"}},
			Summary: "Turn a repository's switches"}, s.update),
		op.New(op.Row{ID: "project.policy_get", Method: "GET", Path: "/v1/repos/{owner}/{repo}/policy", Group: group, Rule: policy.Require(policy.ReadRepos),
			Summary: "The policy in force, and why it is not the file's"}, s.policyGet),
		op.New(op.Row{ID: "project.policy_validate", Method: "POST", Path: "/v1/repos/{owner}/{repo}/policy/validate", Group: group, Rule: policy.Require(policy.WriteRepos),
			Summary: "Check a policy file without storing it"}, s.policyValidate),
	}
}

func (s *Service) wire(r row) Repository {
	out := Repository{
		ID: r.ID, Owner: r.Owner, Repo: r.Name, FullName: r.Owner + "/" + r.Name, Host: r.Host,
		CloneURL: s.Host.CloneURL(r.ref().HostRepo()), DefaultBranch: r.DefaultBranch, Private: r.Private, Enabled: r.Enabled,
		DonationsEnabled: r.DonationsEnabled, AIFirst: r.AIFirst, CanaryEnabled: r.CanaryEnabled, PublicStatsEnabled: r.PublicStatsEnabled,
		LastActivityAt: r.LastActivityAt, CreatedAt: r.CreatedAt,
	}
	if r.PolicyYML != nil {
		valid := r.PolicyError == nil
		out.PolicyValid = &valid
	}
	return out
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Repository], error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[Repository]{}, err
	}
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := op.Page[Repository]{Data: make([]Repository, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = s.wire(r)
	}
	return out, nil
}

type nameIn struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
}

func (in nameIn) find(tx *db.Tx) (row, error) { return in.get(tx, byName) }

// lock is find that keeps others from changing the row meanwhile.
func (in nameIn) lock(tx *db.Tx) (row, error) { return in.get(tx, byName.ForUpdate()) }

func (in nameIn) get(tx *db.Tx, q db.Query[row]) (row, error) {
	r, ok, err := q.Maybe(tx, tx.Account, in.Owner, in.Repo)
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	return r, err
}

func (s *Service) get(ctx context.Context, in nameIn) (Repository, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = in.find(tx)
		return err
	})
	if err != nil {
		return Repository{}, err
	}
	return s.wire(r), nil
}

type updateIn struct {
	nameIn
	Enabled            *bool `json:"enabled,omitempty"`
	DonationsEnabled   *bool `json:"donations_enabled,omitempty"`
	AIFirst            *bool `json:"ai_first,omitempty"`
	CanaryEnabled      *bool `json:"canary_enabled,omitempty"`
	PublicStatsEnabled *bool `json:"public_stats_enabled,omitempty"`
}

func (s *Service) update(ctx context.Context, in updateIn) (out Repository, err error) {
	changed := map[string]bool{}
	turn := func(name string, to *bool, sw *bool) {
		if to != nil {
			changed[name] = *to
			*sw = *to
		}
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if in.Enabled == nil && in.DonationsEnabled == nil && in.AIFirst == nil && in.CanaryEnabled == nil && in.PublicStatsEnabled == nil {
			return fault.Field("", "at least one of enabled, donations_enabled, ai_first, canary_enabled, public_stats_enabled is required")
		}
		r, err := in.lock(tx)
		if err != nil {
			return err
		}
		if in.Enabled != nil && *in.Enabled && r.Private {
			if err := covered(tx); err != nil {
				return err
			}
		}
		turn("enabled", in.Enabled, &r.Enabled)
		turn("donations_enabled", in.DonationsEnabled, &r.DonationsEnabled)
		turn("ai_first", in.AIFirst, &r.AIFirst)
		turn("canary_enabled", in.CanaryEnabled, &r.CanaryEnabled)
		turn("public_stats_enabled", in.PublicStatsEnabled, &r.PublicStatsEnabled)
		if _, err := update.Exec(tx, tx.Account, r.ID, r.Enabled, r.DonationsEnabled, r.AIFirst, r.CanaryEnabled, r.PublicStatsEnabled); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.QueueTopic(tx.Account))
		out = s.wire(r)
		return event.Record(tx, event.Change{Kind: "repo.updated", Object: r.ID, RepoID: r.ID, Data: changed})
	})
	return out, err
}

// covered refuses private repositories on a plan without them.
func covered(tx *db.Tx) error {
	tier, err := tierOf.One(tx, tx.Account)
	if err != nil {
		return err
	}
	if tier == "free" {
		return fault.New(fault.PaymentRequired, "", "The free plan does not cover private repositories: make the repository public, or move the account to a paid plan.")
	}
	return nil
}

// EffectivePolicy is the answer of project.policy_get.
type EffectivePolicy struct {
	Policy   Policy  `json:"policy" doc:"the policy in force, defaults filled in"`
	YML      *string `json:"yml" doc:"the file on the default branch; null: there is none"`
	Fallback *string `json:"fallback" doc:"null, or why the defaults are in force"`
}

func (s *Service) policyGet(ctx context.Context, in nameIn) (EffectivePolicy, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = in.find(tx)
		return err
	})
	if err != nil {
		return EffectivePolicy{}, err
	}
	out := EffectivePolicy{Policy: r.policy(), YML: r.PolicyYML, Fallback: r.PolicyError}
	if r.PolicyYML == nil {
		none := "there is no " + PolicyPath + " on " + r.DefaultBranch
		out.Fallback = &none
	}
	return out, nil
}

type validateIn struct {
	nameIn
	YML string `json:"yml"`
}

// PolicyVerdict tells whether a policy file would be taken.
type PolicyVerdict struct {
	OK     bool     `json:"ok"`
	Errors []string `json:"errors"`
}

func (s *Service) policyValidate(ctx context.Context, in validateIn) (PolicyVerdict, error) {
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		_, err := in.find(tx)
		return err
	})
	if err != nil {
		return PolicyVerdict{}, err
	}
	_, msgs := ParsePolicy([]byte(in.YML))
	return PolicyVerdict{OK: msgs == nil, Errors: append([]string{}, msgs...)}, nil
}
