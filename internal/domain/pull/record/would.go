package record

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"yardmaster/internal/db"
)

// EndMerged is the end of a pull request that was merged.
func (r *Pull) EndMerged(m Made, by *string, now time.Time) {
	r.State, r.Babysit, r.Mergeable, r.Needs, r.NeedsAt = Merged, BabysitDone, "clean", "", nil
	r.MergeSHA, r.MergedBy, r.MergedAt, r.Otherwise, r.Would = &m.SHA, by, &now, m.Otherwise, nil
}

// InGit are the state of a pull request in git.
type InGit struct {
	Gone      bool   // there is no such branch
	Head      string // the commit of the branch; "" if it is the recorded head
	Merge     string // the commit that brought the head into the base; "": there is none
	Empty     bool   // the base contained the head before
	Base      string
	Patch     string
	Mergeable string

	Change, MergeBase string
	MergeBases        int
	Paths             []string
	Added, Deleted    int
	Unwanted          *db.JSON[Unwanted]
	LastPush          bool // the base wants the last push approved by somebody else
	Would             *db.JSON[Would]
	Had               []string // for the next look
}

// Learn sets what git has answered.
func (r *Pull) Learn(f InGit) {
	if r.Unreadable = false; f.Base == "" {
		return
	}
	if f.Would != nil && !reflect.DeepEqual(f.Would.V.Back, r.backOf()) {
		r.LookedSHA = "" // what is asked does not name what the merge would bring back
	}
	r.BaseSHA, r.PatchID, r.Change, r.MergeBase, r.MergeBases = f.Base, f.Patch, f.Change, f.MergeBase, int64(f.MergeBases)
	r.ChangedFiles, r.AddedLines, r.DeletedLines = new(int64(len(f.Paths))), new(int64(f.Added)), new(int64(f.Deleted))
	r.Unwanted, r.Mergeable, r.Would, r.Had.V = f.Unwanted, f.Mergeable, f.Would, f.Had
}

// Made is the commit of a merge.
type Made struct {
	SHA       string
	Otherwise string // in what it differs from the merge that was tried, for people; "": in nothing, or nobody knows
}

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

// Attempt is a merge to try.
type Attempt struct {
	BaseRef, Head string
	StartSHA      string   // where the work of its task began, on work that is merged by now; ""
	Had           []string // commits that the base was at
}

// Attempt is the merge of a head to try.
func (r Pull) Attempt(head string) Attempt { return Attempt{r.BaseRef, head, r.StartSHA, r.Had.V} }

// backOf is what the merge of a pull request would have brought back when it was last looked
// at.
func (r Pull) backOf() *Back {
	if r.Would == nil {
		return nil
	}
	return r.Would.V.Back
}

// said names what a merge would bring back.
func (b *Back) said() string {
	var parts []string
	if len(b.Paths) > 0 {
		parts = append(parts, Enumerate(b.Paths, b.More))
	}
	switch {
	case b.Commits == 1:
		parts = append(parts, "1 commit that the base was rewritten without")
	case b.Commits > 1:
		parts = append(parts, fmt.Sprintf("%d commits that the base was rewritten without", b.Commits))
	}
	return strings.Join(parts, "; ")
}
