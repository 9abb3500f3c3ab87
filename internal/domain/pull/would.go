package pull

import (
	"context"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// Would is what the merge of a pull request would do to its base, which is not what the
// branch has changed since it left the base: the base has moved on, it may have been
// rewritten, and it may have the work below in a squash.
type Would struct {
	_         struct{}    `doc:"What the merge of a pull request would do to its base." schema:"MergeEffect"`
	BaseSHA   string      `json:"base_sha" doc:"the commit of the base with which it was tried"`
	TreeSHA   string      `json:"tree_sha" doc:"the content that the base would have, a tree of git; the commit of the merge is compared with it"`
	Files     []WouldFile `json:"files" doc:"of the base that would change, by path, at most 50; a rename counts as two"`
	More      int         `json:"more" example:"0" doc:"how many files beyond those"`
	Additions int         `json:"additions" example:"12" doc:"lines, of all files"`
	Deletions int         `json:"deletions" example:"3" doc:"lines, of all files"`
	Back      *Back       `json:"back" example:"null" doc:"what it would bring back that was dropped; null: nothing"`
}

// WouldFile is a file of the base that a merge would change.
type WouldFile struct {
	_         struct{} `doc:"A file of the base that a merge would change." schema:"MergeEffectFile"`
	Path      string   `json:"path" doc:"bytes that are no text are quoted"`
	Kind      string   `json:"kind" enum:"added,modified,deleted,type_changed" doc:"type_changed: a file would become a link, or the other way about"`
	Additions int      `json:"additions" doc:"lines"`
	Deletions int      `json:"deletions" doc:"lines"`
}

// Back is what a merge would bring back that was dropped: the base was rewritten and the
// branch has what it had, the base has deleted what the branch has, too, or the branch has
// deleted what a squash of the work below has brought to the base, and the code host does not
// know that the two are one. A person is always asked about it.
type Back struct {
	_       struct{} `doc:"What a merge would bring back that was dropped." schema:"BroughtBack"`
	Paths   []string `json:"paths" example:"[\"key.pem\"]" doc:"files that the base had so before it was rewritten, that the base has deleted since the branch left it, or, at a code host that merges by itself, that would not come out as the branch has them; at most 50; bytes that are no text are quoted"`
	More    int      `json:"more" example:"0" doc:"how many files beyond those"`
	Commits int      `json:"commits" example:"1" doc:"commits of the branch that the base had before it was rewritten, and has not any more"`
}

// attempt is a merge to try.
type attempt struct {
	BaseRef, Head string
	StartSHA      string   // where the work of its task began, on work that is merged by now; ""
	Had           []string // commits that the base was at
}

func (r row) attempt(head string) attempt { return attempt{r.BaseRef, head, r.StartSHA, r.Had.V} }

// tried tries a merge at the code host. It fails with the errors of the host.
func (s *Service) tried(ctx context.Context, r repo.Ref, a attempt) (o codehost.Outcome, landed []string, err error) {
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
func (s *Service) landed(ctx context.Context, r repo.Ref, a attempt) (heads []string, err error) {
	if a.StartSHA != "" {
		heads = append(heads, a.StartSHA)
	}
	if !s.kept(r) {
		return heads, nil
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		merged, err := mergedHeads.All(tx, r.ID, a.BaseRef)
		heads = append(heads, merged...)
		return err
	})
	return heads, err
}

// would is what a merge that was tried would do; nil for a conflict, and if the base has the
// head already.
func would(r repo.Ref, o codehost.Outcome) *db.JSON[Would] {
	if o.Conflict || o.Tree == o.BaseSHA {
		return nil
	}
	w := Would{BaseSHA: o.BaseSHA, TreeSHA: o.Tree, Files: []WouldFile{}, Back: back(r, o)}
	for _, c := range o.Changes {
		w.Additions += c.Added
		w.Deletions += c.Deleted
		if len(w.Files) == maxPaths {
			w.More++
			continue
		}
		w.Files = append(w.Files, WouldFile{Path: codehost.Legible(c.Path), Kind: c.Kind, Additions: c.Added, Deletions: c.Deleted})
	}
	return &db.JSON[Would]{V: w}
}

// back is what a merge that was tried would bring back; nil: nothing. Commits without a file
// come back only with a merge that takes the commits over.
func back(r repo.Ref, o codehost.Outcome) *Back {
	if len(o.Back) == 0 && (o.Dropped == 0 || codehost.Method(r.Policy.Merge.Method) == codehost.MethodSquash) {
		return nil
	}
	b := Back{Paths: []string{}, Commits: o.Dropped}
	for _, path := range o.Back {
		if len(b.Paths) == maxPaths {
			b.More++
			continue
		}
		b.Paths = append(b.Paths, codehost.Legible(path))
	}
	return &b
}

// backOf is what the merge of a pull request would have brought back when it was last looked
// at.
func (r row) backOf() *Back {
	if r.Would == nil {
		return nil
	}
	return r.Would.V.Back
}

// said names what a merge would bring back.
func (b *Back) said() string {
	var parts []string
	if len(b.Paths) > 0 {
		parts = append(parts, enumerate(b.Paths, b.More))
	}
	switch {
	case b.Commits == 1:
		parts = append(parts, "1 commit that the base was rewritten without")
	case b.Commits > 1:
		parts = append(parts, fmt.Sprintf("%d commits that the base was rewritten without", b.Commits))
	}
	return strings.Join(parts, "; ")
}

// mostHad limits the former commits of a base that are remembered.
const mostHad = 20

// had are the commits that the base of a merge that was tried was at, for the next try.
func had(o codehost.Outcome) []string {
	return append(o.Lost[max(0, len(o.Lost)-mostHad):len(o.Lost):len(o.Lost)], o.BaseSHA)
}
