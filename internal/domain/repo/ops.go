package repo

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const (
	group     = "Repositories"
	ofAccount = "Account and platform operator"
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "project.list", Method: "GET", Path: "/v1/repos", Group: group, Rule: policy.Require(policy.ReadRepos),
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"enabled": {"true", "false"}}},
			Summary: "The account's repositories, newest first; q searches owner/name",
			Doc:     "Without a filter enabled ones and others. A repository is made known by a first push, by the installation of the App at its host, or by project.create."}, s.list),
		op.New(op.Row{ID: "project.get", Method: "GET", Path: "/v1/repos/{owner}/{repo}", Group: group,
			Rule:    policy.Require(policy.ReadRepos),
			Summary: "One repository",
			Doc:     "Owner and name are matched as they are written; one of another account is 404 like one that does not exist."}, s.get),
		op.New(op.Row{ID: "project.update", Method: "PATCH", Path: "/v1/repos/{owner}/{repo}", Group: group,
			Rule: policy.Require(policy.WriteRepos),
			Refuses: []op.Refusal{
				{Status: 402, Slug: "payment-required"}, {Status: 409, Slug: "repo_ambiguous"}, {Status: 409, Slug: "repo_out_of_reach"},
			},
			Summary: "Turn a repository's switches, or choose its default branch; project.settings says what each does",
			Doc:     "Changes what is sent and leaves the rest alone; at least one must be sent. A private repository can be enabled only on a plan that covers private repositories. A default branch at the commit of the one before is taken for its new name: open pull requests follow."}, s.update),
		op.New(op.Row{ID: "project.policy_get", Method: "GET", Path: "/v1/repos/{owner}/{repo}/policy", Group: group,
			Rule:    policy.Require(policy.ReadRepos),
			Summary: "The policy in force, and why it is not the file's",
			Doc:     "What agents and merges are held to: the policy file with defaults filled in and the account's floors applied. A file that is missing or not valid counts as none: fallback says why, and the defaults hold."}, s.policyGet),
		op.New(op.Row{ID: "project.settings", Method: "GET", Path: "/v1/repos/{owner}/{repo}/settings", Group: group,
			Rule:    policy.Require(policy.ReadRepos),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "How an enabled repository is set, and what each of its switches does",
			Doc:     "The switches with their effects, the policy file as far as it holds, and the account's floors above it. A repository that is not enabled is 404."}, s.settings),
		op.New(op.Row{ID: "project.policy_validate", Method: "POST", Path: "/v1/repos/{owner}/{repo}/policy/validate", Group: group,
			Rule:    policy.Require(policy.WriteRepos),
			Summary: "Check a policy file without storing it",
			Doc:     "Says what is wrong with a policy file, and which of its fields the account would not allow. Nothing is stored; only a commit to the default branch changes the policy."}, s.policyValidate),
		op.New(op.Row{ID: "project.file", Method: "GET", Path: "/v1/repos/{owner}/{repo}/file", Group: group,
			Rule:    policy.Require(policy.ReadRepos),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 413, Slug: "file-too-large"}},
			Summary: "A file as it is at a commit",
			Doc:     "What a citation, a page or a finding names is read where it stands, also where its code host has no pages for people. A file of more than 1 MiB is refused; a folder or a submodule is 404, as what is not there."}, s.file),
		op.New(op.Row{ID: "account.floors_get", Method: "GET", Path: "/v1/account/floors", Group: ofAccount,
			Rule:    policy.Require(policy.ReadAccount),
			Summary: "What the account holds the policy files of all its repositories to",
			Doc:     "Floors bound what any policy file of the account may ask for. A field that is null bounds nothing."}, s.floorsGet),
		op.New(op.Row{ID: "account.floors_set", Method: "PUT", Path: "/v1/account/floors", Group: ofAccount,
			Rule:    policy.Require(policy.WriteAccount),
			Summary: "Replace what the account holds policy files to; a field that is left out asks nothing",
			Doc:     "Replaces all floors at once and holds from the next decision on, for work that is under way as well. A policy file that asks for more is clamped, not refused."}, s.floorsSet),
	}
}

func (s *Service) wire(r row) Repository {
	out := Repository{
		ID: r.ID, Owner: r.Owner, Repo: r.Name, FullName: r.Owner + "/" + r.Name, Host: r.Host,
		CloneURL: s.Hosts.CloneURL(r.ref().HostRepo()), WebURL: db.NullText(s.Hosts.WebURL(r.ref().HostRepo())),
		DefaultBranch: r.DefaultBranch, Private: r.Private, Enabled: r.Enabled,
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
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) }, s.wire), nil
}

type nameIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

// placeIn names a repository at a code host, where the account may have the name at
// two.
type placeIn struct {
	nameIn
	Host string `json:"host,omitempty" example:"builtin" doc:"the code host, where the account has repositories of this name at two; left out: the one that is enabled, else the oldest"`
}

func (in placeIn) find(tx *db.Tx) (row, error) { return in.at(tx, byNameAt) }

