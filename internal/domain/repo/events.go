package repo

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of repositories that clients follow.
var Topic = &event.Topic{Name: "repos", Scope: policy.ReadRepos, Fixed: true}

// Push is the data of the event that a branch was pushed to.
type Push struct {
	Branch string `json:"branch" doc:"the branch that moved"`
	Old    string `json:"old" doc:"the commit that it was at; zeros: it is new"`
	New    string `json:"new" doc:"the commit that this push put it at; zeros: it is gone"`
	By     string `json:"by" doc:"who pushed: user:<id>, pat:<id> or an attempt; plan.file or reconciled: the server itself"`

	Repo Ref    `json:"-"` // as it is after the push
	Head string `json:"-"` // the commit that the branch is at by now; codehost.ZeroSHA: it is gone
}

// The data of the other events.
type (
	installedData struct {
		Repo string `json:"repo" doc:"owner/name"`
		Host string `json:"host" doc:"the code host that has it"`
	}
	goneData struct {
		Repo string     `json:"repo" doc:"owner/name"`
		Host string     `json:"host" doc:"the code host that has it"`
		Why  LossReason `json:"why" doc:"removed: the installation, or the repository from it; suspended: the installation; moved: to an owner with another account"`
	}
	movedData struct {
		From string `json:"from" doc:"owner/name before"`
		To   string `json:"to" doc:"owner/name from now on"`
	}
	updatedData struct {
		Enabled            *bool   `json:"enabled,omitempty" doc:"whether its tasks are worked on; left out: not touched"`
		DefaultBranch      *string `json:"default_branch,omitempty" doc:"the branch that was made the default; left out: not touched"`
		DonationsEnabled   *bool   `json:"donations_enabled,omitempty" doc:"the switch of this name; left out: not touched"`
		AIFirst            *bool   `json:"ai_first,omitempty" doc:"the switch of this name; left out: not touched"`
		CanaryEnabled      *bool   `json:"canary_enabled,omitempty" doc:"the switch of this name; left out: not touched"`
		PublicStatsEnabled *bool   `json:"public_stats_enabled,omitempty" doc:"the switch of this name; left out: not touched"`
	}
	flooredData struct {
		From Floors `json:"from" doc:"the floors before"`
		To   Floors `json:"to" doc:"the floors from now on"`
	}
)

// The events of a repository, and of the floors of an account. Of PushedEvent
// subscribers hear in the transaction that records the push.
var (
	installedEvent = event.Declare[installedData]("repo.installed", Topic, "A repository was made known.")
	GoneEvent      = event.Declare[goneData]("repo.out_of_reach", Topic, "The server lost its access to the repository.")
	BackEvent      = event.Declare[installedData]("repo.back", Topic, "The server has access to the repository again.")
	movedEvent     = event.Declare[movedData]("repo.moved", Topic, "The repository was renamed, or given to another owner.")
	updatedEvent   = event.Declare[updatedData]("repo.updated", Topic, "Switches of the repository were set, or its default branch.")
	PushedEvent    = event.Declare[Push]("repo.pushed", Topic, "A branch of the repository moved.")
	flooredEvent   = event.Declare[flooredData]("account.floors_set", event.Audience(policy.ReadAccount),
		"The floors of the account were set.")
)

// PolicyChanged is sent when another policy may be in force in a repository.
var PolicyChanged = event.DeclareSignal[Ref]("repo.policy_changed", "Another policy may be in force in a repository.")

// Unsure is sent, with the id of a repository, when a push to it may have gone
// unnoticed.
var Unsure = event.DeclareSignal[string]("repo.unsure", "A push to a repository may have gone unnoticed.")
