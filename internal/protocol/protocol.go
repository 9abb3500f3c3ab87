// Package protocol defines the subjects and messages that boxes and the control
// plane exchange over NATS, once for both sides. It has no behaviour beyond names:
// bus carries the messages, the box and the run domain use them.
//
// Every duration travels as relative milliseconds: the wall clock of a box is
// never trusted.
package protocol

import (
	"encoding/json"
	"fmt"
	"time"
)

// Version is the version of the protocol. A box sends it as "v" in its hello and in
// every envelope; the control plane refuses any other.
const Version = 2

// Limits and intervals.
const (
	MaxRunBytes = 64 << 20         // of the events of one run, encoded; a spool holds far less
	LeaseTTL    = 60 * time.Second // default length of a lease, counted from when the box sent its claim or renewal
	RenewEvery  = 20 * time.Second // at the latest; a short lease is renewed sooner
	BeatEvery   = 10 * time.Second
	PresenceTTL = 30 * time.Second
	MaxMessage  = 256 << 10 // bytes of one NATS message
	MaxEvents   = 256       // in one Envelope
	ClaimWait   = 25 * time.Second
)

// The deadlines of a lease that is not renewed. RenewAfter < KillAfter < lease <
// RedispatchAfter ensures that a disconnected box stops before another box gets its
// work.

// RenewAfter is when the box renews a lease.
func RenewAfter(lease time.Duration) time.Duration { return lease / 3 }

// KillAfter is when the box kills a run whose lease was not renewed.
func KillAfter(lease time.Duration) time.Duration { return lease * 5 / 6 }

// RedispatchAfter is when the server gives the task to another box, counted from
// the box's last message.
func RedispatchAfter(lease time.Duration) time.Duration { return lease * 5 / 4 }

// ClaimAnswer bounds how long the server may hold a claim. The lease counts from
// when the claim was sent, and half of the time before KillAfter must remain.
func ClaimAnswer(lease time.Duration) time.Duration { return min(ClaimWait, KillAfter(lease)/2) }

// ControlSubject carries a nudge to one box: a verb that makes the box ask sooner
// than it would have. A nudge has no content, and nothing is done for it alone.
func ControlSubject(box, verb string) string { return "ctl." + box + "." + verb }

// CallSubject carries a box's request to the control plane.
func CallSubject(box, method string) string { return "rpc." + box + "." + method }

// Verbs of ControlSubject.
const (
	NudgeCommands = "commands" // ask for commands
	NudgeProve    = "prove"    // ask over HTTPS whether the credentials still hold
)

// Methods of CallSubject. Each is a request of a box: a box receives information
// and commands only as answers.
const (
	CallHello      = "hello"         // Hello -> HelloReply
	CallBeat       = "beat"          // Presence -> BeatReply
	CallClaim      = "claim"         // Claim -> ClaimReply
	CallAccept     = "run.accept"    // Accept -> Renewal
	CallRenew      = "lease.renew"   // Renew -> Renewal
	CallAppend     = "append"        // Envelope -> Appended
	CallCommands   = "commands.next" // nothing -> Commands
	CallDone       = "commands.done" // Done -> nothing
	CallCredential = "cred.renew"    // nothing -> CredentialReply
	CallGitToken   = "git.token"     // GitTokenAsk -> GitToken
	CallSecrets    = "run.secrets"   // SecretsAsk -> Secrets
	CallArtifact   = "run.artifact"  // ArtifactAsk -> ArtifactPlace
	CallTrial      = "trial.claim"   // TrialClaim -> Trial
	CallTrialDone  = "trial.done"    // TrialDone -> nothing
	CallPing       = "ping"          // nothing -> nothing: the control plane's own test of the path that boxes use
)

