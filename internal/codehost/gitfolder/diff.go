package gitfolder

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
	"yardmaster/internal/rlimit"
)

// Landed answers as codehost.Host says.
func (dir Folder) Landed(ctx context.Context, base, sha string) (string, error) {
	at, err := dir.Resolve(ctx, base, sha)
	if err != nil {
		return "", err
	}
	done, err := dir.merged(ctx, at[0], at[1])
	if err != nil {
		return "", fmt.Errorf("look for %s in %s of %s: %w", sha, base, dir, err)
	}
	return done, nil
}

// renames makes git detect renames, unless more than 200 files could be renamed.
var renames = []string{"-M", "-l200"}

// Diff answers as codehost.Host says.
func (dir Folder) Diff(ctx context.Context, o codehost.DiffOptions) (codehost.Diff, error) {
	d, err := dir.diff(ctx, o)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		err = fmt.Errorf("compare %s with %s in %s: %w", o.To, o.From, dir, err)
	}
	return d, err
}

func (dir Folder) diff(ctx context.Context, o codehost.DiffOptions) (d codehost.Diff, err error) {
	if o.From == "" {
		to, err := dir.resolveOne(ctx, o.To)
		if err != nil {
			return d, err
		}
		parent, err := dir.Output(ctx, "rev-parse", "--verify", "--quiet", to+"^1")
		if Exited(err, 1) {
			return d, codehost.ErrNotFound
		}
		if err != nil {
			return d, err
		}
		o.From, o.To = strings.TrimSpace(parent), to
	}
	fork, err := dir.fork(ctx, o.From, o.To, nil)
	if err != nil {
		return d, err
	}
	d.FromSHA, d.ToSHA = fork.BaseSHA, fork.HeadSHA
	from := d.FromSHA
	if o.SinceFork {
		if from, d.FromSHA = fork.MergeBase, fork.MergeBase; from == "" {
			from = emptyTree
		}
	}
	files, err := dir.changed(ctx, from, d.ToSHA)
	if err != nil {
		return d, err
	}
	if o.Path != "" {
		i := slices.IndexFunc(files, func(f codehost.FileChange) bool { return f.Path == o.Path })
		if i >= 0 {
			d.File, err = dir.hunks(ctx, from, d.ToSHA, files[i])
		}
	}
	if over := len(files) - codehost.MaxDiffFiles; over > 0 {
		files, d.More = files[:codehost.MaxDiffFiles], over
	}
	d.Files = files
	return d, err
}

var kinds = map[byte]string{
	'A': codehost.Added,
	'M': codehost.Modified,
	'D': codehost.Deleted,
	'R': codehost.Renamed,
	'T': codehost.TypeChanged,
}

// typeOf is the type of a file by its mode; mode 0 means no file and has none.
var typeOf = map[string]string{
	"100644": codehost.Plain,
	"100755": codehost.Executable,
	"120000": codehost.Link,
	"160000": codehost.Submodule,
}

