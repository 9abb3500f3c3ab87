package protocol

// Environment is what a box makes ready for the agents and checks of a repository, before
// they begin, by a script of its policy file. The script runs in a checkout of the default
// branch; what it leaves is kept for later runs of the same Scope.
type Environment struct {
	Scope     string   `json:"scope"`             // whose runs share the result, opaque
	Command   string   `json:"command"`           // run by sh -c
	Inputs    []string `json:"inputs,omitempty"`  // paths that decide whether it runs anew; none: all of the tree
	Network   []string `json:"network,omitempty"` // host:port or *.domain:port, public ones alone
	Secrets   []string `json:"secrets,omitempty"` // variables that the script has, and the agent does not have
	TimeoutMS int64    `json:"timeout_ms"`
	// Why is set if nothing is made ready, and says why. Secrets are kept from the agent all the
	// same.
	Why string `json:"why,omitempty"`
}

// EnvironmentMade tells what became of an Environment.
type EnvironmentMade struct {
	State  string `json:"state"`             // see below
	Key    string `json:"key,omitempty"`     // of the result on the box
	TookMS int64  `json:"took_ms,omitempty"` // of the script, or of looking for its result
	Bytes  int64  `json:"bytes,omitempty"`   // of the result
	Exit   *int   `json:"exit_code,omitempty"`
	Output string `json:"output,omitempty"` // the end of what the script said
	Why    string `json:"why,omitempty"`    // of EnvironmentSkipped and EnvironmentFailed
}

// States of EnvironmentMade.
const (
	EnvironmentMaking  = "making"  // the script runs
	EnvironmentReady   = "ready"   // it has run
	EnvironmentKept    = "kept"    // an earlier run's result is used
	EnvironmentSkipped = "skipped" // there is none
	EnvironmentFailed  = "failed"
)
