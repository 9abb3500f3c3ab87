package repo

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

type fileIn struct {
	placeIn
	Path   string `json:"path" minLength:"1" maxLength:"4096" example:"docs/setup.md" doc:"the file, from the root of the repository"`
	Commit string `json:"commit" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" example:"7fd1a60b01f91b314f59955a4e4d4e80d8edf11d" doc:"the commit at which it is read"`
}

// FileAt is a file of a repository as it is at a commit.
type FileAt struct {
	_      struct{} `doc:"A file of a repository as it is at a commit." schema:"RepositoryFile"`
	Path   string   `json:"path" example:"docs/setup.md" doc:"from the root of the repository"`
	Commit string   `json:"commit" example:"7fd1a60b01f91b314f59955a4e4d4e80d8edf11d" doc:"the commit at which it was read"`
	SHA    string   `json:"sha" example:"3b18e512dba79e4c8300dd08aeb37f8e728b8dad" doc:"of its content, as git names it"`
	Size   int      `json:"size" unit:"bytes" example:"6" doc:"of its content, in bytes"`
	Text   *string  `json:"text" example:"hello\n" doc:"its content, of a symbolic link where it leads; null: it is no text in UTF-8"`
}

// file reads a file at a commit. Which commits there are, the repository of the account decides:
// nothing of another one is reached.
func (s *Service) file(ctx context.Context, in fileIn) (FileAt, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = in.find(tx)
		return err
	})
	if err != nil {
		return FileAt{}, err
	}
	host, err := s.Hosts.Of(r.ref().HostRepo())
	if err != nil {
		return FileAt{}, err
	}
	content, sha, err := host.ReadFile(ctx, r.ref().HostRepo(), in.Commit, in.Path)
	if errors.Is(err, codehost.ErrNotFound) {
		err = fault.Missing("file at this commit")
	}
	if err != nil {
		return FileAt{}, err
	}
	out := FileAt{Path: in.Path, Commit: in.Commit, SHA: sha, Size: len(content)}
	if text := string(content); utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		out.Text = &text
	}
	return out, nil
}
