package review

import (
	"context"
	"errors"
	"slices"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// code reads files and differences of a repository, each once.
type code struct {
	ctx   context.Context
	host  codehost.Host
	repo  codehost.Repo
	files map[[2]string][]string       // by commit and path; nil: there is no such text file
	diffs map[[3]string]*codehost.File // by both commits and path; nil: it has not changed
}

func newCode(ctx context.Context, host codehost.Host, r codehost.Repo) *code {
	return &code{ctx, host, r, map[[2]string][]string{}, map[[3]string]*codehost.File{}}
}

// lines are the lines of a file; none if there is no such file, or it is no text.
func (c *code) lines(sha, path string) ([]string, error) {
	at := [2]string{sha, path}
	if l, ok := c.files[at]; ok {
		return l, nil
	}
	text, _, err := c.host.ReadFile(c.ctx, c.repo, sha, path)
	switch {
	case errors.Is(err, codehost.ErrNotFound), errors.Is(err, codehost.ErrTooLarge), isInvalid(err):
		c.files[at] = nil
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.files[at] = splitLines(text)
	return c.files[at], nil
}

// isInvalid tells whether the host refused a path, which an agent made up.
func isInvalid(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind == fault.Invalid
}

// diff is the change of one file between two commits, by its path in either; nil if it has
// not changed. It fails with codehost.ErrNotFound if a commit is gone.
func (c *code) diff(from, to, path string) (*codehost.File, error) {
	at := [3]string{from, to, path}
	if f, ok := c.diffs[at]; ok {
		return f, nil
	}
	d, err := c.host.Diff(c.ctx, c.repo, codehost.DiffOptions{From: from, To: to, Path: path})
	if err != nil && !isInvalid(err) {
		return nil, err
	}
	if d.File == nil {
		if i := slices.IndexFunc(d.Files, func(f codehost.FileChange) bool { return f.Was == path }); i >= 0 {
			if d.File, err = c.diff(from, to, d.Files[i].Path); err != nil {
				return nil, err
			}
		}
	}
	c.diffs[at] = d.File
	return d.File, nil
}

// locate finds the place of what a finder named. A finding that names no line of the code
// is refuted by that.
func (c *code) locate(run Run, n named) (Finding, error) {
	f := Finding{ID: id.New(), AccountID: run.AccountID, RepoID: run.RepoID, PRID: run.PRID, RunID: run.ID, HeadSHA: run.HeadSHA,
		File: n.File, StartLine: n.StartLine, Line: n.Line, Severity: n.Severity, Kind: n.Kind, Claim: n.Claim, Why: n.Why,
		HowToSee: n.HowToSee, Suggestion: n.Suggestion, Confidence: n.Confidence, State: Raw}
	change, err := c.diff(run.MergeBase, run.HeadSHA, n.File)
	if err != nil {
		return f, err
	}
	called := n.File // in the merge base
	if change != nil && change.Was != "" {
		f.File, called = change.Path, change.Was
	}
	var head []string
	if n.File == f.File { // else it names the file as it was called
		if head, err = c.lines(run.HeadSHA, n.File); err != nil {
			return f, err
		}
	}
	base, err := c.lines(run.MergeBase, called)
	if err != nil {
		return f, err
	}
	f.Side = sideOf(n, head, base)
	lines := head
	if f.Side == sideBase {
		lines = base
	}
	f.Anchor, f.Symbol = anchorOf(lines, n.Line), symbolOf(lines, n.Line)
	if n.Line > len(lines) {
		f.State, f.StateWhy = Refuted, "it names no line of the code"
	}
	f.Key = keyOf(run.RepoID, run.PRID, called, string(n.Kind), f.Symbol, f.Anchor)
	at := placeOf(change, f.Side, f.first(), n.Line, func(line int) string { return symbolOf(lines, line) })
	f.PlaceStart, f.PlaceLine = at.StartLine, at.Line
	return f, nil
}

// sideOf is the side whose file, with the lines head or base, has the line that a finder
// named. A side that it left out is the head's if that has the line. A side that it gave
// stands, unless the file is not there at all: of a deleted file only the other one has lines.
func sideOf(n named, head, base []string) string {
	inHead, inBase := n.Line <= len(head), n.Line <= len(base)
	switch {
	case n.Side == "" && !inHead && inBase, n.Side == codehost.SideHead && head == nil && inBase:
		return sideBase
	case n.Side == sideBase && (base != nil || !inHead):
		return sideBase
	}
	return codehost.SideHead
}

// follow finds an earlier finding at the head of a run, in the file as it is called there.
// near tells that its lines, or others in the section around them, were changed. bases are the
// merge bases of the earlier heads. A finding whose code is nowhere any more stays where it
// was, in the head that had it.
func (c *code) follow(run Run, f Finding, bases map[string]string) (_ Finding, near bool, err error) {
	if f.Side == sideBase {
		return c.followBase(run, f, bases[f.HeadSHA])
	}
	if f.HeadSHA == run.HeadSHA {
		return f, false, nil
	}
	change, err := c.diff(f.HeadSHA, run.HeadSHA, f.File)
	gone := errors.Is(err, codehost.ErrNotFound) // the earlier head is
	if err != nil && !gone {
		return f, false, err
	}
	if change != nil && change.Kind == codehost.Deleted {
		return c.toBase(run, f)
	}
	return c.move(f, change, gone, run.HeadSHA, run.HeadSHA)
}

// followBase follows a finding about a line of the merge base was.
func (c *code) followBase(run Run, f Finding, was string) (_ Finding, near bool, err error) {
	seen, err := c.diff(f.HeadSHA, run.HeadSHA, f.File)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return f, false, err
	}
	near = err != nil || seen != nil
	if was == "" || was == run.MergeBase {
		f.HeadSHA = run.HeadSHA
		return f, near, nil
	}
	now, err := c.diff(run.MergeBase, run.HeadSHA, f.File)
	if err != nil {
		return f, near, err
	}
	at, file := f, f.File
	if now != nil && now.Was != "" {
		at.File, file = now.Was, now.Path
	}
	change, err := c.diff(was, run.MergeBase, at.File)
	gone := errors.Is(err, codehost.ErrNotFound)
	if err != nil && !gone {
		return f, near, err
	}
	if change != nil && change.Kind == codehost.Deleted {
		return f, true, nil
	}
	at, moved, err := c.move(at, change, gone, run.MergeBase, run.HeadSHA)
	at.File = file
	return at, near || moved, err
}

// toBase finds a finding whose file is deleted at the head of a run in the merge base.
func (c *code) toBase(run Run, f Finding) (_ Finding, near bool, err error) {
	called := f.File
	change, err := c.diff(run.MergeBase, f.HeadSHA, f.File)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return f, true, err
	}
	if change != nil && change.Was != "" {
		called = change.Was
	}
	lines, err := c.lines(run.MergeBase, called)
	if err != nil {
		return f, true, err
	}
	if at := findAnchor(lines, f.Anchor, f.Line); at > 0 {
		f.shift(at-f.Line+f.first(), at)
		f.File, f.Side, f.HeadSHA = called, sideBase, run.HeadSHA
	}
	return f, true, nil
}

