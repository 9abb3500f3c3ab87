// Package box keeps the machines that agents run on. A machine joins an account
// by an enrollment. From then on it proves its identity by a durable token over
// HTTPS and by a NATS credential on the bus. The package knows whether a box is
// online (presence), gives it commands, and takes it out of service (drain,
// revoke, decommission).
//
// A change that concerns a box stores a command for it in the transaction of
// the change. The box fetches its commands, in order, until it has confirmed
// each. The work that a revocation leaves for the bus is stored in the same
// way.
//
// Identity, enrolment and credentials are in enroll.go (enrollment tokens,
// durable tokens, NATS credentials, the caller of a request) and revoke.go
// (revocation, and the keys that the bus shuts out); retire.go decommissions.
// The life of a connected box is in loop.go (hello, beats, presence), leave.go
// (the last beat of a box that stops), command.go (its commands) and unfit.go
// (faults of the machine). owner.go is about whose work a box takes, which package
// fleet decides. ops.go has the capabilities; store.go, store_list.go and
// store_consent.go have the statements.
package box

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// State is the state of a box.
type State string

// The states of a box. Its presence is separate.
const (
	Enrolled = "enrolled"
	Draining = "draining" // takes no new work and still holds runs
	Drained  = "drained"
	Revoked  = "revoked" // cannot be undone
)

// Values lists all states.
func (State) Values() []string { return []string{Enrolled, Draining, Drained, Revoked} }

// The presence of a box, by the age of its last beat. A box whose last beat
// said that it stops is offline at once.
const (
	Online  = measure.BoxOnline
	Stale   = measure.BoxStale
	Offline = measure.BoxOffline
)

const (
	staleAfter   = 45 * time.Second
	offlineAfter = 90 * time.Second
)

// Target is whose work a box takes.
type Target string

// The targets of a box's owner: whose work the box takes.
const (
	Shared = "shared" // every account's
	Org    = "org"    // one account's
	User   = "user"   // the work of one member, here and wherever the member has agreed
)

// Values lists all.
func (Target) Values() []string { return []string{Shared, Org, User} }

// Firewall is what a machine has of one.
type Firewall string

// Values lists all.
func (Firewall) Values() []string { return []string{"active", "inactive", "absent", "unknown"} }

// The lifetimes of enrollments and credentials.
const (
	enrollmentTTL = time.Hour
	runTokenTTL   = 30 * 24 * time.Hour // renewed in its last third
	credentialTTL = 24 * time.Hour      // of the NATS credential
)

// Box is a machine as clients see it.
type Box struct {
	_            struct{}          `doc:"A machine that agents run on."`
	ID           string            `json:"id" format:"uuid" doc:"id of the box"`
	Name         string            `json:"name" example:"build-3" doc:"as the enrollment named it, or as the machine calls itself"`
	Owner        BoxOwner          `json:"owner" doc:"whose work it takes"`
	Consent      *string           `json:"consent" enum:"pending" example:"null" doc:"pending: consent_of was asked to own it, and has not answered; until then nothing changes; null: nobody was asked"`
	ConsentOf    *string           `json:"consent_of" format:"uuid" example:"null" doc:"the member who was asked; null: nobody"`
	Outside      *Outside          `json:"outside" example:"null" doc:"why a box of another account takes work of this one; null: it is of this account. Of the runs that it holds, those of this account are counted"`
	State        State             `json:"state" doc:"draining: takes no new work and still holds some; revoked is for good; whether it is there is presence"`
	Presence     Presence          `json:"presence" doc:"whether it is there, and what it last said of itself"`
	Slots        int64             `json:"slots" example:"4" doc:"runs it takes at once"`
	Labels       map[string]string `json:"labels" example:"{\"zone\":\"eu\"}" doc:"its own, and over them those of its enrollment"`
	Capabilities []Agent           `json:"capabilities" doc:"the coding agents found on it"`
	Isolation    []string          `json:"isolation" enum:"bubblewrap,landlock,none" doc:"the levels its sandbox has, best first"`
	Holds        Holds             `json:"isolation_holds" example:"{\"bubblewrap\":[\"files\",\"processes\",\"network\"]}" doc:"what each level held when the box last tried it: files, processes, unix_sockets, network, kernel, memory, disk"`
	OS           string            `json:"os" example:"linux" doc:"as it said when it enrolled"`
	Arch         string            `json:"arch" example:"amd64" doc:"as it said when it enrolled"`
	Briefing     *string           `json:"briefing" example:"null" doc:"what the operator tells every agent on it; null: nothing"`
	Hardening    *Hardening        `json:"hardening" example:"null" doc:"its last report; null: it has sent none"`
	CreatedAt    time.Time         `json:"created_at" doc:"when it enrolled"`
	RevokesAt    *time.Time        `json:"revokes_at" doc:"it is being decommissioned: when it is revoked at the latest; null: it is not"`
	RevokedAt    *time.Time        `json:"revoked_at" example:"null" doc:"when it was revoked; null: it is not"`
}

