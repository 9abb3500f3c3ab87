package protocol

// PresenceLeft is the state in a box's last beat, before its program ends. After it
// the box takes no answer to its claim, and keeps only the runs that the beat names.
const PresenceLeft = "left"

// Presence is a beat, with the condition of a box. State is ready, draining,
// drained, unfit or PresenceLeft.
type Presence struct {
	V          int      `json:"v"`
	Version    string   `json:"version"`
	State      string   `json:"state"`
	Slots      int      `json:"slots"`
	Free       int      `json:"free"`
	Runs       []RunRef `json:"runs,omitempty"`
	DiskFree   int64    `json:"disk_free"`
	SkewMS     int64    `json:"skew_ms"`
	SpoolBytes int64    `json:"spool_bytes"`
	// Unfit is the reason, in one sentence of at most MaxUnfit bytes, for which the
	// box can carry out no run. Such a box claims nothing. Empty: it can.
	Unfit string `json:"unfit,omitempty"`
	// UnfitFor are the repositories, owner/name, of which the box can carry out no run, at
	// most MaxUnfitFor, with the reason in one sentence of at most MaxUnfit bytes.
	UnfitFor map[string]string `json:"unfit_for,omitempty"`
	// Update is what became of the last update. A box whose program cannot update itself
	// leaves it out.
	Update *UpdateReport `json:"update,omitempty"`
}

// BeatReply answers a beat. Commands tells that commands wait for the box, in case
// a nudge was lost.
type BeatReply struct {
	Commands bool  `json:"commands,omitempty"`
	ServerMS int64 `json:"server_time"` // Unix milliseconds
}

// Hello is the first call of a box on every connection. Key is the public half of a
// key pair that this process of the box has made and does not store: the control
// plane seals every secret for the box to it. Signature is the signature of
// KeyStatement by the box's own nkey, in base64: without it, an impostor on the
// box's connection could have the secrets sealed to a key of its own.
type Hello struct {
	V         int               `json:"v"`
	Version   string            `json:"version"`
	Runs      []RunRef          `json:"runs"`
	Slots     int               `json:"slots"`
	Labels    map[string]string `json:"labels,omitempty"`
	Agents    []AgentInfo       `json:"agents"`
	Isolation []string          `json:"isolation"` // the available levels, best first
	// Holds are the protections that each level had when the box last tested it.
	Holds     map[string][]string `json:"isolation_holds"`
	OS        string              `json:"os"`
	Arch      string              `json:"arch"`
	Key       string              `json:"key"`
	Signature string              `json:"signature"`
}

// AgentInfo describes a coding agent that the box has found.
type AgentInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Missing is the reason, in one sentence of at most MaxMissing bytes, for which
	// the agent cannot be used. Empty: it can.
	Missing string `json:"missing,omitempty"`
}

// MaxMissing is the largest AgentInfo.Missing that the server reads, in bytes.
const MaxMissing = 500

// HelloReply tells what to do with each run that the box named: continue, with its
// events from FromSeq on, or kill. The box also kills a run that is not named.
type HelloReply struct {
	Runs     []RunVerdict `json:"runs"`
	Draining bool         `json:"draining"`
	ServerMS int64        `json:"server_time"` // Unix milliseconds
}

// RunVerdict is the answer for one run of Hello. LeaseMS counts from the time at
// which the box sent the hello.
type RunVerdict struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Do      string `json:"do"` // continue or kill
	FromSeq int64  `json:"from_seq"`
	LeaseMS int64  `json:"lease_ms"`
}

// Values of RunVerdict.Do.
const (
	DoContinue = "continue"
	DoKill     = "kill"
)

// MaxUnfit bounds Presence.Unfit, in bytes. MaxUnfitFor bounds Presence.UnfitFor.
const (
	MaxUnfit    = 500
	MaxUnfitFor = 20
)
