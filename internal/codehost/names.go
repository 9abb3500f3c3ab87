package codehost

import (
	"regexp"
	"strings"

	"yardmaster/internal/fault"
)

// Repo names a repository. Neither the zero value nor a name that Validate refuses
// is ever used in a path or a URL.
type Repo struct{ Owner, Name string }

func (r Repo) String() string { return r.Owner + "/" + r.Name }

var (
	ownerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	shaPattern   = regexp.MustCompile(`^[0-9a-f]{40}$`)
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
