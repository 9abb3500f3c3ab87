package kb

import (
	"cmp"
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Version is what a page is, or was.
type Version struct {
	_          struct{}   `doc:"What a page is or was, without its text." schema:"KnowledgeVersion"`
	Version    int64      `json:"version" example:"3" doc:"its number; the greatest is what the page is"`
	Title      string     `json:"title" doc:"the title that it has or had"`
	Links      []string   `json:"links" example:"[\"guides/test\"]" doc:"slugs of the pages that it leads or led to"`
	Provenance Provenance `json:"provenance" doc:"who wrote it, and from what"`
	UpdatedAt  time.Time  `json:"updated_at" doc:"when it was written"`
}

// version is the page as its newest version.
func (r *pageRow) version() versionRow {
	return versionRow{
		Version: r.Version, Title: r.Title, Links: r.Links, CommitSHA: r.CommitSHA, Files: r.Files, RunID: r.RunID, UpdatedAt: r.UpdatedAt,
		UpdatedBy: r.UpdatedBy, Body: r.Body,
	}
}

func (r versionRow) wire() Version {
	return Version{
		Version: r.Version, Title: r.Title, Links: list(r.Links.V), Provenance: provenance(r.UpdatedBy, r.RunID, r.CommitSHA, r.Files.V),
		UpdatedAt: r.UpdatedAt,
	}
}

type versionsIn struct {
	op.PageIn
	pageIn
}

func (s *Service) versions(ctx context.Context, in versionsIn) (op.Page[Version], error) {
	var all []Version
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		p, err := page(tx, in.RepoID, in.Slug)
		if err != nil {
			return err
		}
		old, err := allVersions.All(tx, in.RepoID, in.Slug)
		all = []Version{p.version().wire()}
		for _, v := range old {
			all = append(all, v.wire())
		}
		return err
	})
	if err != nil {
		return op.Page[Version]{}, err
	}
	return op.Cut(in.PageIn, all, func(v Version) []string { return []string{op.Falling(v.Version)} }), nil
}

// at is a version of a page; 0: what it is.
func at(tx *db.Tx, repoID, slug string, version int64) (versionRow, error) {
	p, err := page(tx, repoID, slug)
	if err != nil || version == 0 || version == p.Version {
		return p.version(), err
	}
	v, ok, err := oneVersion.Maybe(tx, repoID, slug, version)
	if err == nil && !ok {
		err = fault.Missing("version")
	}
	return v, err
}

type diffIn struct {
	pageIn
	From int64 `json:"from,omitempty" minimum:"1" example:"2" doc:"a version; left out: the one before to"`
	To   int64 `json:"to,omitempty" minimum:"1" example:"3" doc:"another one; left out: what the page is"`
}

// PageDiff is what differs between two versions.
type PageDiff struct {
	_     struct{} `doc:"What differs between the texts of two versions of a page." schema:"KnowledgePageDiff"`
	From  int64    `json:"from" example:"2" doc:"the version that was; 0: there was none"`
	To    int64    `json:"to" example:"3" doc:"the version that is compared with it"`
	Hunks []Hunk   `json:"hunks" doc:"the places that differ, in order"`
}

// Hunk is a place at which two texts differ.
type Hunk struct {
	_       struct{} `doc:"A place at which two texts differ." schema:"KnowledgePageHunk"`
	OldLine int      `json:"old_line" example:"3" doc:"the line of the old text that it begins at"`
	NewLine int      `json:"new_line" example:"3" doc:"the line of the new text that it begins at"`
	Removed []string `json:"removed" example:"[\"make\"]" doc:"lines of the old text alone"`
	Added   []string `json:"added" example:"[\"make test\"]" doc:"lines of the new text alone"`
}

func (s *Service) diff(ctx context.Context, in diffIn) (out PageDiff, err error) {
	var from, to versionRow
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if to, err = at(tx, in.RepoID, in.Slug, in.To); err != nil {
			return err
		}
		if in.From == 0 && to.Version == 1 { // there was none before
			return nil
		}
		from, err = at(tx, in.RepoID, in.Slug, cmp.Or(in.From, to.Version-1))
		return err
	})
	if err != nil {
		return out, err
	}
	return PageDiff{From: from.Version, To: to.Version, Hunks: hunks(from.Body, to.Body)}, nil
}

type restoreIn struct {
	repoIn
	Slug      string `json:"slug" example:"guides/build" doc:"name of the page; it may contain slashes"`
	Version   int64  `json:"version" minimum:"1" example:"2" doc:"the version that is put back"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"1" example:"3" doc:"the version that is replaced, else 409"`
}

func (s *Service) restore(ctx context.Context, in restoreIn) (out PageRow, err error) {
	var v versionRow
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		v, err = at(tx, in.RepoID, in.Slug, in.Version)
		return err
	})
	if err != nil {
		return out, err
	}
	d := draft{
		Slug: in.Slug, Title: v.Title, Body: v.Body, Commit: v.CommitSHA, Links: list(v.Links.V), Files: list(v.Files.V), If: in.IfVersion,
		From: &v.Version,
	}
	words := entries(text{d.Slug, d.Title, d.Body})
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		now, _, err := s.write(tx, in.RepoID, &d, words)
		out = now.wire()
		return err
	})
	return out, err
}
