package run

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
)

const (
	mostCompared = 20  // runs of a page whose changes are read
	mostPaths    = 200 // files that are named of each
)

// Changes is what a run's commits change.
type Changes struct {
	_         struct{}      `doc:"What the commits that a run has pushed change." schema:"RunChanges"`
	Additions int           `json:"additions" example:"12" doc:"lines"`
	Deletions int           `json:"deletions" example:"3" doc:"lines"`
	Count     int           `json:"count" example:"2" doc:"changed files"`
	Files     []ChangedFile `json:"files" doc:"by their path, at most 200"`
}

// ChangedFile is a file that a run has changed.
type ChangedFile struct {
	_         struct{}            `doc:"A file that a run has changed." schema:"RunChangedFile"`
	Path      string              `json:"path" example:"web/footer.go" doc:"its path; in quotes if not all of it can be shown"`
	Kind      codehost.ChangeKind `json:"kind" doc:"what was done to it"`
	Additions int                 `json:"additions" example:"12" doc:"lines; 0 for a binary file"`
	Deletions int                 `json:"deletions" example:"3" doc:"lines; 0 for a binary file"`
}

// compare adds to runs what each has reported and changed against a commit. It is called outside of
// transactions, since it asks the code host.
func (s *Service) compare(ctx context.Context, repoID, base string, rows []Row, out []Run) error {
	for i := range rows {
		out[i].Report = rows[i].Report
		if rows[i].Tip == nil || *rows[i].Tip == "" || base == "" || i >= mostCompared {
			continue
		}
		d, err := s.Branches.Changed(ctx, repoID, base, *rows[i].Tip)
		if errors.Is(err, codehost.ErrNotFound) {
			continue // its branch is gone
		}
		if err != nil {
			return err
		}
		c := &Changes{Count: len(d.Files) + d.More, Files: []ChangedFile{}}
		for n, f := range d.Files {
			c.Additions, c.Deletions = c.Additions+f.Additions, c.Deletions+f.Deletions
			if n < mostPaths {
				c.Files = append(c.Files, ChangedFile{
					Path: codehost.Legible(f.Path), Kind: codehost.ChangeKind(f.Kind), Additions: f.Additions, Deletions: f.Deletions,
				})
			}
		}
		out[i].Changes = c
	}
	return nil
}
