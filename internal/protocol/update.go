package protocol

import "fmt"

// Update names a program that a box shall run in place of its own. Nothing of it is believed
// before Signature holds, by a key that the box was told at its enrolment, for the bytes
// together with Statement.
type Update struct {
	Release   string `json:"release"` // id of its row in the ledger, by which it is downloaded
	Channel   string `json:"channel"`
	Version   string `json:"version"`
	Target    string `json:"target"` // as linux/amd64
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`           // hexadecimal
	Oldest    string `json:"oldest,omitempty"` // the oldest version that it can follow; empty: any
	Signature string `json:"signature"`        // as minisign writes it
	IdleMS    int64  `json:"idle_ms"`          // how long the box may wait for its runs to end, before it waits for the night
	TrialMS   int64  `json:"trial_ms"`         // how long the new program has for its trial
}

// Statement is the trusted comment of the signature of a program.
func (u Update) Statement() string {
	s := fmt.Sprintf("yardmaster channel:%s version:%s target:%s sha256:%s", u.Channel, u.Version, u.Target, u.SHA256)
	if u.Oldest != "" {
		s += " oldest:" + u.Oldest
	}
	return s
}

// States of an UpdateReport.
const (
	UpdateNone     = "none"     // nothing is under way
	UpdateFetching = "fetching" // the box downloads, and takes work meanwhile
	UpdateReady    = "ready"    // it is verified, and waits until the box has no run
	UpdateNight    = "night"    // the runs did not end in time: the box waits for the night, and takes work meanwhile
	UpdateTrying   = "trying"   // the new program runs, and has yet to do its trial
	UpdateGood     = "good"     // it runs for good
	UpdateFailed   = "failed"   // the box goes on with the program of before
)

// UpdateReport is what a box says of its updates with each beat.
type UpdateReport struct {
	State   string `json:"state"`
	Command string `json:"command,omitempty"` // id of the command that it is about
	Release string `json:"release,omitempty"` // the last that it was told to take
	Version string `json:"version,omitempty"` // its version
	Why     string `json:"why,omitempty"`     // of UpdateFailed, in one sentence
	// Keys is how many keys of releases the box knows. Without one it takes no update.
	Keys int `json:"keys"`
}

// MaxUpdateText bounds each text of an UpdateReport, in bytes.
const MaxUpdateText = 500

// TrialClaim asks for a trial: a run of the box's own, that no task is behind. ID makes it
// idempotent.
type TrialClaim struct {
	ID      string `json:"id"`
	Version string `json:"version"` // of the program that asks
}

// Trial is a test run. Sealed is the word to give back, sealed to the box's Key for the purpose
// TokensPurpose of the id, as the tokens of a run are.
type Trial struct {
	Sealed string `json:"sealed"`
}

// TrialDone gives a trial back: with its word, after the box has prepared folders, a sandbox and
// a commit in it as for a run.
type TrialDone struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Word    string `json:"word"`
}