// changed lists the files that differ between two trees, sorted by path.
func (dir Folder) changed(ctx context.Context, from, to string) ([]codehost.FileChange, error) {
	args := slices.Concat([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev"}, renames, []string{from, to})
	out, err := dir.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	strange := func(record string) error { return fmt.Errorf("git diff-tree printed %q", record) }
	var files []codehost.FileChange
	at := map[string]int{}
	records := fields(out)
	next := func() (s string) {
		if len(records) > 0 {
			s, records = records[0], records[1:]
		}
		return s
	}
	for len(records) > 0 {
		record := next()
		if strings.HasPrefix(record, ":") { // ":<modes> <shas> <status>", the path; for a rename both paths
			status := record[strings.LastIndexByte(record, ' ')+1:]
			f := codehost.FileChange{Path: next()}
			if status == "" || kinds[status[0]] == "" || len(record) < len(":100644 100644 ") {
				return nil, strange(record)
			}
			old, now := typeOf[record[1:7]], typeOf[record[8:14]]
			if f.Type = cmp.Or(now, old); old != "" && now != "" && old != now {
				f.WasType = old
			}
			if f.Kind = kinds[status[0]]; f.Kind == codehost.Renamed {
				f.Was, f.Path = f.Path, next()
			}
			at[f.Path] = len(files)
			files = append(files, f)
			continue
		}
		// "<added>\t<deleted>\t<path>"; for a rename "<added>\t<deleted>\t" and both paths
		counts := strings.SplitN(record, "\t", 3)
		if len(counts) != 3 {
			return nil, strange(record)
		}
		path := counts[2]
		if path == "" {
			next()
			path = next()
		}
		i, known := at[path]
		if !known {
			return nil, strange(record)
		}
		f := &files[i]
		if f.Binary = counts[0] == "-"; f.Binary {
			continue
		}
		f.Additions, err = strconv.Atoi(counts[0])
		if err == nil {
			f.Deletions, err = strconv.Atoi(counts[1])
		}
		if err != nil {
			return nil, strange(record)
		}
	}
	slices.SortFunc(files, func(a, b codehost.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// hunks reads the changes of one file. It stops git after MaxDiffBytes.
func (dir Folder) hunks(ctx context.Context, from, to string, f codehost.FileChange) (*codehost.File, error) {
	out := &codehost.File{FileChange: f, Hunks: []codehost.Hunk{}}
	if f.Binary {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	args := slices.Concat([]string{
		"--literal-pathspecs", "diff-tree", "-r", "-p",
		"--no-color", "--no-ext-diff", "--no-textconv", "--full-index",
	}, renames, []string{from, to, "--", f.Path})
	if f.Was != "" {
		args = append(args, f.Was)
	}
	c := dir.Command(ctx, args...)
	stderr := &rlimit.Output{Most: 4 << 10}
	c.Stderr = stderr
	r, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := Begin(c); err != nil {
		return nil, err
	}
	whole, readErr := readHunks(bufio.NewReaderSize(r, 64<<10), out)
	if !whole {
		cancel() // the rest is not read
	}
	if err := c.Wait(); err != nil && whole {
		return nil, fmt.Errorf("git diff-tree: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return out, readErr
}

var hunkHeader = lazy.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$`)

// readHunks reads the hunks of a file from a patch, up to MaxDiffBytes. whole tells
// that it has read to the end of the patch.
func readHunks(r *bufio.Reader, out *codehost.File) (whole bool, err error) {
	remaining := codehost.MaxDiffBytes
	var in *codehost.Hunk
	oldLeft, newLeft := 0, 0
	// The patch of a file that became a link, or of a link that became a file, has
	// two parts: one deletes, one adds. The part of a renamed file says "rename
	// from"; other parts belong to a folder that now has the file's old name.
	parts, wanted := 0, out.Kind != codehost.Renamed
	for {
		line, err := readLine(r, remaining)
		switch {
		case errors.Is(err, io.EOF) && line == "":
			return true, nil
		case errors.Is(err, errLong):
			out.Cut = true
			return false, nil
		case err != nil && !errors.Is(err, io.EOF):
			return false, err
		}
		inside := in != nil && (oldLeft > 0 || newLeft > 0 || strings.HasPrefix(line, `\`))
		switch {
		case inside:
			if remaining -= len(line) + 1; remaining < 0 {
				out.Cut = true
				return false, nil
			}
			switch line[:min(1, len(line))] {
			case " ":
				oldLeft, newLeft = oldLeft-1, newLeft-1
			case "-":
				oldLeft--
			case "+":
				newLeft--
			}
			in.Lines = append(in.Lines, line)
		case strings.HasPrefix(line, "rename from "):
			wanted = true
		case strings.HasPrefix(line, "@@ ") && wanted:
			m := hunkHeader.FindStringSubmatch(line)
			if m == nil {
				return false, fmt.Errorf("git printed the hunk %q", line)
			}
			out.Hunks = append(out.Hunks, codehost.Hunk{
				OldStart: number(m[1]), OldLines: count(m[2]),
				NewStart: number(m[3]), NewLines: count(m[4]),
				Section: m[5],
			})
			in = &out.Hunks[len(out.Hunks)-1]
			in.Lines = []string{}
			oldLeft, newLeft = in.OldLines, in.NewLines
		case strings.HasPrefix(line, "diff --git "):
			parts++
			if in != nil && (out.Kind != codehost.TypeChanged || parts > 2) {
				return false, nil // a second file: a folder had this name before
			}
			wanted, in = out.Kind != codehost.Renamed, nil
		}
	}
}

var errLong = errors.New("a line is too long")

// readLine reads a line without its end. It fails with errLong for a line that
// exceeds most bytes by more than a buffer.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > most {
				return "", errLong
			}
			continue
		}
		return strings.TrimSuffix(string(line), "\n"), err
	}
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// count reads the number of lines from a hunk's header; git omits it if it is one.
func count(s string) int {
	if s == "" {
		return 1
	}
	return number(s)
}
