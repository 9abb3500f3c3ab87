// Package blocker is how a run asks for what only a person can give. A run
// declares a blocker; people find it on a list, and answer it in words, fill in
// its form, or withdraw it. What they fill in goes straight into the vaults and
// never comes back. Whoever has the fix link of a blocker may fill in that one
// form, without an account, for an hour.
//
// A blocker closes once. What waited for it goes on then: a run that still
// waits is woken, a task that is held goes back into the queue with all its
// tries, and for one that has moved on, an ask is filed.
package blocker

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// States of a blocker. All but open are for good.
const (
	Open      = "open"
	Answered  = "answered"
	Submitted = "submitted"
	Withdrawn = "withdrawn"
	Expired   = "expired" // its task was cancelled
)

// MissingCredential is the kind of blocker that has a form.
const MissingCredential = "missing_credential"

// Kinds of a field.
const (
	EnvSecret       = "env_secret"
	ServiceURL      = "service_url"
	MCPServer       = "mcp_server"
	OAuthConnection = "oauth_connection"
)

// mcpPrefix stands before the name of an MCP server where fields are named.
const mcpPrefix = "mcp:"

// linkTTL is how long a fix link is good for.
const linkTTL = time.Hour

// linkPurpose is what fix links are signed for.
const linkPurpose = "blocker-fix"

// Blocker is what a run cannot go on without, as clients see it. It never
// holds an answer or a value.
type Blocker struct {
	_         struct{}   `doc:"What an agent waits for a person to give."`
	ID        string     `json:"id" format:"uuid" doc:"id of the blocker"`
	Kind      string     `json:"kind" enum:"missing_credential,missing_access,decision" doc:"what sort of thing is missing"`
	State     string     `json:"state" enum:"open,answered,submitted,withdrawn,expired" doc:"expired: its task was cancelled before anybody answered"`
	Question  string     `json:"question" example:"Which account of the payment provider is used in tests?" doc:"in the words of the agent"`
	Repo      string     `json:"repo" doc:"owner/name"`
	TaskID    string     `json:"task_id" format:"uuid" doc:"the task that is blocked"`
	RunID     string     `json:"run_id" format:"uuid" doc:"the run that declared it"`
	Form      *Form      `json:"form" doc:"the fields of a missing_credential; null for the other kinds"`
	FixURL    *string    `json:"fix_url" format:"uri" example:"https://yardmaster.example.com/blocker-fix/eyJ0.eyJz.c2ln" doc:"opens the form for an hour, without an account; null unless you may write secrets and it is open"`
	CreatedAt time.Time  `json:"created_at" doc:"when it was declared"`
	ClosedAt  *time.Time `json:"closed_at" example:"null" doc:"when it was closed; null while it is open"`
	ClosedBy  *string    `json:"closed_by" example:"null" doc:"who closed it: user:<id>, pat:<id>, fix_link:<id> for the form behind its link, or system; null while it is open"`
}

// Form is what is to be filled in.
type Form struct {
	_      struct{}    `doc:"The fields of a blocker that asks for a credential."`
	Fields []FormField `json:"fields" doc:"what is to be filled in"`
}

// FormField is one thing to be filled in, once.
type FormField struct {
	_           struct{} `doc:"One thing to be filled in. Its value is never shown."`
	Name        string   `json:"name" example:"PAYMENT_TEST_KEY" doc:"of the variable or service; of an MCP server mcp:<server>"`
	Kind        string   `json:"kind" enum:"env_secret,service_url,mcp_server,oauth_connection" doc:"oauth_connection cannot be filled in here: connect it first"`
	Environment *string  `json:"environment" example:"null" doc:"the environment that the value is for; null: for all"`
	Description string   `json:"description" example:"Key of the payment provider's test account" doc:"in the words of the agent"`
	Landed      bool     `json:"landed" example:"false" doc:"whether it has its value"`
	Submittable bool     `json:"submittable" doc:"whether a value can be submitted now"`
	Replaces    bool     `json:"replaces" example:"false" doc:"whether the vault has a value by this name, which a new one replaces"`
}

