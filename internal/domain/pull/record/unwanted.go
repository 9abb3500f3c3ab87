package record

import (
	"slices"

	"yardmaster/internal/codehost"
	"yardmaster/internal/protocol"
)

// SaysLeftOut is what is said of that, never nil.
func (r Sizes) SaysLeftOut() []protocol.LeftOut {
	if r.LeftOut == nil {
		return []protocol.LeftOut{}
	}
	out := slices.Clone(r.LeftOut.V)
	for i := range out {
		out[i].Name = codehost.Legible(out[i].Name)
	}
	return out
}

// Size is how much the pull request changes; nil: nobody has looked.
func (r Sizes) Size() *Size {
	if r.ChangedFiles == nil || r.AddedLines == nil || r.DeletedLines == nil {
		return nil
	}
	return &Size{Files: *r.ChangedFiles, Additions: *r.AddedLines, Deletions: *r.DeletedLines}
}

// Size is how much a pull request changes since it left its base.
type Size struct {
	_         struct{} `doc:"How much a pull request changes since it left its base." schema:"PullRequestSize"`
	Files     int64    `json:"files" example:"2" doc:"paths that change; a rename counts as two"`
	Additions int64    `json:"additions" example:"12" doc:"lines; a file without lines has none"`
	Deletions int64    `json:"deletions" example:"3" doc:"lines; a file without lines has none"`
}

// Unwanted is what the change of a head should not have, as a rule. It holds nothing up.
type Unwanted struct {
	_     struct{}       `doc:"What the change of a head should not have, as a rule. It holds nothing up." schema:"UnwantedFiles"`
	Files []UnwantedFile `json:"files" doc:"by path, at most 20"`
	More  int64          `json:"more" example:"0" doc:"how many there are besides"`
}

// UnwantedFile is a file or folder that a change should not have.
type UnwantedFile struct {
	_     struct{} `doc:"A file or folder that a change should not have, as a rule." schema:"UnwantedFile"`
	Kind  string   `json:"kind" enum:"binary,large,made_by_tool,conflict_marks,lock_without_manifest,submodule_unnamed,lfs_replaced,line_endings" example:"made_by_tool" doc:"binary: git has no lines of it; large: 1 MiB or more; made_by_tool: a tool makes it anew, so that .gitignore should name it; conflict_marks: an unfinished merge has left marks; lock_without_manifest: a lock file changes, and the file that it is of does not; submodule_unnamed: .gitmodules does not name it; lfs_replaced: the content is there in place of a pointer of Git LFS; line_endings: nothing but the ends of its lines has changed"`
	Path  string   `json:"path" example:"src/__pycache__/" doc:"a folder ends with a slash"`
	Count int64    `json:"count" example:"3" doc:"files that the path stands for"`
}

// SaysUnwanted is what is said of that; nil while nobody has looked.
func (r Sizes) SaysUnwanted() *Unwanted {
	if r.Unwanted == nil {
		return nil
	}
	return &r.Unwanted.V
}