// Holds are the protections that each level of isolation held, by level.
type Holds = map[string][]string

// BoxOwner says whose work a box takes. ID is nil when the box is shared.
type BoxOwner struct {
	_      struct{} `doc:"Whose work a box takes."`
	Target Target   `json:"target" example:"org" doc:"shared: every account's; org: this account's; user: what one member asked for"`
	ID     *string  `json:"id" format:"uuid" doc:"the account or user; null when it is shared"`
}

// Outside says why a box of another account takes work of this one.
type Outside struct {
	_        struct{}   `doc:"Why a box of another account takes work of this one. What that account alone knows of the box, such as its labels, is left out."`
	Account  string     `json:"account" example:"acme" doc:"login of the account that it is enrolled in"`
	Right    string     `json:"right" enum:"shared,consent,gift" example:"consent" doc:"shared: an operator of the server shares it with every account; gift: its account has lent it to repositories of this one; consent: its owner, who is a member here, has agreed to it, and this account lets such boxes in"`
	AgreedAt *time.Time `json:"agreed_at" doc:"when its owner agreed; null: it is shared"`
	Given    []string   `json:"given" enum:"brief,code,git_token,model_token,secrets" doc:"what it is given for each task that it takes, but that a check gets no model token; with an owner it takes that member's alone"`
}

// Presence says whether a box is online, and holds the newest report of the box
// about itself.
type Presence struct {
	_         struct{}         `doc:"Whether a box is there, and what it last said of itself."`
	Status    measure.Presence `json:"status" doc:"by the age of its last beat: stale after 45 seconds, offline after 90, or as soon as it was stopped"`
	LastBeat  *time.Time       `json:"last_beat" doc:"when it last said something; null: never"`
	Active    int              `json:"active" example:"1" doc:"runs it holds"`
	Version   string           `json:"version" example:"1.4.0" doc:"of the program on it; empty before its first beat"`
	Unfit     *string          `json:"unfit" example:"null" doc:"why it takes no work; null when nothing is wrong with it"`
	Telemetry *Telemetry       `json:"telemetry" doc:"null before the first beat"`
	Update    *Update          `json:"update" example:"null" doc:"what became of the last program that it was told to take; null: its program cannot update itself"`
}

// Update is what a box says of its updates.
type Update struct {
	_       struct{} `doc:"What became of the last program that a box was told to take." schema:"BoxUpdate"`
	State   string   `json:"state" enum:"none,fetching,ready,night,trying,good,failed" example:"good" doc:"ready: it waits until the box has no run; night: the runs took too long, and it waits for the night; trying: it runs, and has yet to do its trial; failed: the program of before goes on"`
	Version string   `json:"version" example:"v1.4.0" doc:"of that program; empty: it was told none"`
	Why     string   `json:"why" example:"" doc:"what is wrong, in the words of the box; empty: nothing"`
	Keys    int      `json:"keys" example:"1" doc:"keys of releases that it knows; without one it takes no update"`
}

// Telemetry is the part of a beat that clients see.
type Telemetry struct {
	_          struct{} `doc:"What a box says of itself with each beat."`
	State      string   `json:"state" enum:"ready,draining,drained,unfit,left" example:"ready" doc:"what the box takes itself for; left: it was stopped"`
	Free       int      `json:"free" example:"3" doc:"slots without a run"`
	DiskFree   int64    `json:"disk_free" example:"52000000000" doc:"bytes free on the disk it works on"`
	SkewMS     int64    `json:"skew_ms" example:"12" doc:"how far its clock is from the server's, in milliseconds"`
	SpoolBytes int64    `json:"spool_bytes" example:"0" doc:"bytes of events it has yet to hand in"`
}

// Agent is a coding agent on a box.
type Agent struct {
	_       struct{} `doc:"A coding agent on a box."`
	Name    string   `json:"name" example:"claude" doc:"as templates name it"`
	Version string   `json:"version" example:"2.1.0" doc:"as the program said it; empty when it has not"`
	Missing *string  `json:"missing" example:"null" doc:"what keeps it from being used, and what to do about it; null: it can be used"`
}

// Hardening is a box's report of how open its machine is. The box makes it at
// each start, as the user that it runs as.
type Hardening struct {
	_            struct{}      `doc:"What a box reports after its firewall was set up."`
	Firewall     Firewall      `json:"firewall" doc:"inactive: there is one, which lets everything in; absent: no program for one is installed; unknown: the box may not see it, and findings say why"`
	ExposedPorts []ExposedPort `json:"exposed_ports" doc:"what listens at addresses other than loopback; whether others reach it is up to the firewall and the network"`
	Findings     []string      `json:"findings" example:"[]" doc:"what else is worth knowing, for people"`
	ReportedAt   time.Time     `json:"reported_at" doc:"when the report came"`
}