// move moves a finding through the change of its file to the commit sha, which is told as of a
// head. Where lines alone do not tell its place, its text does. gone tells that the commit in
// which the lines counted is not there any more, so that there is no change to go by.
func (c *code) move(f Finding, change *codehost.File, gone bool, sha, head string) (_ Finding, near bool, err error) {
	path := f.File
	if change != nil {
		path = change.Path
	}
	lines, err := c.lines(sha, path)
	if err != nil || lines == nil {
		return f, true, err
	}
	if change == nil && !gone {
		f.HeadSHA = head
		return f, false, nil
	}
	start, end := f.first(), f.Line
	known := change != nil && !change.Binary && !change.Cut
	if known {
		start, end, near = moveRange(change.Hunks, f.first(), f.Line)
	}
	if near || !known {
		switch at := findAnchor(lines, f.Anchor, end); {
		case at > 0:
			start, end = at-f.Line+f.first(), at
		case !known:
			return f, true, nil
		}
		near = true
	}
	f.shift(min(start, len(lines)), min(end, len(lines)))
	f.File, f.HeadSHA = path, head
	return f, near || touches(lines, change.Hunks, f.Line), nil
}

// shift gives a finding other lines.
func (f *Finding) shift(start, end int) {
	if f.StartLine > 0 && 0 < start && start < end {
		f.StartLine = start
	} else {
		f.StartLine = 0
	}
	f.Line = max(end, 1)
}
