package pull

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// mostUnwanted limits how much is listed of what a change should not have.
const mostUnwanted = 20

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

// unwanted is what is stored of what a code host has found.
func unwanted(found []codehost.Unwanted) *db.JSON[Unwanted] {
	out := Unwanted{Files: []UnwantedFile{}}
	for i, u := range found {
		if i == mostUnwanted {
			out.More = int64(len(found) - i)
			break
		}
		out.Files = append(out.Files, UnwantedFile{Kind: u.Kind, Path: codehost.Legible(u.Path), Count: int64(u.Files)})
	}
	return &db.JSON[Unwanted]{V: out}
}

// unwanted is what is said of that; nil while nobody has looked.
func (r sizeRow) unwanted() *Unwanted {
	if r.Unwanted == nil {
		return nil
	}
	return &r.Unwanted.V
}
