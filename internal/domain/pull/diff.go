package pull

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

type diffIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the pull request"`
	Path     string `json:"path,omitempty" maxLength:"4096" doc:"a path among files: its lines are answered, too"`
	HeadSHA  string `json:"head_sha,omitempty" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that the caller looks at: the call is refused with head_moved if the pull request has another one; without it, the present head is shown"`
	SinceSHA string `json:"since_sha,omitempty" pattern:"^[0-9a-f]{7,40}$" doc:"what changed since this commit, say the head that was looked at last: its SHA or 7 and more of the digits that it begins with; without it, all that the pull request brings to its base"`
}

// Diff is the change of a pull request. A merged pull request shows the change that its
// merge brought to the base.
type Diff struct {
	_         struct{}     `doc:"What a pull request changes."`
	PRID      string       `json:"pr_id" format:"uuid" doc:"the pull request"`
	HeadSHA   string       `json:"head_sha" doc:"the head that is shown"`
	FromSHA   string       `json:"from_sha" doc:"the commit that it is compared with: where the branch left its base, or since_sha"`
	Files     []FileChange `json:"files" doc:"by path, at most 3000"`
	More      int          `json:"more" doc:"how many files beyond those"`
	Additions int          `json:"additions" doc:"lines, of the files listed"`
	Deletions int          `json:"deletions" doc:"lines, of the files listed"`
	File      *FileDiff    `json:"file" doc:"the lines of path; null if it was not asked for, or did not change"`
}

// FileChange is one file that a pull request changes.
type FileChange struct {
	_         struct{}            `doc:"One file that a pull request changes." schema:"FileChange"`
	Path      string              `json:"path" doc:"bytes that are no text are quoted"`
	Was       *string             `json:"was" example:"null" doc:"its path before it was renamed; null if it was not"`
	Kind      codehost.ChangeKind `json:"kind" doc:"renamed may be modified, too; type_changed: a file became a link, or the other way about"`
	Type      codehost.FileType   `json:"type" doc:"what it is, or was before it was deleted; the one line of a link is where it leads, that of a submodule names a commit"`
	WasType   *string             `json:"was_type" example:"null" doc:"what it was before; null if the same"`
	Binary    bool                `json:"binary" doc:"it has no lines"`
	Additions int                 `json:"additions" doc:"lines"`
	Deletions int                 `json:"deletions" doc:"lines"`
	Generated bool                `json:"generated" doc:"its name says that a program has written it: a lock file, a bundle, code from a description, or a file below a folder of vendored code. It is a hint for what to show folded, and no statement about the content"`
}

// FileDiff holds the changed lines of one file, with three lines around each change.
type FileDiff struct {
	_ struct{} `doc:"The lines of one file that changed, with three around them." schema:"FileDiff"`
	FileChange
	Hunks []DiffHunk `json:"hunks" doc:"in the order of the file"`
	Cut   bool       `json:"cut" doc:"more than 1 MiB changed: the rest is not shown"`
}

// DiffHunk is a range of lines, some of which changed.
type DiffHunk struct {
	_        struct{} `doc:"A stretch of lines of which some changed." schema:"DiffHunk"`
	OldStart int      `json:"old_start" example:"12" doc:"the first line in the file before, from 1; 0 if there is none"`
	OldLines int      `json:"old_lines" example:"2" doc:"how many lines of the file before"`
	NewStart int      `json:"new_start" example:"12" doc:"the first line in the file after, from 1; 0 if there is none"`
	NewLines int      `json:"new_lines" example:"2" doc:"how many lines of the file after"`
	Section  string   `json:"section" example:"func year() int {" doc:"the line above that names the place, such as a function's; may be empty"`
	Lines    []string `json:"lines" example:"[\"-    return 2025\", \"+    return time.Now().Year()\", \" }\"]" doc:"each begins with a space (unchanged), + (new), - (gone) or \\ (a remark). Bytes that are no text are replaced by U+FFFD"`
}

func (s *Service) diff(ctx context.Context, in diffIn) (Diff, error) {
	pr, r, err := s.read(ctx, in.ID)
	if err != nil {
		return Diff{}, err
	}
	if in.HeadSHA != "" && in.HeadSHA != pr.HeadSHA {
		return Diff{}, movedTo(pr.HeadSHA)
	}
	return s.diffOf(ctx, r.HostRepo(), &pr, in.SinceSHA, unquoted(in.Path))
}

// read reads a pull request of the account of ctx, and its repository. It fails with fault.NotFound.
func (s *Service) read(ctx context.Context, prID string) (pr record.Pull, r repo.Ref, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		if pr, ok, err = record.ByID.Maybe(tx, tx.Account, prID); err != nil {
			return err
		}
		if !ok {
			return fault.Missing("pull request")
		}
		r, _, err = repo.ByID(tx, pr.RepoID)
		return err
	})
	return pr, r, err
}

// unquoted is the path in git of a path in an answer.
func unquoted(path string) string {
	if strings.HasPrefix(path, `"`) {
		return record.Illegible(path)
	}
	return path
}

