package pull

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// mostUnwanted limits how much is listed of what a change should not have.
const mostUnwanted = 20

// unwanted is what is stored of what a code host has found.
func unwanted(found []codehost.Unwanted) *db.JSON[record.Unwanted] {
	out := record.Unwanted{Files: []record.UnwantedFile{}}
	for i, u := range found {
		if i == mostUnwanted {
			out.More = int64(len(found) - i)
			break
		}
		out.Files = append(out.Files, record.UnwantedFile{Kind: u.Kind, Path: codehost.Legible(u.Path), Count: int64(u.Files)})
	}
	return &db.JSON[record.Unwanted]{V: out}
}
