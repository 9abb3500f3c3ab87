package pull

import (
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// tried tries a merge at the code host. It fails with the errors of the host.
func (s *Service) tried(ctx context.Context, r repo.Ref, a record.Attempt) (o codehost.Outcome, landed []string, err error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return o, nil, err
	}
	if landed, err = s.landed(ctx, r, a); err != nil {
		return o, nil, err
	}
	o, err = host.Outcome(ctx, r.HostRepo(), codehost.OutcomeOptions{Base: a.BaseRef, Head: a.Head, Landed: landed, Had: a.Had})
	return o, landed, err
}

// landed are the heads that are known to have been merged into the base of an attempt,
// maybe by other commits than their own. Of what the server has merged itself, git tells.
func (s *Service) landed(ctx context.Context, r repo.Ref, a record.Attempt) (heads []string, err error) {
	if a.StartSHA != "" {
		heads = append(heads, a.StartSHA)
	}
	if !s.kept(r) {
		return heads, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		merged, err := record.MergedHeads.All(tx, r.ID, a.BaseRef)
		heads = append(heads, merged...)
		return err
	})
	return heads, err
}

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
