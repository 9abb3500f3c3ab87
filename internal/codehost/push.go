package codehost

import "strings"

// Access is the set of rights of a git credential in one repository. The zero value
// permits nothing, and hides whether the repository exists.
type Access struct {
	Read   bool
	Push   []string // full ref names, or prefixes that end in "/*"
	Create bool     // pushing to a repository that does not exist creates it
	Who    string   // for PushEvent, for the record of the request, and for the limit of transfers
	// Account is the id of the account that the credential is good for, for the
	// record of the request.
	Account string
	// Credential is the id of the credential.
	Credential string
	// Person is the id of the user for whom the credential acts; "": nobody.
	Person string
}

// OfRun is the id of the run whose credential it is; empty for that of anybody else.
func (a Access) OfRun() string {
	if run, ok := strings.CutPrefix(a.Credential, "run:"); ok {
		return run
	}
	return ""
}

// MayPush tells whether the credential may create, move or delete a ref. Nobody may
// touch the branches of merge queues.
func (a Access) MayPush(ref string) bool {
	if strings.HasPrefix(strings.ToLower(ref), "refs/heads/"+QueuePrefix) {
		return false
	}
	for _, p := range a.Push {
		prefix, any := strings.CutSuffix(p, "*")
		if ref == p || any && strings.HasSuffix(prefix, "/") && strings.HasPrefix(ref, prefix) {
			return true
		}
	}
	return false
}

// InTheWay tells whether a ref would keep the service from making its own branches: svc
// and svc/queue, which git cannot have beside branches below them, and what is below the
// branch of a task.
func InTheWay(ref string) bool {
	branch, is := strings.CutPrefix(ref, "refs/heads/")
	if !is {
		return false
	}
	if branch == TaskRoot || branch+"/" == QueuePrefix {
		return true
	}
	rest, below := strings.CutPrefix(branch, TaskRoot+"/")
	name, _, deeper := strings.Cut(rest, "/")
	return below && deeper && endsInID(name)
}

// endsInID tells whether a name ends as those of the branches of tasks do: in two hyphens
// and eight digits of an id.
func endsInID(name string) bool {
	at := len(name) - 8
	return at >= 2 && name[at-2:at] == "--" && strings.Trim(name[at:], "0123456789abcdef") == ""
}

// PushEvent lists the refs that a push has really changed.
type PushEvent struct {
	Repo    Repo
	Who     string
	Updates []RefUpdate
}

// RefUpdate is one changed ref. Old is ZeroSHA for a new ref, New for a deleted one.
type RefUpdate struct{ Ref, Old, New string }