// Kinds of events. A spool never drops state events; it may merge and shorten text,
// and records the cut as an event of its own.
const (
	EventAccepted    = "run.accepted"
	EventPreparing   = "preparing"
	EventEnvironment = "environment"      // EnvironmentMade
	EventPrepared    = "prepared"         // Prepared
	EventStarted     = "started"          // Started
	EventUpdate      = "agent.update"     // an ACP session update, as the agent sent it
	EventPermission  = "agent.permission" // an ACP permission request and its answer
	EventMessage     = "user.message"     // UserMessage
	EventAsk         = "ask.filed"        // AskFiled
	EventAction      = "action.proposed"  // ActionProposed
	EventPage        = "page.proposed"    // PageProposed
	EventBlocker     = "blocker.declared" // BlockerDeclared
	EventRefused     = "outbox.refused"   // OutboxRefused
	EventUnknown     = "command.refused"  // CommandRefused
	EventParked      = "run.parked"       // Parked
	EventResumed     = "run.resumed"
	EventUsage       = "usage"      // Usage
	EventPushed      = "git.pushed" // Pushed
	EventTruncated   = "output.truncated"
	EventHalting     = "run.halting"
	EventLeaseLost   = "run.lease_lost"
	EventFinished    = "run.finished" // Finished
)

// EventKinds lists the kinds of events that boxes send, in the order of a run. Boxes of
// newer versions may send others.
func EventKinds() []string {
	return []string{
		EventAccepted, EventPreparing, EventEnvironment, EventPrepared, EventStarted, EventUpdate, EventPermission, EventMessage,
		EventAsk, EventAction,
		EventPage, EventBlocker, EventRefused, EventUnknown, EventParked, EventResumed, EventUsage, EventPushed, EventTruncated,
		EventHalting, EventLeaseLost, EventFinished,
	}
}

