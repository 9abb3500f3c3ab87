package protocol

// PresenceLeft is the state of a box's last beat: its program ends. The box takes
// no answer to its claim any more, and keeps no run but those that the beat names.
const PresenceLeft = "left"

// Presence is a beat: how a box is. State is ready, draining, drained, unfit or
// PresenceLeft.
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
	// Unfit says in one sentence, of at most MaxUnfit bytes, why the box can
	// carry out no run at all. Such a box claims nothing. Empty: it can.
	Unfit string `json:"unfit,omitempty"`
}

// BeatReply answers a beat. Commands says that some wait for the box, in case a
// nudge was lost.
type BeatReply struct {
	Commands bool  `json:"commands,omitempty"`
	ServerMS int64 `json:"server_time"` // Unix milliseconds
}

// Hello is the first thing a box says on every connection. Key is the public
// half of a key pair that this process of the box has made and keeps nowhere:
// every secret that the control plane gives the box is sealed to it. Signature is
// that of KeyStatement by the box's own nkey, in base64: without it whoever
// speaks as the box could have the secrets sealed to themself.
type Hello struct {
	V         int               `json:"v"`
	Version   string            `json:"version"`
	Runs      []RunRef          `json:"runs"`
	Slots     int               `json:"slots"`
	Labels    map[string]string `json:"labels,omitempty"`
	Agents    []AgentInfo       `json:"agents"`
	Isolation []string          `json:"isolation"` // the levels that are to be had, best first
	// Holds are the protections that each level held when it was last tried.
	Holds     map[string][]string `json:"isolation_holds"`
	OS        string              `json:"os"`
	Arch      string              `json:"arch"`
	Key       string              `json:"key"`
	Signature string              `json:"signature"`
}

// AgentInfo is a coding agent found on the box.
type AgentInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Missing says in one sentence, of at most MaxMissing bytes, what keeps the
	// agent from being used. Empty: it can be.
	Missing string `json:"missing,omitempty"`
}

// MaxMissing is the longest AgentInfo.Missing that is read.
const MaxMissing = 500

// HelloReply says what to do with each run the box named: continue, kill, or
// resend (its events from FromSeq on). A run that is not named is to be killed.
type HelloReply struct {
	Runs     []RunVerdict `json:"runs"`
	Draining bool         `json:"draining"`
	ServerMS int64        `json:"server_time"` // Unix milliseconds
}

// RunVerdict is the answer for one run of Hello. LeaseMS counts from when the
// box sent the hello.
type RunVerdict struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Do      string `json:"do"` // continue or kill
	FromSeq int64  `json:"from_seq"`
	LeaseMS int64  `json:"lease_ms"`
}

// Verdicts.
const (
	DoContinue = "continue"
	DoKill     = "kill"
)