// MCPStanza is what to add to the policy file for an MCP server whose token
// was submitted.
type MCPStanza struct {
	_         struct{} `doc:"What to add to the policy file for an MCP server whose token was submitted." schema:"MCPStanza"`
	Server    string   `json:"server" example:"tracker" doc:"name of the server"`
	URL       string   `json:"url" format:"uri" example:"https://mcp.example.com/v1" doc:"its address"`
	Transport string   `json:"transport" enum:"http,sse" doc:"how it is spoken to"`
	TokenRef  string   `json:"token_ref" example:"MCP_TRACKER" doc:"name of the account's secret that holds the token"`
	YAML      string   `json:"yaml" example:"mcp_servers: {tracker: {url: \"https://mcp.example.com/v1\", transport: http, token_ref: MCP_TRACKER}}" doc:"the stanza of .svc/policy.yml"`
}

// Value is what is put into a vault.
type Value struct {
	RepoID      string // empty: the account's vault
	Name        string
	Environment string
	Value       string
	Host        string // of a token: the only host that it is for; empty for the environment of runs
}

// What became of that which waited for a blocker.
const (
	Released = "released" // the held task is in the queue again
	Woken    = "woken"    // the run that asked was told
	Filed    = "filed"    // the task has moved on: an ask was filed
	Recorded = "recorded" // kept; the task waits for more, or nothing waits
)

// FollowUp is an ask to be filed for a task that has moved on.
type FollowUp struct {
	BlockerID, TaskID, RepoID string
	Title, Body               string
}

// Repos tells of repositories.
type Repos interface {
	// FullName is a repository's owner/name.
	FullName(tx *db.Tx, repoID string) (string, error)
}

// Vault is where values that people fill in go.
type Vault interface {
	// NameFault says why a secret cannot have a name and environment; empty if it
	// can.
	NameFault(name, environment string) string
	// Has tells whether the vault of a repository has a value by a name.
	Has(tx *db.Tx, repoID, environment, name string) (bool, error)
	// Quoted tells whether a text holds the value of a secret of the repository.
	Quoted(tx *db.Tx, repoID, text string) (bool, error)
	// Keep puts a value into a vault; a fault that is not internal means that it
	// cannot be stored.
	Keep(tx *db.Tx, by string, v Value) error
}

// Tasks are the tasks that wait.
type Tasks interface {
	// Lock locks a task of tx.Account until tx ends.
	Lock(tx *db.Tx, taskID string) error
	// Resume lets a task go on: its run, if that is alive, by telling it word
	// (unless empty), or itself, if it is held for a blocker and release is set.
	// It answers Woken, Released, Recorded if the task goes on by itself or not
	// yet, and "" if it is over.
	Resume(tx *db.Tx, taskID, runID, word string, release bool) (string, error)
	// LiveRun names the run of a task of tx.Account that is alive, "" for none.
	LiveRun(tx *db.Tx, taskID string) (string, error)
}

// Asks take what is left when a blocker is cleared too late for its task.
type Asks interface {
	// File files an ask and answers its id.
	File(tx *db.Tx, f FollowUp) (askID string, err error)
}

// Needs are what blockers are made of.
type Needs struct {
	DB      *db.DB
	Ring    *seal.Keyring
	BaseURL string // of fix links, without a trailing slash
	Repos   Repos
	Vault   Vault
	Tasks   Tasks
	Asks    Asks
}

// Service answers for blockers.
type Service struct{ Needs }

// New makes the service. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

var serverPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Declare takes a blocker that a live run of tx.Account declares. Declared
// again under the same name it is passed over, and what an earlier run of the
// task asks for still, or was answered while this one was about to ask, is not
// asked for again: see adopted and settled. Fields that could not be filled in
// are left out, and the run is told which and why. The task is locked until tx
// ends.
func (s *Service) Declare(tx *db.Tx, repoID, taskID, runID string, b protocol.BlockerDeclared) error {
	if err := s.Tasks.Lock(tx, taskID); err != nil {
		return err
	}
	if n, err := isDeclared.One(tx, runID, b.ID); err != nil || n > 0 {
		return err
	}
	if adopted, err := s.adopted(tx, repoID, taskID, runID, b); err != nil || adopted {
		return err
	}
	earlier, err := s.settled(tx, taskID, runID, b)
	if err != nil {
		return err
	}
	blockerID := id.New()
	n, err := insertBlocker.Exec(tx, insertBlockerArgs{
		ID: blockerID, AccountID: tx.Account, RepoID: repoID, TaskID: taskID, RunID: runID, Declared: b.ID,
		Kind: b.Kind, Question: b.Question, CreatedAt: tx.Now,
	})
	if err != nil || n == 0 {
		return err
	}
	var names, refused []string
	for _, f := range b.Fields {
		name, why := s.fieldName(f)
		if b.Kind != MissingCredential {
			why = "only a " + MissingCredential + " has fields"
		}
		if why != "" {
			refused = append(refused, fmt.Sprintf("%q: %s", f.Name, why))
			continue
		}
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		if _, err := insertField.Exec(tx, insertFieldArgs{
			BlockerID: blockerID, Name: name, Position: len(names), Kind: f.Kind, Environment: f.Environment,
			Description: f.Description,
		}); err != nil {
			return err
		}
	}
	if len(refused) > 0 {
		text := "A blocker of yours was taken without some of its fields, which nobody could fill in:\n* " + strings.Join(refused, "\n* ") +
			"\nIf you need them, declare another blocker that asks for them rightly."
		if err := FieldsRefused.Send(tx, Refusal{RunID: runID, Text: text}); err != nil {
			return err
		}
	}
	data := declaredData{Fields: names, Kind: b.Kind, Refused: refused, RunID: runID, TaskID: taskID}
	if earlier != nil {
		data.SettledAs = earlier.ID
		if err := s.settle(tx, earlier, blockerID); err != nil {
			return err
		}
	}
	return declaredEvent.Record(tx, event.Subject{ID: blockerID, RepoID: repoID}, data)
}

// fieldName is the name under which a field is filled in, or why it cannot be.
func (s *Service) fieldName(f protocol.BlockerField) (name, why string) {
	switch f.Kind {
	case EnvSecret, ServiceURL:
		return f.Name, s.Vault.NameFault(f.Name, f.Environment)
	case MCPServer:
		switch {
		case !serverPattern.MatchString(f.Name):
			why = "the name of a server must be lower-case letters, digits, hyphens or underscores, at most 40"
		case f.Environment != "":
			why = "a server is of no environment"
		}
		return mcpPrefix + f.Name, why
	case OAuthConnection:
		if f.Name == "" || len(f.Name) > 100 {
			why = "a name must have 1 to 100 bytes"
		}
		return f.Name, why
	}
	return f.Name, "there is no such kind of field"
}

// Cleared tells whether a run of a task of tx.Account asked for something, and
// has all of it by now.
func Cleared(tx *db.Tx, taskID, runID string) (bool, error) {
	waiting, err := openOfRun.All(tx, tx.Account, taskID, runID)
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	had, err := closedOf.All(tx, tx.Account, taskID, runID)
	return len(had) > 0, err
}

// Expire closes the open blockers of a task of tx.Account that was cancelled.
func Expire(tx *db.Tx, taskID string) error {
	ids, err := openOfTask.All(tx, tx.Account, taskID)
	if err != nil {
		return err
	}
	for _, blockerID := range ids {
		n, err := closeBlocker.Exec(tx, closeBlockerArgs{
			AccountID: tx.Account, ID: blockerID, State: Expired, Answer: nil, ClosedAt: tx.Now, ClosedBy: "system",
		})
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := expiredEvent.Record(tx, event.Subject{ID: blockerID}, closedData{TaskID: taskID}); err != nil {
			return err
		}
	}
	return nil
}
