package arch

import (
	"path"
	"strings"
	"testing"
)

// spared lists files that a domain lacks, with the reason.
var spared = map[string]string{
	"domain/goal/store.go":         "the code host of the goals has them, and nothing is stored",
	"domain/service/store.go":      "it answers for the process and stores nothing",
	"domain/outbox/store.go":       "the rows are those of package mail",
	"domain/intent/ops.go":         "domains put intents, and nobody calls for one",
	"domain/hostlimit/ops.go":      "nodes share limits, and nobody calls for them",
	"domain/gateway/store.go":      "the rows of a call belong to sessions, budgets and keys",
	"domain/fleet/ops.go":          "boxes, runs and the queue ask it, and package box lets people answer",
	"domain/measure/ops.go":        "it counts for the domains that show numbers",
	"domain/measure/store.go":      "its statements stand by what they count",
	"domain/pull/store.go":         "its rows are those of package record",
	"domain/pull/record/ops.go":    "it has the rows of package pull, whose capabilities people call",
	"domain/pull/babysit/ops.go":   "it begins rounds, which people call for in package pull",
	"domain/pull/babysit/store.go": "its rows are those of package record",
	"domain/pull/facts/ops.go":     "it reads facts for package moves, and nobody calls for one",
	"domain/pull/facts/store.go":   "the rows that facts are read from are those of package record",
	"domain/pull/merge/ops.go":     "it carries out what people call for in package pull",
	"domain/pull/merge/store.go":   "its rows are those of package record",
	"domain/pull/trial/ops.go":     "it asks git for packages pull and merge, whose capabilities people call",
	"domain/pull/trial/store.go":   "git has what it reads",
	"domain/pull/moves/ops.go":     "it decides for package pull, whose capabilities people call",
	"domain/pull/moves/store.go":   "it decides from facts that package pull reads, and stores nothing",
	"domain/whatif/store.go":       "it plays what package queue reads",
	"domain/lfs/ops.go":            "programs that speak Git LFS call it",
	"domain/people/ops.go":         "its rows are read and changed by the capabilities of other domains",
}

func TestDomainLayout(t *testing.T) {
	have := map[string]file{}
	for _, f := range product(t) {
		have[strings.TrimPrefix(f.path, "internal/")] = f
	}
	for _, p := range packages(product(t)) {
		if !strings.HasPrefix(p, "domain/") {
			continue
		}
		noun := path.Base(p)
		for _, name := range []string{noun + ".go", "ops.go", "store.go"} {
			at := p + "/" + name
			f, ok := have[at]
			switch {
			case !ok && spared[at] == "":
				t.Errorf("%s is missing", at)
			case ok && spared[at] != "":
				t.Errorf("%s exists: remove it from the table", at)
			case ok && name == noun+".go" && f.tree.Doc == nil:
				t.Errorf("%s must hold the package comment", at)
			}
		}
	}
}
