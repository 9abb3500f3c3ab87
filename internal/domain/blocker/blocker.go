// Package blocker lets a run ask for something that only a person can give. The run
// declares a blocker; people find it on a list, and answer it in words, fill in its
// form, or withdraw it. The values of the form go into the vaults and are never shown
// again. The fix link of a blocker opens that one form, without an account, for an
// hour.
//
// A blocker closes once. Then the work that waited for it goes on: a run that still
// waits is woken, a held task goes back into the queue with all its tries, and for a
// task that is over, an ask is filed.
//
//   - blocker.go: types, the Service, Declare and Expire
//   - adopt.go: a later run of the task asks for the same
//   - fill.go: the values of a form, closing a blocker, and the texts for runs
//   - page.go: the form behind a fix link
//   - ops.go, events.go: capabilities, events and signals
//   - store.go: the statements
package blocker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// State is where a blocker stands.
type State string

// States of a blocker. All but Open are final.
const (
	Open      = "open"
	Answered  = "answered"
	Submitted = "submitted"
	Withdrawn = "withdrawn"
	Expired   = "expired" // its task was cancelled
)

// Values lists all.
func (State) Values() []string { return []string{Open, Answered, Submitted, Withdrawn, Expired} }

// Kind is what sort of thing only a person can give.
type Kind string

// Kinds of blockers. A form asks for a missing credential.
const (
	MissingCredential = "missing_credential"
	MissingAccess     = "missing_access"
	Decision          = "decision"
)

// Values lists all.
func (Kind) Values() []string { return []string{MissingCredential, MissingAccess, Decision} }

// Kinds of a field.
const (
	EnvSecret       = protocol.FieldEnvSecret
	ServiceURL      = protocol.FieldServiceURL
	MCPServer       = protocol.FieldMCPServer
	OAuthConnection = protocol.FieldOAuthConnection
)

// mcpPrefix begins the name of a field for an MCP server.
const mcpPrefix = "mcp:"

// linkTTL is how long a fix link works.
const linkTTL = time.Hour

// linkPurpose is the purpose in the signature of fix links.
const linkPurpose = "blocker-fix"

