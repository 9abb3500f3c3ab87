package codehost

import (
	"strings"

	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
)

// Repo names a repository. Neither the zero value nor a name that Validate refuses
// is ever used in a path or a URL.
//
// Two Repos may differ although they name one repository: a host may have renamed
// it in between. Compare their Keys, and use a Key as the key of a map.
type Repo struct {
	Host string // name of its host in Hosts, such as BuiltIn
	// ID is the permanent id that the host gave the repository; every Repo of a host
	// that gives ids has one. ID is empty at a host that never renames a repository, as
	// the built-in one: there owner and name are permanent.
	ID          string
	Owner, Name string
}

// String is owner/name.
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Key identifies a repository among those of all hosts, for good.
type Key struct{ host, id string }

// Key answers the key of the repository: its host, and its ID or, without one, its
// owner and name.
func (r Repo) Key() Key {
	if r.ID == "" {
		return Key{r.Host, r.String()}
	}
	return Key{r.Host, r.ID}
}

var (
	ownerPattern = lazy.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	namePattern  = lazy.New(`^[A-Za-z0-9._-]{1,100}$`)
	shaPattern   = lazy.New(`^[0-9a-f]{40}$`)
)

// ZeroSHA means "no commit" in the git protocol.
const ZeroSHA = "0000000000000000000000000000000000000000"

// Validate accepts an owner of letters, digits, "-" and "_", and a name that may
// also have dots, but is not made of dots only, does not start with "-" and does
// not end in ".git". Any other name is a fault.Invalid on the field repo.
func (r Repo) Validate() error {
	if !ownerPattern.MatchString(r.Owner) || !namePattern.MatchString(r.Name) ||
		strings.Trim(r.Name, ".") == "" || r.Name[0] == '-' || strings.HasSuffix(strings.ToLower(r.Name), ".git") {
		return fault.Field("repo", "is not a valid owner/name")
	}
	return nil
}

// ValidSHA tells whether s is the full SHA of an object.
func ValidSHA(s string) bool { return shaPattern.MatchString(s) && s != ZeroSHA }

// ValidBranch tells whether s is the name of a branch.
func ValidBranch(s string) bool {
	return s != "" && s[0] != '-' && s != "HEAD" && !strings.HasPrefix(s, "refs/") && ValidRef("refs/heads/"+s)
}

// ValidRef tells whether s is a full ref name by the rules of git-check-ref-format.
func ValidRef(s string) bool {
	rest, ok := strings.CutPrefix(s, "refs/")
	if !ok || len(s) > 255 || strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, ".") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