// lock is find that keeps others from changing the row meanwhile.
func (in placeIn) lock(tx *db.Tx) (row, error) { return in.at(tx, byNameAt.ForUpdate()) }

func (in placeIn) at(tx *db.Tx, q db.QueryWith[placeArgs, row]) (row, error) {
	r, ok, err := q.Maybe(tx, placeArgs{AccountID: tx.Account, Owner: in.Owner, Name: in.Repo, Host: in.Host})
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	return r, err
}

func (in nameIn) find(tx *db.Tx) (row, error) { return in.get(tx, byName) }

func (in nameIn) get(tx *db.Tx, q db.Query[row]) (row, error) {
	r, ok, err := q.Maybe(tx, tx.Account, in.Owner, in.Repo)
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	return r, err
}

func (s *Service) get(ctx context.Context, in placeIn) (Repository, error) {
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
	placeIn
	Enabled            *bool   `json:"enabled,omitempty" example:"true" doc:"false: its tasks wait, and new ones are refused"`
	DefaultBranch      *string `json:"default_branch,omitempty" example:"main" doc:"a branch of the repository that is to be the default, at the built-in host; another host is followed"`
	DonationsEnabled   *bool   `json:"donations_enabled,omitempty" doc:"true: while it is public, other accounts may give keys, money and boxes for its work, and project.public_stats counts them"`
	AIFirst            *bool   `json:"ai_first,omitempty" doc:"true: every pull request of a person is looked after and every issue triaged, where the policy file does not say otherwise"`
	CanaryEnabled      *bool   `json:"canary_enabled,omitempty" doc:"switches nothing yet: it waits for rollouts of new versions to canary repositories, which this server does not make"`
	PublicStatsEnabled *bool   `json:"public_stats_enabled,omitempty" doc:"true: project.public_stats shows everybody what agents did in a public repository"`
}

func (s *Service) update(ctx context.Context, in updateIn) (out Repository, err error) {
	turn := func(to *bool, sw *bool) {
		if to != nil {
			*sw = *to
		}
	}
	if in == (updateIn{placeIn: in.placeIn}) {
		return out, fault.Field("", "at least one of enabled, default_branch, donations_enabled, ai_first, canary_enabled, public_stats_enabled is required")
	}
	var branch chosen
	if in.DefaultBranch != nil {
		if branch, err = s.choose(ctx, in.placeIn, *in.DefaultBranch); err != nil {
			return out, err
		}
		defer func() {
			if err != nil {
				branch.undo()
			}
			branch.done()
		}()
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := in.lock(tx)
		if err != nil {
			return err
		}
		if in.Enabled != nil && *in.Enabled && r.GoneAt != nil {
			return fault.Reason("repo_out_of_reach", "The code host does not let the server at this repository any more.")
		}
		if in.Enabled != nil && *in.Enabled && r.Private {
			if err := Covered(tx); err != nil {
				return err
			}
		}
		enabled := r.Enabled
		turn(in.Enabled, &r.Enabled)
		turn(in.DonationsEnabled, &r.DonationsEnabled)
		aiFirst := r.AIFirst
		turn(in.AIFirst, &r.AIFirst)
		turn(in.CanaryEnabled, &r.CanaryEnabled)
		turn(in.PublicStatsEnabled, &r.PublicStatsEnabled)
		if _, err := update.Exec(tx, updateArgs{row: r, AccountID: tx.Account, Now: tx.Micros()}); err != nil {
			return err
		}
		if in.DefaultBranch != nil {
			if err := branch.record(tx, s, &r); err != nil {
				return err
			}
		}
		if r.AIFirst != aiFirst || r.Enabled != enabled {
			if err := PolicyChanged.Send(tx, r.ref()); err != nil {
				return err
			}
			s.Hub.Notify(tx, event.PullTopic)
		}
		// Boxes that are shared, or a member's, listen to the queue of everybody.
		s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
		out = s.wire(r)
		return updatedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.ID}, updatedData{
			Enabled: in.Enabled, DefaultBranch: in.DefaultBranch, DonationsEnabled: in.DonationsEnabled, AIFirst: in.AIFirst,
			CanaryEnabled: in.CanaryEnabled, PublicStatsEnabled: in.PublicStatsEnabled,
		})
	})
	if db.IsUnique(err) {
		err = fault.Reason("repo_ambiguous", "A repository of this name at another code host is enabled. Disable that one first.")
	}
	return out, err
}

// Covered refuses private repositories if the tier of tx.Account is without them, and
// names the ways to one that has them.
func Covered(tx *db.Tx) error {
	account, err := people.AccountByID(tx, tx.Account)
	if err != nil {
		return err
	}
	if account.Tier == people.TierFree {
		return fault.New(fault.PaymentRequired, "",
			"The tier free does not cover private repositories, which all of the built-in host are. "+
				"Apply as an open-source project with POST /v1/oss/verification (account.oss_verification_apply), pay for seats with "+
				"POST /v1/billing/checkout (billing.checkout) where the server takes payment, or have an operator of the server set "+
				"another tier (account.set_tier).")
	}
	return nil
}