// Event is one step of a run. Seq starts at 1 and has no gaps within an attempt. T
// is the box's wall clock in Unix milliseconds, for display only; Mono is
// milliseconds since the attempt began.
type Event struct {
	Seq  int64           `json:"seq"`
	T    int64           `json:"t"`
	Mono int64           `json:"mono"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Envelope asks the server to store events of one attempt: between 1 and MaxEvents,
// in order and without a gap. Its encoding has at most MaxMessage bytes.
type Envelope struct {
	V       int     `json:"v"`
	Run     string  `json:"run"`
	Attempt int     `json:"attempt"`
	Events  []Event `json:"events"`
}

// Appended answers an Envelope. Seq is the last event of the attempt that is stored
// permanently; the box must send the events after it next, whatever it sent before,
// and may trim its spool up to Seq. Closed tells that the server takes no more
// events: the attempt has ended, or is not this box's any more.
type Appended struct {
	Seq    int64 `json:"seq"`
	Closed bool  `json:"closed,omitempty"`
}

// Data of the events on which the server acts.
type (
	Prepared struct {
		Base   string `json:"base"`             // the commit from which the work starts
		Resume string `json:"resume,omitempty"` // set if that commit is saved work of an earlier attempt
		// Lacks are the files and folders that the checkout does not have as the repository
		// means them, at most MaxLacks; More is how many others there are.
		Lacks []Lack `json:"lacks,omitempty"`
		More  int    `json:"more_lacks,omitempty"`
	}
	// Lack is a file of Git LFS that is a pointer, or a submodule that is an empty folder.
	Lack struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	}
	Started struct {
		Agent     string   `json:"agent"`
		Version   string   `json:"version,omitempty"`
		Model     string   `json:"model,omitempty"`
		Session   string   `json:"session,omitempty"`
		Isolation string   `json:"isolation"`       // the level: bubblewrap, landlock or none
		Holds     []string `json:"isolation_holds"` // the protections that level had when the box last tested it, see Keeps
	}
	Pushed struct {
		SHA   string   `json:"sha"`
		Ref   string   `json:"ref"`
		WIP   bool     `json:"wip,omitempty"`
		Paths []string `json:"paths,omitempty"`
	}
	// UserMessage is the state of a message. There is one event for each state that
	// the message reaches; the first of them has Text and Answers.
	UserMessage struct {
		ID    string `json:"id"` // of the command that carried the message
		State string `json:"state"`
		Text  string `json:"text,omitempty"`
		// Answers are those of people to questions of the run, if Text tells of them.
		Answers []string `json:"answers,omitempty"`
		Reply   string   `json:"reply,omitempty"` // when read: the closing text of the turn that the message began, at most 64 KiB
	}
	// AskFiled is further work that the agent noticed and leaves to others. ID is
	// unique within the run.
	AskFiled struct {
		ID        string `json:"id"`
		Title     string `json:"title"` // one line
		Body      string `json:"body"`
		Repo      string `json:"repo,omitempty"` // owner/name; empty: the run's own
		DedupeKey string `json:"dedupe_key,omitempty"`
	}
	// ActionProposed is something that the agent asks a person to do to a pull request of
	// the run's repository. ID is unique within the run.
	ActionProposed struct {
		ID    string `json:"id"`
		Pull  int64  `json:"pull"`            // its number
		Kind  string `json:"kind"`            // close, reopen or label
		Label string `json:"label,omitempty"` // for the kind label
		Why   string `json:"why"`
	}
	// BlockerDeclared is a need that only a person can meet, and without which the
	// agent cannot continue. ID is unique within the run.
	BlockerDeclared struct {
		ID       string         `json:"id"`
		Kind     string         `json:"kind"` // missing_credential, missing_access or decision
		Question string         `json:"question"`
		Fields   []BlockerField `json:"fields,omitempty"`
	}
	// BlockerField is one field for a person to fill in.
	BlockerField struct {
		_           struct{}  `doc:"One thing to be filled in, as an agent asked for it." schema:"BlockerField"`
		Name        string    `json:"name" example:"PAYMENT_TEST_KEY" doc:"name of the field; of an MCP server mcp:<server>"`
		Kind        FieldKind `json:"kind" doc:"what is asked for"`
		Environment string    `json:"environment,omitempty" example:"staging" doc:"the environment it is for; absent: for all"`
		Description string    `json:"description,omitempty" doc:"what it is for, in the words of the agent"`
	}
	// OutboxRefused is an invalid declaration of the agent: File is its name, Reason
	// the fault.
	OutboxRefused struct {
		File   string `json:"file"`
		Reason string `json:"reason"`
	}
	// CommandRefused is a command that the box does not carry out.
	CommandRefused struct {
		ID     string `json:"id"`
		Kind   string `json:"kind"`
		Reason string `json:"reason"`
	}
	// Parked tells that the agent waits for a person, for at most WindowMS.
	Parked struct {
		WindowMS int64    `json:"window_ms"`
		Blockers []string `json:"blockers"` // ids that were declared
	}
	// Usage is the running total of an attempt's model traffic as the box's gateway
	// counts it; the account is billed by the control plane's own count.
	Usage struct {
		Model        string `json:"model"`
		InputTokens  int64  `json:"input_tokens"`
		OutputTokens int64  `json:"output_tokens"`
	}
	// Finished ends an attempt. State is succeeded, failed, blocked, halted or lost;
	// Kind, for a failure, is one of the specification's values of failure_kind.
	Finished struct {
		State    string   `json:"state"`
		Kind     string   `json:"failure_kind,omitempty"`
		Error    string   `json:"error,omitempty"`
		Busy     bool     `json:"busy,omitempty"` // it failed because the code host did not answer
		Tip      string   `json:"tip,omitempty"`  // the pushed commit, if any
		Base     string   `json:"base,omitempty"`
		WIP      bool     `json:"wip,omitempty"` // Tip is unfinished work saved for the next attempt
		Paths    []string `json:"paths,omitempty"`
		Stop     string   `json:"stop,omitempty"` // the agent's own stop reason
		ExitCode *int     `json:"exit_code,omitempty"`
		Session  string   `json:"session,omitempty"`
		Report   string   `json:"report,omitempty"`    // markdown, at most 64 KiB
		ReportBy string   `json:"report_by,omitempty"` // report_md or final_turn
		Output   string   `json:"output,omitempty"`    // last 16 KiB of a command's output
		Usage    Usage    `json:"usage"`
		// Left is what the agent has made and Tip does not have, at most MaxLeft; LeftMore
		// is how much there is besides.
		Left     []LeftOut `json:"left,omitempty"`
		LeftMore int       `json:"left_more,omitempty"`
	}
	// LeftOut is something that an agent has made and that is not in its work.
	LeftOut struct {
		_    struct{} `doc:"Something that an agent made and that is not in its work." schema:"LeftOut"`
		Kind LeftKind `json:"kind" doc:"branch: commits on another branch"`
		Name string   `json:"name" example:"web" doc:"path, or branch"`
		Why  string   `json:"why" example:"a repository of its own" doc:"in words"`
	}
)

// Limits of what a Finished says was left out.
const (
	MaxLeft      = 50
	MaxLeftBytes = 500 // of a name, and of a reason
)

// MaxLacks bounds Prepared.Lacks.
const MaxLacks = 50

// Limits on what an agent declares in one run.
const (
	MaxDeclared      = 20       // declarations
	MaxDeclaredBytes = 16 << 10 // of one
)

// States of a UserMessage. MessageDropped can follow any other state. The end of
// the run leaves a message in the state that it has reached.
const (
	MessageQueued    = "queued"    // the box keeps the message for the next turn
	MessageDelivered = "delivered" // its turn has begun
	MessageRead      = "read"      // its turn is over
	MessageDropped   = "dropped"   // the run ends without it
)

// States of Finished. Blocked is the state of a run that waited for a person in vain.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Blocked   = "blocked"
	Halted    = "halted"
	Lost      = "lost"
)

// Command is a durable instruction to a box, idempotent by ID. The server gives it
// at every CallCommands until the box reports it by CallDone as persisted.
type Command struct {
	V         int      `json:"v"`
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	Run       string   `json:"run,omitempty"`
	Attempt   int      `json:"attempt,omitempty"`
	Text      string   `json:"text,omitempty"`      // run.message
	Answers   []string `json:"answers,omitempty"`   // run.message: see UserMessage
	Interrupt bool     `json:"interrupt,omitempty"` // run.message: cancel the turn first
	Mode      string   `json:"mode,omitempty"`      // run.halt: graceful (save the work) or now
	Reason    string   `json:"reason,omitempty"`
	// Update is the program that the box shall take (box.update).
	Update *Update `json:"update,omitempty"`
}

// FailureBoxUnfit is the kind of a Finished whose run failed because of a fault of
// the box, which the box's test of itself has confirmed.
const FailureBoxUnfit = "box_unfit"

// Kinds of Command.
const (
	CommandMessage = "run.message"
	CommandHalt    = "run.halt"
	CommandDrain   = "box.drain"
	CommandResume  = "box.resume"
	CommandUpdate  = "box.update" // with Update: take it; without: forget what is under way
	CommandRotate  = "box.rotate"
)

// Commands are the oldest commands that a box has not done, oldest first, but halts
// before all others. More tells that further commands follow.
type Commands struct {
	Commands []Command `json:"commands"`
	More     bool      `json:"more,omitempty"`
}

// Done lists the ids of the commands that the box has persisted or refused.
type Done struct {
	IDs []string `json:"ids"`
}

// Modes of a halt.
const (
	HaltGraceful = "graceful"
	HaltNow      = "now"
)

// RunRef names an attempt that a box still has, and the last event in its spool.
type RunRef struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Seq     int64  `json:"seq"`
}

// Claim asks for one task. The server may hold the request up to WaitMS. ID makes
// it idempotent: the same id answers the same run as long as the run lives.
type Claim struct {
	ID     string `json:"id"`
	Free   int    `json:"free"`
	WaitMS int64  `json:"wait_ms"`
}

// ClaimReply carries a run, or the reasons why there is none. Sealed is Tokens in
// JSON, sealed to the box's Key for the purpose TokensPurpose.
type ClaimReply struct {
	Run     *Start   `json:"run,omitempty"`
	Sealed  string   `json:"sealed,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Start is all that a box needs to carry out one attempt. Its only credentials are
// the attempt's own, which end with the attempt; they are sent sealed, and the box
// fills them in.
type Start struct {
	Run        string `json:"run"`
	Attempt    int    `json:"attempt"`
	Task       string `json:"task"`
	Kind       string `json:"kind"` // work, ci, scout, ...
	Title      string `json:"title,omitempty"`
	LeaseMS    int64  `json:"lease_ms"`
	Repo       string `json:"repo"` // owner/name, for display
	CloneURL   string `json:"clone_url"`
	DefaultRef string `json:"default_ref"` // branch name
	Branch     string `json:"branch"`      // svc/<slug>--<8 hex>; empty when nothing may be pushed
	Base       string `json:"base,omitempty"`
	// Checkout is the exact commit to check out (ci). Empty: resume Branch or Saved if
	// one exists, else Base or DefaultRef.
	Checkout string `json:"checkout,omitempty"`
	// CheckoutRef is the full name of the ref at which Checkout is; empty if a branch has
	// it. The head of a fork is at one of these.
	CheckoutRef string `json:"checkout_ref,omitempty"`
	// LFS asks for the contents of files of Git LFS in the checkout, and holds work that is
	// handed in to pointers.
	LFS bool `json:"lfs,omitempty"`
	// Submodules says which the checkout has; nil: none.
	Submodules *Submodules `json:"submodules,omitempty"`
	// Environment says what is made ready before the agent; nil: nothing.
	Environment *Environment `json:"environment,omitempty"`
	// Depth is how many commits of history the checkout shows; 0: all.
	Depth int `json:"depth,omitempty"`
	// Saved is the ref to which the box that lost the task may have pushed its work,
	// see SavedRef.
	Saved      string            `json:"saved,omitempty"`
	SavedMS    int64             `json:"saved_ms,omitempty"` // how long that box may still be working
	Agent      string            `json:"agent"`              // builtin, claude, codex, opencode, gemini, qwen, goose, or command
	Model      string            `json:"model,omitempty"`
	Options    map[string]string `json:"options,omitempty"`
	Command    []string          `json:"command,omitempty"` // agent "command": argv, run in the checkout
	Env        map[string]string `json:"env,omitempty"`
	Prompt     string            `json:"prompt"`
	MCPServers []MCPServer       `json:"mcp_servers,omitempty"`
	// Mute is set if the run declares nothing: its outbox is not read, because whoever
	// wrote the checkout writes there.
	Mute        bool   `json:"mute,omitempty"`
	TimeoutMS   int64  `json:"timeout_ms"`
	Isolation   string `json:"isolation,omitempty"` // the least level that policy demands: bubblewrap, landlock or none
	GatewayURL  string `json:"gateway_url"`         // the control plane's model gateway, without /v1
	ModelToken  string `json:"model_token,omitempty"`
	GitToken    string `json:"git_token,omitempty"`
	CommitName  string `json:"commit_name"`
	CommitEmail string `json:"commit_email"`
}

// SavedRef is the ref to which a box pushes the work of an attempt that was taken
// from it: the attempt's branch may belong to another box by then.
func SavedRef(run string, attempt int) string { return fmt.Sprintf("refs/wip/%s/%d", run, attempt) }

// MCPServer is a server of the Model Context Protocol that the agent may use through
// the box's broker.
type MCPServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport"` // http or sse
	Path      string `json:"path"`      // at the broker: /host/path?query
}

// Accept tells that the box has persisted a Start.
type Accept struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// Renew asks for the extension of a lease.
type Renew struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Seq     int64  `json:"seq"`
}

// Renewal answers Accept and Renew. If OK is false, the attempt is fenced off and
// the box must kill it. The box may trim its spool up to CommittedSeq.
type Renewal struct {
	OK           bool  `json:"ok"`
	LeaseMS      int64 `json:"lease_ms"`
	CommittedSeq int64 `json:"committed_seq"`
	ServerMS     int64 `json:"server_time"`
}

// CredentialReply carries a new NATS user JWT for the box's own nkey.
type CredentialReply struct {
	JWT       string `json:"jwt"`
	ExpiresMS int64  `json:"expires_ms"` // from now
}

// GitTokenAsk asks for a new push token of a live attempt.
type GitTokenAsk struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// GitToken answers GitTokenAsk: the password of HTTP basic authentication, sealed to
// the box's Key for the purpose TokensPurpose.
type GitToken struct {
	Sealed    string `json:"sealed"`
	ExpiresMS int64  `json:"expires_ms"`
}

// Failure is the body of a reply that reports an error.
type Failure struct {
	Error string `json:"error"`
	Slug  string `json:"slug"`
}
