package gitfolder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

// Limits of what is looked at for what a change should not have.
const (
	mostSized    = 5000 // files of which the size is asked
	mostNamed    = 500  // paths that one command is given
	mostPointers = 50   // files that may have been pointers of Git LFS
	longest      = 200  // bytes of a pointer of Git LFS, at most
	lfsPointer   = "version https://git-lfs.github.com/spec/"
	modeAbsent   = "000000"
	modeGitlink  = "160000"
)

// madeByTools are names of folders and files, and ends of names, that tools make.
var madeByTools = struct{ folders, files, ends []string }{
	folders: []string{"__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".venv", ".nox", ".gradle",
		".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".nyc_output", "coverage", "htmlcov", ".terraform", ".eggs",
		"bower_components", ".ipynb_checkpoints"},
	files: []string{".DS_Store", "Thumbs.db", ".coverage", "coverage.out", "lcov.info", "npm-debug.log", "yarn-error.log"},
	ends:  []string{".pyc", ".pyo", ".class", ".swp", ".orig", ".rej"},
}

// manifestsOf are the files in the same folder that name what a lock file pins; none if it is
// no lock file.
func manifestsOf(name string) []string {
	switch name {
	case "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb":
		return []string{"package.json"}
	case "pnpm-lock.yaml":
		return []string{"package.json", "pnpm-workspace.yaml"}
	case "go.sum":
		return []string{"go.mod"}
	case "Cargo.lock":
		return []string{"Cargo.toml"}
	case "poetry.lock", "uv.lock", "pdm.lock":
		return []string{"pyproject.toml"}
	case "Pipfile.lock":
		return []string{"Pipfile"}
	case "Gemfile.lock":
		return []string{"Gemfile"}
	case "composer.lock":
		return []string{"composer.json"}
	case "mix.lock":
		return []string{"mix.exs"}
	case "flake.lock":
		return []string{"flake.nix"}
	case "pubspec.lock":
		return []string{"pubspec.yaml"}
	case "Podfile.lock":
		return []string{"Podfile"}
	}
	return nil
}

// entry is a changed file, as git diff-tree --raw --numstat has it.
type entry struct {
	path, wasMode, mode, wasBlob, blob string
	binary                             bool
	added, deleted                     int
	wasSize, size                      int64 // in bytes; -1 if nobody asked
}

func (e entry) isNew() bool { return e.wasMode == modeAbsent }

// isFile tells whether the head has the path as a file or a link.
func (e entry) isFile() bool { return e.mode != modeAbsent && e.mode != modeGitlink }

