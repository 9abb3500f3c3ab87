package protocol

// Submodules are the repositories that the git token of a run reads besides the run's own.
// Addresses in a checkout lead to none but these, by their keys (see package gitmodules).
type Submodules struct {
	Key   string   `json:"key"`           // of the run's repository
	Known []Module `json:"known"`         // those there are
	Why   string   `json:"why,omitempty"` // why there are none, if that has a reason of its own
}

// Module is a repository that may be a submodule.
type Module struct {
	Key      string `json:"key"`
	CloneURL string `json:"clone_url"`
}
