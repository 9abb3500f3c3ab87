package repo

import "fmt"

// maxDepth is the longest history that a policy file may ask for, in commits.
const maxDepth = 1_000_000

// CheckoutPolicy says what is in a checkout besides the repository's own files.
type CheckoutPolicy struct {
	_          struct{} `doc:"What agents and checks find in a checkout." schema:"CheckoutPolicy"`
	Submodules bool     `json:"submodules" yaml:"submodules" doc:"whether submodules are there"`
	LFS        bool     `json:"lfs" yaml:"lfs" doc:"whether files of Git LFS are there, not their pointers"`
	Depth      int      `json:"depth" yaml:"depth" example:"0" doc:"how many commits of history are there; 0: all"`
}

func (c CheckoutPolicy) check() (msgs []string) {
	if c.Depth < 0 || c.Depth > maxDepth {
		msgs = append(msgs, fmt.Sprintf("checkout.depth must be between 0 and %d", maxDepth))
	}
	return msgs
}
