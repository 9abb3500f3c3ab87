package trial

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// would is what a merge that was tried would do; nil for a conflict, and if the base has the
// head already.
func would(r repo.Ref, o codehost.Outcome) *db.JSON[record.Would] {
	if o.Conflict || o.Tree == o.BaseSHA {
		return nil
	}
	w := record.Would{BaseSHA: o.BaseSHA, TreeSHA: o.Tree, Files: []record.WouldFile{}, Back: back(r, o)}
	for _, c := range o.Changes {
		w.Additions += c.Added
		w.Deletions += c.Deleted
		if len(w.Files) == record.MaxPaths {
			w.More++
			continue
		}
		w.Files = append(w.Files, record.WouldFile{Path: codehost.Legible(c.Path), Kind: c.Kind, Additions: c.Added, Deletions: c.Deleted})
	}
	return &db.JSON[record.Would]{V: w}
}

// back is what a merge that was tried would bring back; nil: nothing. Commits without a file
// come back only with a merge that takes the commits over.
func back(r repo.Ref, o codehost.Outcome) *record.Back {
	if len(o.Back) == 0 && (o.Dropped == 0 || codehost.Method(r.Policy.Merge.Method) == codehost.MethodSquash) {
		return nil
	}
	b := record.Back{Paths: []string{}, Commits: o.Dropped}
	for _, path := range o.Back {
		if len(b.Paths) == record.MaxPaths {
			b.More++
			continue
		}
		b.Paths = append(b.Paths, codehost.Legible(path))
	}
	return &b
}

// mostHad limits the former commits of a base that are remembered.
const mostHad = 20

// had are the commits that the base of a merge that was tried was at, for the next try.
func had(o codehost.Outcome) []string {
	return append(o.Lost[max(0, len(o.Lost)-mostHad):len(o.Lost):len(o.Lost)], o.BaseSHA)
}
