package attestation

import "time"

// Statement is an in-toto Statement v1 about a merge.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Merge     `json:"predicate"`
}

// Subject is what a statement is about: first the commit of the merge, then the pull request at
// the head that was merged.
type Subject struct {
	Name   string            `json:"name"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// Merge is what a merge came of. People and machines are named by the labels of the record, never
// by name or address, who is known at the code host alone by the login there; prompts by their
// digests, never by their text.
type Merge struct {
	AccountID   string      `json:"account_id"`
	PullRequest PullRequest `json:"pull_request"`
	MergedAt    time.Time   `json:"merged_at"`
	MergedBy    *string     `json:"merged_by"` // nil: nobody knows
	Asked       *Asked      `json:"asked"`     // nil: it is the work of no task
	Runs        []Run       `json:"runs"`
	Reviews     []Review    `json:"reviews"`
	Approvals   []Approval  `json:"approvals"`
	Checks      Checks      `json:"checks"`
	Spend       Spend       `json:"spend"`
	SignedAt    time.Time   `json:"signed_at"`
}

// PullRequest is the pull request that was merged.
type PullRequest struct {
	ID         string `json:"id"`
	Repo       string `json:"repo"` // owner/name
	Number     int64  `json:"number"`
	HeadSHA    string `json:"head_sha"`
	BaseRef    string `json:"base_ref"`
	AuthorKind string `json:"author_kind"`
}

// Asked says who wanted the work, and what the judge of asks decided.
type Asked struct {
	TaskID      string  `json:"task_id"`
	RequestedBy *string `json:"requested_by"` // the person at the beginning of the chain; nil: nobody
	CreatedBy   string  `json:"created_by"`   // who made the task
	AskID       *string `json:"ask_id"`
	Source      *string `json:"source"`  // of the ask
	Verdict     *string `json:"verdict"` // of the judge; nil: no judge decided
}

// Run is one try of an agent at the work, or at its repair.
type Run struct {
	ID             string   `json:"id"`
	TaskID         string   `json:"task_id"`
	Kind           string   `json:"kind"`
	Attempt        int64    `json:"attempt"`
	Outcome        *string  `json:"outcome"`
	Template       string   `json:"template"`
	Agent          string   `json:"agent"`
	AgentVersion   *string  `json:"agent_version"`
	Models         []string `json:"models"` // that were called
	PromptSHA256   *string  `json:"prompt_sha256"`
	BoxID          string   `json:"box_id"`
	Isolation      *string  `json:"isolation"`       // as the box measured it; nil: the agent never started
	IsolationHolds []string `json:"isolation_holds"` // what was tried there and held; nil: not measured
}

// Review is a review by agents.
type Review struct {
	HeadSHA  string  `json:"head_sha"`
	State    string  `json:"state"`
	Verdict  *string `json:"verdict"`
	Template string  `json:"template"`
}

// Approval is a decision about the pull request: merge and the other kinds of questions, or
// review for one that was given at the code host.
type Approval struct {
	Kind        string     `json:"kind"`
	State       string     `json:"state"`
	By          *string    `json:"by"`
	At          *time.Time `json:"at"`
	HeadSHA     string     `json:"head_sha"`
	CarriedFrom *string    `json:"carried_from"` // the head that was looked at, if the change is the same
}

// Checks are the checks of the head.
type Checks struct {
	State  string  `json:"state"`
	Reruns []Rerun `json:"reruns"` // of jobs that come and go
}

// Rerun is a job that was run again because it comes and goes.
type Rerun struct {
	Source string    `json:"source"`
	Job    string    `json:"job"`
	At     time.Time `json:"at"`
}

// Spend is what the calls of models cost, estimated.
type Spend struct {
	USD           *string `json:"usd"`            // nil: no call had a price
	UnpricedCalls int64   `json:"unpriced_calls"` // that are not in it
}