// Blocker is a blocker as clients see it, without its answer and its values.
type Blocker struct {
	_         struct{}   `doc:"What an agent waits for a person to give."`
	ID        string     `json:"id" format:"uuid" doc:"id of the blocker"`
	Kind      Kind       `json:"kind" doc:"what sort of thing is missing"`
	State     State      `json:"state" doc:"expired: its task was cancelled before anybody answered"`
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

// Form is the fields of a blocker of the kind MissingCredential.
type Form struct {
	_      struct{}    `doc:"The fields of a blocker that asks for a credential."`
	Fields []FormField `json:"fields" doc:"what is to be filled in"`
}

// FormField is a field of a Form. It takes one value, once.
type FormField struct {
	_           struct{}           `doc:"One thing to be filled in. Its value is never shown."`
	Name        string             `json:"name" example:"PAYMENT_TEST_KEY" doc:"of the variable or service; of an MCP server mcp:<server>"`
	Kind        protocol.FieldKind `json:"kind" doc:"oauth_connection cannot be filled in here: connect it first"`
	Environment *string            `json:"environment" example:"null" doc:"the environment that the value is for; null: for all"`
	Description string             `json:"description" example:"Key of the payment provider's test account" doc:"in the words of the agent"`
	Landed      bool               `json:"landed" example:"false" doc:"whether it has its value"`
	Submittable bool               `json:"submittable" doc:"whether a value can be submitted now"`
	Replaces    bool               `json:"replaces" example:"false" doc:"whether the vault has a value by this name, which a new one replaces"`
}

// MCPStanza is the addition to the policy file for an MCP server whose token was
// submitted.
type MCPStanza struct {
	_         struct{}           `doc:"What to add to the policy file for an MCP server whose token was submitted." schema:"MCPStanza"`
	Server    string             `json:"server" example:"tracker" doc:"name of the server"`
	URL       string             `json:"url" format:"uri" example:"https://mcp.example.com/v1" doc:"its address"`
	Transport protocol.Transport `json:"transport" doc:"how it is spoken to"`
	TokenRef  string             `json:"token_ref" example:"MCP_TRACKER" doc:"name of the account's secret that holds the token"`
	YAML      string             `json:"yaml" example:"mcp_servers: {tracker: {url: \"https://mcp.example.com/v1\", transport: http, token_ref: MCP_TRACKER}}" doc:"the stanza of .svc/policy.yml"`
}

// Value is a secret for a vault.
type Value struct {
	RepoID      string // empty: the account's vault
	Name        string
	Environment string
	Value       string
	Host        string // of a token: the only host that may get it; empty for the environment of runs
}

// Effect is what became of the task that waited.
type Effect string

// Kinds of Closed: the effect on the task that waited for the blocker.
const (
	Released = "released" // the held task is in the queue again
	Woken    = "woken"    // the run that asked was woken
	Filed    = "filed"    // the task is over: an ask was filed
	Recorded = "recorded" // the task waits for more, or is told when its next run starts
)

// Values lists all effects.
func (Effect) Values() []string { return []string{Woken, Released, Filed, Recorded} }

// FollowUp is an ask for a task that is over.
type FollowUp struct {
	BlockerID, TaskID, RunID, RepoID string
	Title, Body                      string
}

// Repos names repositories.
type Repos interface {
	// FullName is a repository's owner/name.
	FullName(tx *db.Tx, repoID string) (string, error)
}

// Vault stores the values that people fill in.
type Vault interface {
	// NameFault returns why a secret cannot have a name and environment; empty if it
	// can.
	NameFault(name, environment string) string
	// Has tells whether the vault of a repository has a value by a name.
	Has(tx *db.Tx, repoID, environment, name string) (bool, error)
	// Masked returns a text in which mask stands for the values of secrets of the repository.
	Masked(tx *db.Tx, repoID, text, mask string) (string, error)
	// Keep stores a value in a vault. It fails with a fault other than fault.Internal
	// if the value cannot be stored.
	Keep(tx *db.Tx, by string, v Value) error
}

// Tasks changes the tasks that wait for blockers.
type Tasks interface {
	// Lock locks a task of tx.Account until tx ends.
	Lock(tx *db.Tx, taskID string) error
	// Resume lets a task go on. It wakes the task's live run with the word (unless its
	// text is empty), or releases the task if it is held for a blocker and release is true. It
	// returns Woken, Released, Recorded if it did neither, and "" if the task is over.
	Resume(tx *db.Tx, taskID, runID string, w Word, release bool) (string, error)
	// LiveRun is the id of the live run of a task of tx.Account; empty: there is none.
	LiveRun(tx *db.Tx, taskID string) (string, error)
}

// Asks files asks.
type Asks interface {
	// File files an ask and returns its id.
	File(tx *db.Tx, f FollowUp) (askID string, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Ring    *seal.Keyring
	BaseURL string // of fix links, without a trailing slash
	Repos   Repos
	Vault   Vault
	Tasks   Tasks
	Asks    Asks
}

// Service keeps the blockers.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// serverPattern is the names of MCP servers.
var serverPattern = lazy.New(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Declare stores a blocker that a live run of tx.Account declares. It ignores a
// declaration that the run repeats, and does not ask people again for something that
// an earlier run of the task still asks for, or that was answered before this run
// asked: see adopt and findEarlier. Fields that nobody could fill in are left out, and
// FieldsRefused names them with the reasons. The task stays locked until tx ends.
func (s *Service) Declare(tx *db.Tx, repoID, taskID, runID string, b protocol.BlockerDeclared) error {
	if err := s.Tasks.Lock(tx, taskID); err != nil {
		return err
	}
	if n, err := isDeclared.One(tx, runID, b.ID); err != nil || n > 0 {
		return err
	}
	if adopted, err := s.adopt(tx, repoID, taskID, runID, b); err != nil || adopted {
		return err
	}
	earlier, err := s.findEarlier(tx, taskID, runID, b)
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
			BlockerID: blockerID, Name: name, Position: len(names), Kind: string(f.Kind), Environment: f.Environment,
			Description: f.Description,
		}); err != nil {
			return err
		}
	}
	if len(refused) > 0 {
		text := "A blocker of yours was taken without some of its fields, which nobody could fill in:\n* " +
			strings.Join(refused, "\n* ") + "\nIf you need them, declare another blocker that asks for them rightly."
		if err := FieldsRefused.Send(tx, Refusal{RunID: runID, Text: text}); err != nil {
			return err
		}
	}
	data := declaredData{Fields: names, Kind: b.Kind, Refused: refused, RunID: runID, TaskID: taskID}
	if earlier != nil {
		data.SettledAs = earlier.ID
		if err := s.closeAs(tx, earlier, blockerID); err != nil {
			return err
		}
	}
	return DeclaredEvent.Record(tx, event.Subject{ID: blockerID, RepoID: repoID}, data)
}

// fieldName is the name of a field in the form, or the reason why it cannot be there.
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

// Cleared tells whether a run of a task of tx.Account has no open blocker, and at least
// one that was answered or filled in.
func Cleared(tx *db.Tx, taskID, runID string) (bool, error) {
	waiting, err := openOfRun.All(tx, tx.Account, taskID, runID)
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	answered, err := answeredOf.All(tx, tx.Account, taskID, runID)
	return len(answered) > 0, err
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