// EffectivePolicy is the answer of project.policy_get.
type EffectivePolicy struct {
	_        struct{} `doc:"The policy in force for a repository, and where it comes from." schema:"EffectivePolicy"`
	Policy   Policy   `json:"policy" doc:"the policy in force: defaults filled in, and no more than the account allows"`
	YML      *string  `json:"yml" doc:"the file on the default branch; null: there is none"`
	Fallback *string  `json:"fallback" example:"null" doc:"why the defaults are in force; null: the file is"`
	Clamped  []Clamp  `json:"clamped" doc:"the fields that ask for more than the account allows"`
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
	return r.effective(), nil
}

// effective is the policy in force.
func (r row) effective() EffectivePolicy {
	out := EffectivePolicy{YML: r.PolicyYML, Fallback: r.PolicyError}
	out.Policy, out.Clamped = r.floors().Clamp(r.policy())
	if r.PolicyYML == nil {
		none := "there is no " + PolicyPath + " on " + r.DefaultBranch
		if r.PolicyNear != "" {
			none += "; " + r.PolicyNear + " counts for nothing: rename it to " + PolicyPath
		}
		out.Fallback = &none
	}
	return out
}

type validateIn struct {
	nameIn
	YML string `json:"yml" doc:"the text of a .svc/policy.yml"`
}

// PolicyVerdict tells whether a policy file would be taken.
type PolicyVerdict struct {
	_       struct{} `doc:"Whether a policy file would be taken." schema:"PolicyVerdict"`
	OK      bool     `json:"ok" doc:"whether it is valid"`
	Errors  []string `json:"errors" example:"[]" doc:"what is wrong, one sentence each; empty when it is valid"`
	Clamped []Clamp  `json:"clamped" doc:"the fields that ask for more than the account allows; empty if there are errors"`
}

func (s *Service) policyValidate(ctx context.Context, in validateIn) (PolicyVerdict, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = in.find(tx)
		return err
	})
	if err != nil {
		return PolicyVerdict{}, err
	}
	out := PolicyVerdict{Clamped: []Clamp{}}
	p, msgs := parseOver(defaultsFor(r.AIFirst), []byte(in.YML))
	if out.OK = msgs == nil; out.OK {
		_, out.Clamped = r.floors().Clamp(p)
	}
	out.Errors = append([]string{}, msgs...)
	return out, nil
}

// AccountFloors are the floors of an account, and who set them.
type AccountFloors struct {
	_ struct{} `doc:"The floors of an account, and who set them." schema:"AccountFloors"`
	Floors
	UpdatedAt *time.Time `json:"updated_at" doc:"when they were last set; null: never"`
	UpdatedBy *string    `json:"updated_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who set them: user:<id> or pat:<id>; null: nobody"`
}

func accountFloors(f Floors, at *time.Time, by *string) AccountFloors {
	f.Protected = append([]string{}, f.Protected...)
	return AccountFloors{Floors: f, UpdatedAt: at, UpdatedBy: by}
}

func (s *Service) floorsGet(ctx context.Context, _ op.None) (out AccountFloors, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		f, ok, err := floorsOf.Maybe(tx, tx.Account)
		out = accountFloors(Floors{}, nil, nil)
		if ok {
			out = accountFloors(f.whole(), &f.UpdatedAt, &f.UpdatedBy)
		}
		return err
	})
	return out, err
}

type floorsIn struct{ Floors }

// floorsSet holds from the next decision on, for what is under way as well.
func (s *Service) floorsSet(ctx context.Context, in floorsIn) (out AccountFloors, err error) {
	if wrong := in.check(); len(wrong) > 0 {
		f := fault.New(fault.Invalid, "", "The request has invalid fields.")
		f.Fields = wrong
		return out, f
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		// Two who set them at once are taken in one order.
		if _, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		}
		was, _, err := floorsOf.Maybe(tx, tx.Account)
		if err != nil {
			return err
		}
		by := policy.From(ctx).Label()
		now := floorsRow{Floors: db.JSON[Floors]{V: in.Floors}, OutsideBoxes: in.Outside, UpdatedAt: tx.Now, UpdatedBy: by}
		now.Floors.V.Outside = false
		if _, err := setFloors.Exec(tx, setFloorsArgs{tx.Account, now}); err != nil {
			return err
		}
		out = accountFloors(in.Floors, &tx.Now, &by)
		if err := flooredEvent.Record(tx, event.Subject{ID: tx.Account}, flooredData{From: was.whole(), To: in.Floors}); err != nil {
			return err
		}
		return s.refloored(tx)
	})
	return out, err
}

// refloored tells of every repository of the account that another policy may be
// in force.
func (s *Service) refloored(tx *db.Tx) error {
	s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""), event.PullTopic)
	all, err := allOfAccount.All(tx, tx.Account)
	for _, r := range all {
		if err := PolicyChanged.Send(tx, r.ref()); err != nil {
			return err
		}
	}
	return err
}
