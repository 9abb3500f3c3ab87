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

// PushEvent lists the refs that a push has really changed.
type PushEvent struct {
	Repo    Repo
	Who     string
	Updates []RefUpdate
}

// RefUpdate is one changed ref. Old is ZeroSHA for a new ref, New for a deleted one.
type RefUpdate struct{ Ref, Old, New string }