// entriesOf reads raw entries, two fields each, and the lines of the same files.
func entriesOf(raw, numstat []string) ([]entry, error) {
	all := make([]entry, 0, len(raw)/2)
	at := make(map[string]int, len(raw)/2)
	for i := 0; i+1 < len(raw); i += 2 {
		f := strings.Fields(strings.TrimPrefix(raw[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree printed %q", raw[i])
		}
		at[raw[i+1]] = len(all)
		all = append(all, entry{path: raw[i+1], wasMode: f[0], mode: f[1], wasBlob: f[2], blob: f[3], wasSize: -1, size: -1})
	}
	for _, e := range numstat {
		f := strings.SplitN(e, "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("git diff-tree printed %q", e)
		}
		i, known := at[f[2]]
		if !known {
			continue
		}
		if all[i].binary = f[0] == "-"; all[i].binary {
			continue
		}
		var err error
		if all[i].added, err = strconv.Atoi(f[0]); err == nil {
			all[i].deleted, err = strconv.Atoi(f[1])
		}
		if err != nil {
			return nil, fmt.Errorf("git diff-tree printed %q", e)
		}
	}
	return all, nil
}

// Unwanted answers as codehost.Host says. A file is named once, for the first of the reasons.
func (dir Folder) Unwanted(ctx context.Context, from, to string) ([]codehost.Unwanted, error) {
	raw, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--no-renames", from, to)
	if err != nil {
		if _, missing := dir.resolveOne(ctx, to); errors.Is(missing, codehost.ErrNotFound) {
			return nil, missing
		}
		return nil, err
	}
	printed, of := fields(raw), 0
	for of+1 < len(printed) && strings.HasPrefix(printed[of], ":") {
		of += 2
	}
	all, err := entriesOf(printed[:of], printed[of:])
	if err != nil {
		return nil, err
	}
	if err := dir.sized(ctx, all); err != nil {
		return nil, err
	}
	marked, err := dir.marked(ctx, from, to, all)
	if err != nil {
		return nil, err
	}
	endings, err := dir.endings(ctx, from, to, all)
	if err != nil {
		return nil, err
	}
	unnamed, err := dir.unnamed(ctx, to, all)
	if err != nil {
		return nil, err
	}
	replaced, err := dir.replaced(ctx, all)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, e := range all {
		changed[e.path] = true
	}
	found := map[codehost.Unwanted]int{}
	for _, e := range all {
		u := codehost.Unwanted{Path: e.path}
		made, folder := madeByTool(e.path)
		switch {
		case e.isNew() && unnamed[e.path]:
			u.Kind = codehost.UnwantedSubmodule
		case !e.isFile():
			continue
		case marked[e.path]:
			u.Kind = codehost.UnwantedMarks
		case e.isNew() && made:
			u.Kind, u.Path = codehost.UnwantedMade, folder
		case replaced[e.path]:
			u.Kind = codehost.UnwantedLFS
		case e.size >= codehost.LargeFile:
			u.Kind = codehost.UnwantedLarge
		case e.binary:
			u.Kind = codehost.UnwantedBinary
		case lockAlone(e.path, changed):
			u.Kind = codehost.UnwantedLock
		case endings[e.path]:
			u.Kind = codehost.UnwantedEndings
		default:
			continue
		}
		found[u]++
	}
	var out []codehost.Unwanted
	for u, n := range found {
		u.Files = n
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b codehost.Unwanted) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// madeByTool tells whether a tool makes a file, and answers the folder that is made with it,
// with a slash at its end, or the path of the file.
func madeByTool(p string) (bool, string) {
	parts := strings.Split(p, "/")
	for i, part := range parts[:len(parts)-1] {
		if slices.Contains(madeByTools.folders, part) || strings.HasSuffix(part, ".egg-info") {
			return true, strings.Join(parts[:i+1], "/") + "/"
		}
	}
	name := parts[len(parts)-1]
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	return slices.Contains(madeByTools.files, name) || slices.ContainsFunc(madeByTools.ends, ends), p
}

// lockAlone tells whether a path is a lock file none of whose manifests has changed.
func lockAlone(p string, changed map[string]bool) bool {
	folder, name := path.Split(p)
	of := manifestsOf(name)
	return len(of) > 0 && !slices.ContainsFunc(of, func(m string) bool { return changed[folder+m] })
}

// sized asks for the sizes of the files before and after, unless they are too many.
func (dir Folder) sized(ctx context.Context, all []entry) error {
	if len(all) > mostSized {
		return nil
	}
	var ask strings.Builder
	var into []*int64
	for i := range all {
		e := &all[i]
		if e.isFile() {
			ask.WriteString(e.blob + "\n")
			into = append(into, &e.size)
		}
		if e.isFile() && !e.isNew() && e.wasMode != modeGitlink {
			ask.WriteString(e.wasBlob + "\n")
			into = append(into, &e.wasSize)
		}
	}
	if len(into) == 0 {
		return nil
	}
	out, err := dir.Filter(ctx, ask.String(), nil, "cat-file", "--batch-check=%(objectsize)", "--buffer")
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if n, err := strconv.ParseInt(line, 10, 64); err == nil && i < len(into) {
			*into[i] = n
		}
	}
	return nil
}

// marked finds files that have the marks of an unfinished merge, and had none before.
func (dir Folder) marked(ctx context.Context, from, to string, all []entry) (map[string]bool, error) {
	var paths []string
	for _, e := range all {
		if e.isFile() && e.added > 0 {
			paths = append(paths, e.path)
		}
	}
	now, err := dir.marks(ctx, to, paths)
	if err != nil || len(now) == 0 {
		return nil, err
	}
	before, err := dir.marks(ctx, from, now)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, p := range now {
		found[p] = !slices.Contains(before, p)
	}
	return found, nil
}

// marks finds which of some paths of a commit have lines that begin and end a conflict.
func (dir Folder) marks(ctx context.Context, commit string, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"grep", "-l", "-z", "-I", "--all-match", "-e", "^<<<<<<< ", "-e", "^>>>>>>> ", commit, "--"}
	if len(paths) <= mostNamed {
		for _, p := range paths {
			args = append(args, ":(literal)"+p)
		}
	}
	out, err := dir.Output(ctx, args...)
	if Exited(err, 1) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range fields(out) {
		if p = strings.TrimPrefix(p, commit+":"); slices.Contains(paths, p) {
			found = append(found, p)
		}
	}
	return found, nil
}

// endings finds files of which nothing but the ends of lines has changed.
func (dir Folder) endings(ctx context.Context, from, to string, all []entry) (map[string]bool, error) {
	found := map[string]bool{}
	for _, e := range all {
		if !e.isNew() && e.mode == e.wasMode && e.added > 0 && e.added == e.deleted {
			found[e.path] = true
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	out, err := dir.Output(ctx, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--ignore-cr-at-eol", from, to)
	if err != nil {
		return nil, err
	}
	for _, e := range fields(out) {
		if f := strings.SplitN(e, "\t", 3); len(f) == 3 && f[0] != "0" {
			delete(found, f[2])
		}
	}
	return found, nil
}

// unnamed finds new submodules that .gitmodules of a commit does not name.
func (dir Folder) unnamed(ctx context.Context, to string, all []entry) (map[string]bool, error) {
	found := map[string]bool{}
	for _, e := range all {
		if e.mode == modeGitlink && e.wasMode != modeGitlink {
			found[e.path] = true
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	out, err := dir.Output(ctx, "config", "--blob", to+":.gitmodules", "-z", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil && !Exited(err, 1) && !Exited(err, 128) { // without such a file, or one that names none
		return nil, err
	}
	for _, e := range fields(out) {
		if _, p, ok := strings.Cut(e, "\n"); ok {
			delete(found, p)
		}
	}
	return found, nil
}

// replaced finds files that were pointers of Git LFS and are none any more.
func (dir Folder) replaced(ctx context.Context, all []entry) (map[string]bool, error) {
	found, looks := map[string]bool{}, 0
	for _, e := range all {
		if e.wasSize <= 0 || e.wasSize > longest || e.size <= longest || looks == mostPointers {
			continue
		}
		looks++
		text, err := dir.Output(ctx, "cat-file", "blob", e.wasBlob)
		if err != nil {
			return nil, err
		}
		found[e.path] = strings.HasPrefix(text, lfsPointer)
	}
	return found, nil
}
