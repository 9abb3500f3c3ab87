package change

import (
	"fmt"
	"strings"
)

// noChecks says what is missing where a head has no checks.
const noChecks = "checks.command of .svc/policy.yml names what to run"

// unwanted is what a head changes that it should not, as a rule.
type unwanted struct {
	Files []struct {
		Kind  string `json:"kind"`
		Path  string `json:"path"`
		Count int    `json:"count"`
	} `json:"files"`
	More int `json:"more"`
}

// unwantedWords says what is the matter with a file.
func unwantedWords(kind string) string {
	switch kind {
	case "binary":
		return "is binary"
	case "large":
		return "is large"
	case "made_by_tool":
		return "is made by a tool"
	case "conflict_marks":
		return "has marks of an unfinished merge"
	case "lock_without_manifest":
		return "changes without its manifest"
	case "submodule_unnamed":
		return "is a submodule that .gitmodules does not name"
	case "lfs_replaced":
		return "was a pointer of Git LFS"
	case "line_endings":
		return "changes in the ends of its lines alone"
	}
	return kind
}

// leftOut is what agents made and their work does not have.
type leftOut []struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

func (l leftOut) words() string {
	all := make([]string, len(l))
	for i, x := range l {
		if all[i] = x.Name + ": " + x.Why; x.Kind == "branch" {
			all[i] = "branch " + all[i]
		}
	}
	return strings.Join(all, "; ")
}

func (u unwanted) words() string {
	var all []string
	for _, f := range u.Files {
		say := f.Path + " " + unwantedWords(f.Kind)
		if f.Count > 1 {
			say += fmt.Sprintf(" (%d files)", f.Count)
		}
		all = append(all, say)
	}
	if u.More > 0 {
		all = append(all, fmt.Sprintf("and %d more", u.More))
	}
	return strings.Join(all, "; ")
}
