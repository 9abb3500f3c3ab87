package repo

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Settings are the settings of an enabled repository, as project.settings shows them.
type Settings struct {
	_             struct{}       `doc:"How a repository is set." schema:"RepoSettings"`
	Repo          string         `json:"repo" doc:"owner/name"`
	Host          string         `json:"host" example:"builtin" doc:"the code host that has it: builtin is this server's own"`
	DefaultBranch string         `json:"default_branch" example:"main" doc:"the branch whose policy file is in force"`
	Private       bool           `json:"private" doc:"not open to everybody at its host"`
	Switches      []Switch       `json:"switches" doc:"in the order of project.update, which turns them"`
	Policy        PolicySettings `json:"policy" doc:"its policy file; project.policy_get has the text"`
	Floors        FloorsAbove    `json:"floors" doc:"what the account holds the policy files of all its repositories to"`
}

// FloorsAbove are the floors above the policy file of a repository.
type FloorsAbove struct {
	_ struct{} `doc:"What the account holds a policy file to. A field that is null bounds nothing." schema:"FloorsAbove"`
	Floors
}

// Switch is one switch of a repository.
type Switch struct {
	_    struct{} `doc:"A switch of a repository." schema:"RepoSwitch"`
	Name string   `json:"name" enum:"enabled,donations_enabled,ai_first,canary_enabled,public_stats_enabled" example:"enabled" doc:"as project.update calls it"`
	On   bool     `json:"on" example:"true" doc:"whether it is on"`
	Does string   `json:"does" example:"Tasks are taken and run." doc:"what it does while it is on, in words for people"`
}

// PolicySettings tell how the policy file of a repository is.
type PolicySettings struct {
	_        struct{} `doc:"How the policy file of a repository is." schema:"RepoPolicySettings"`
	Path     string   `json:"path" example:".svc/policy.yml" doc:"where it is, or would be"`
	Valid    *bool    `json:"valid" doc:"whether it is valid; null: there is none"`
	Fallback *string  `json:"fallback" example:"null" doc:"why the defaults are in force; null: the file is"`
	Clamped  []Clamp  `json:"clamped" doc:"the fields that ask for more than the account allows"`
}

// kept is the effect of a switch that has none here.
const kept = "Nothing yet: it waits for rollouts of new versions to canary repositories, which this server does not make."

func (r row) switches() []Switch {
	return []Switch{
		{Name: "enabled", On: r.Enabled, Does: "Tasks are taken and run, and pull requests are looked after."},
		{Name: "donations_enabled", On: r.DonationsEnabled, Does: "If it is public, other accounts may give keys, money and boxes for its work, and everybody sees how many. Off ends the use of all of them at once."},
		{Name: "ai_first", On: r.AIFirst, Does: "Every pull request of a person is looked after and every issue triaged, where the policy file does not say otherwise."},
		{Name: "canary_enabled", On: r.CanaryEnabled, Does: kept},
		{Name: "public_stats_enabled", On: r.PublicStatsEnabled, Does: "If it is public, everybody sees how much agents merged, how much of that was reverted, " +
			"and how much people approved."},
	}
}

func (s *Service) settings(ctx context.Context, in nameIn) (Settings, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = in.find(tx)
		return err
	})
	if err != nil || !r.Enabled {
		if err == nil || fault.IsKind(err, fault.NotFound) {
			err = fault.Missing("enabled repository")
		}
		return Settings{}, err
	}
	shown, policy := s.wire(r), r.effective()
	out := Settings{
		Repo: shown.FullName, Host: r.Host, DefaultBranch: r.DefaultBranch, Private: r.Private, Switches: r.switches(),
		Floors: FloorsAbove{Floors: r.floors()},
		Policy: PolicySettings{Path: PolicyPath, Valid: shown.PolicyValid, Fallback: policy.Fallback, Clamped: policy.Clamped},
	}
	out.Floors.Protected = append([]string{}, out.Floors.Protected...)
	return out, nil
}