// ExposedPort is a port on which a program of the box listens at an address
// other than loopback.
type ExposedPort struct {
	_        struct{} `doc:"A port of a box that answers from outside." schema:"ExposedPort"`
	Port     int      `json:"port" minimum:"1" maximum:"65535" example:"22" doc:"its number"`
	Protocol string   `json:"protocol" enum:"tcp,udp" doc:"what it speaks"`
	Address  string   `json:"address,omitempty" maxLength:"64" example:"0.0.0.0" doc:"the address it answered on; absent: any"`
}

// Bus is the part of the message bus that this package calls.
type Bus interface {
	// URL is the address of the bus for boxes.
	URL() string
	// CA is the fingerprint of the authority by which boxes know the bus; empty: they
	// know it by those that their machine trusts, or it is in the clear.
	CA() string
	// NewAccount makes a new account of the bus and returns its name.
	NewAccount() (string, error)
	// Admit has servers of somebody else, if the bus uses such, let a box in with an account that it may
	// use by now. It fails if they are away; later the bus does it by itself.
	Admit(ctx context.Context, boxID, account string) error
	// Issue signs a NATS credential in an account for publicKey, the public
	// half of a key that the box has made. It returns a fault if publicKey is
	// no such key.
	Issue(boxID, account, publicKey string, ttl time.Duration) (string, error)
	// Shut ends the connections of an account and refuses new ones.
	Shut(ctx context.Context, account string) error
	// Nudge sends a box a hint, which may be lost.
	Nudge(boxID, verb string)
	// Handle makes fn answer the calls of boxes to a method.
	Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error
}

// Runs gives access to the runs that boxes hold.
type Runs interface {
	// Active counts the live runs of boxes: those of one account, or all for an empty one.
	// The map may lack a box without one.
	Active(tx *db.Tx, boxIDs []string, accountID string) (map[string]int, error)
	// Drained puts the tasks of a box that is offline, and cannot hand them
	// back, into the queue. It returns their number.
	Drained(tx *db.Tx, boxID string) (requeued int, err error)
	// Revoked is Drained for a revoked box. No token of a run on the box is
	// valid afterwards.
	Revoked(tx *db.Tx, boxID string) (requeued int, err error)
	// Verdicts decides, as a box connects, which of the runs that the box says
	// it holds go on.
	Verdicts(ctx context.Context, boxID string, held []protocol.RunRef) ([]protocol.RunVerdict, error)
	// TakeBack puts the tasks that a box may not hold any more back into the queue; no
	// token of their runs is valid afterwards. The box is locked.
	TakeBack(tx *db.Tx, boxID string) error
	// Dismiss ends the waiting claims of a box that takes no work now.
	Dismiss(boxID string)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Bus    Bus `optional:"without one no credential can be signed: enrolments are refused with no-signing-key"`
	Logger *slog.Logger
	Runs   Runs

	Programs    Programs `optional:"without any a machine that joins has to have the program"`
	ReleaseKeys []string `optional:"without one boxes are told none, and take no updates"`
}

// Programs are the programs of this version.
type Programs interface {
	// Handed answers where they are, one for each target.
	Handed(ctx context.Context) ([]Program, error)
}

// Service holds the boxes.
type Service struct {
	Needs

	beats   beats
	settled settled
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// presenceAt returns the presence of a box at now: the stored one, unless the
// last beat has become too old for it.
func presenceAt(stored string, lastBeat *time.Time, now time.Time) string {
	if stored == Offline || stored == left || lastBeat == nil {
		return Offline
	}
	switch age := now.Sub(*lastBeat); {
	case age >= offlineAfter:
		return Offline
	case age >= staleAfter:
		return Stale
	}
	return Online
}

// slotsOf returns how many runs a box takes: its offer, or the operator's
// number if that is less.
func slotsOf(offered int64, set *int64) int64 {
	if set != nil {
		return min(offered, *set)
	}
	return offered
}

// labelsOf joins the labels of the box itself with the operator's, which take
// precedence.
func labelsOf(own, set map[string]string) map[string]string {
	out := make(map[string]string, len(own)+len(set))
	for k, v := range own {
		out[k] = v
	}
	for k, v := range set {
		out[k] = v
	}
	return out
}

// checkLabels returns fault.Invalid for a key that could not stand on a command
// line or in a filter, and for a value of more than 800 bytes.
func checkLabels(labels map[string]string) error {
	for k, v := range labels {
		if len(v) > 800 {
			return fault.Field("labels."+k, "is too long")
		}
		if k == "" || len(k) > 63 || strings.Trim(k, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") != "" {
			return fault.Field("labels", "has a key that is not 1 to 63 letters, digits, dots, slashes, hyphens or underscores")
		}
	}
	return nil
}

// fresh tells whether a durable token that ends at expires need not be replaced
// yet: at now it is not in the last third of its life.
func fresh(expires, now time.Time) bool { return expires.Sub(now) > runTokenTTL/3 }

// unavailable is the fault of a deployment whose bus cannot sign credentials.
func unavailable() *fault.Error {
	return fault.New(fault.Unavailable, "no-signing-key", "This deployment has no key to sign box credentials with.")
}

// quote returns s as a word of a POSIX shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