func (s *Service) diffOf(ctx context.Context, r codehost.Repo, pr *record.Pull, since, path string) (Diff, error) {
	d, err := s.changes(ctx, r, pr, since, path)
	if err != nil {
		return Diff{}, err
	}
	out := Diff{PRID: pr.ID, HeadSHA: pr.HeadSHA, FromSHA: d.FromSHA, Files: make([]FileChange, len(d.Files)), More: d.More}
	for i, f := range d.Files {
		out.Files[i] = change(f)
		out.Additions += f.Additions
		out.Deletions += f.Deletions
	}
	if d.File != nil {
		out.File = fileDiff(d.File)
	}
	return out, nil
}

// changes asks the code host for a diff. If the commits of a merged branch are gone, it
// answers the diff of the merge. It fails with the reason commits_gone, and with a fault
// on the field since_sha.
func (s *Service) changes(ctx context.Context, r codehost.Repo, pr *record.Pull, since, path string) (codehost.Diff, error) {
	host, err := s.Hosts.Of(r)
	if err != nil {
		return codehost.Diff{}, err
	}
	o := codehost.DiffOptions{From: pr.BaseSHA, To: pr.HeadSHA, SinceFork: true, Path: path}
	if since != "" {
		if len(since) < len(codehost.ZeroSHA) {
			whole, err := host.Commit(ctx, r, since)
			switch {
			case errors.Is(err, codehost.ErrNotFound):
				return codehost.Diff{}, fault.Field("since_sha", "is the beginning of no commit of this repository")
			case errors.Is(err, codehost.ErrAmbiguous):
				return codehost.Diff{}, fault.Field("since_sha", "is the beginning of several commits of this repository; give more digits")
			case err != nil:
				return codehost.Diff{}, err
			}
			since = whole
		}
		o.From, o.SinceFork = since, false
	}
	d, err := host.Diff(ctx, r, o)
	if since != "" && errors.Is(err, codehost.ErrNotFound) {
		if _, missing := host.Compare(ctx, r, since, since); errors.Is(missing, codehost.ErrNotFound) {
			return d, fault.Field("since_sha", "is no commit of this repository")
		}
	}
	if since == "" && pr.MergeSHA != nil && errors.Is(err, codehost.ErrNotFound) {
		d, err = host.Diff(ctx, r, codehost.DiffOptions{To: *pr.MergeSHA, Path: path})
	}
	if errors.Is(err, codehost.ErrNotFound) {
		err = fault.Reason("commits_gone", "The code host no longer has the commits of this pull request.")
	}
	return d, err
}

func change(f codehost.FileChange) FileChange {
	out := FileChange{Path: codehost.Legible(f.Path), Kind: codehost.ChangeKind(f.Kind), Type: codehost.FileType(f.Type), Binary: f.Binary,
		Additions: f.Additions, Deletions: f.Deletions, Generated: generated(f.Path)}
	if f.WasType != "" {
		out.WasType = &f.WasType
	}
	if f.Was != "" {
		was := codehost.Legible(f.Was)
		out.Was = &was
	}
	return out
}

// generatedNames are names of files that programs write; generatedFolders are folders of
// what others have written. The lists are of names alone: what a repository says of itself
// (.gitattributes) would let whoever is reviewed decide what is folded.
var (
	generatedNames = []string{
		"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "go.sum", "go.work.sum", "Cargo.lock",
		"Gemfile.lock", "composer.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "pdm.lock", "flake.lock", "mix.lock", "Podfile.lock",
		"packages.lock.json", "gradle.lockfile", "deno.lock",
	}
	generatedEnds = []string{
		".min.js", ".min.css", ".js.map", ".css.map", ".pb.go", "_pb2.py", "_pb2_grpc.py", ".pb.h", ".pb.cc", ".gen.go", ".gen.ts",
		"_generated.go", ".g.dart", ".designer.cs",
	}
	generatedFolders = []string{"vendor", "node_modules", "third_party", "dist", "__snapshots__"}
)

// generated tells whether a path is that of a file that programs write.
func generated(path string) bool {
	folder, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		folder, name = path[:i], path[i+1:]
	}
	return slices.Contains(generatedNames, name) ||
		slices.ContainsFunc(generatedEnds, func(end string) bool { return strings.HasSuffix(strings.ToLower(name), end) }) ||
		slices.ContainsFunc(strings.Split(folder, "/"), func(part string) bool { return slices.Contains(generatedFolders, part) })
}

// About names the type of a file that is not a plain one, and the change of a type; "" for
// a plain file.
func (f FileChange) About() string {
	switch {
	case f.WasType != nil:
		return *f.WasType + " → " + string(f.Type)
	case f.Type == codehost.Plain:
		return ""
	}
	return string(f.Type)
}

func fileDiff(f *codehost.File) *FileDiff {
	out := &FileDiff{FileChange: change(f.FileChange), Hunks: make([]DiffHunk, len(f.Hunks)), Cut: f.Cut}
	for i, h := range f.Hunks {
		lines := make([]string, len(h.Lines))
		for j, l := range h.Lines {
			lines[j] = text(l)
		}
		out.Hunks[i] = DiffHunk{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines,
			Section: text(h.Section), Lines: lines}
	}
	return out
}

func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
