package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/durable"
)

// Repositories lists the repositories in the folder of the built-in host: OWNER/NAME.git.
func Repositories(root string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(root), "*/*.git")
	return slices.DeleteFunc(found, func(name string) bool { return strings.HasPrefix(name, ".") }), err
}

// early are the parts of a repository in the order in which they are copied; everything else
// follows. Refs come before objects: what a ref names is stored before the ref.
var early = []string{"packed-refs", "refs", "objects", "HEAD", "config"}

// Repository copies a repository while others push to it. Before are its refs from before the
// database was copied.
func (f *Folder) Repository(root, name string, before map[string]string) (r Repository, err error) {
	r.Path = name
	from, to := filepath.Join(root, filepath.FromSlash(name)), path.Join(GitFolder, name)
	done := map[string]bool{}
	for _, part := range early {
		done[part] = true
		if err := f.tree(filepath.Join(from, part), path.Join(to, part)); err != nil {
			return r, err
		}
	}
	rest, err := os.ReadDir(from)
	if err != nil {
		return r, err
	}
	for _, e := range rest {
		if !done[e.Name()] {
			if err := f.tree(filepath.Join(from, e.Name()), path.Join(to, e.Name())); err != nil {
				return r, err
			}
		}
	}
	refs, err := Refs(f.Within(to))
	r.Refs, r.Moved = len(refs), moved(before, refs)
	return r, err
}

func moved(before, now map[string]string) (out []Moved) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		if before[ref] != now[ref] {
			out = append(out, Moved{Ref: ref, Was: before[ref], Is: now[ref]})
		}
	}
	return out
}

// passing tells of a name that is there for a moment only: a lock, or what git is still receiving.
func passing(name string) bool {
	return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_")
}

// tree copies a file or a folder; nothing if there is none. What is taken away meanwhile is left out.
func (f *Folder) tree(from, to string) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		name := path.Join(to, filepath.ToSlash(rel))
		switch {
		case passing(d.Name()) && d.IsDir():
			return fs.SkipDir
		case passing(d.Name()):
			return nil
		case d.IsDir():
			return os.MkdirAll(f.Within(name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		return f.File(at, name)
	})
}

// File copies a file into the backup; a file that is gone is left out.
func (f *Folder) File(from, name string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	sum, err := f.write(f.Within(name), in)
	if err == nil {
		f.note(name, sum)
	}
	return err
}

func (f *Folder) write(to string, in io.Reader) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	var w io.Writer = out
	if f.pace != nil {
		w = paced{f.pace, out}
	}
	h := sha256.New()
	_, err = io.Copy(w, io.TeeReader(in, h))
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// PutBack copies the repositories of a backup into the folder of the built-in host.
func PutBack(backup, root string, m Manifest) error {
	for _, r := range m.Repositories {
		if !filepath.IsLocal(filepath.FromSlash(r.Path)) {
			return fmt.Errorf("%q is no path of a repository", r.Path)
		}
		from := filepath.Join(backup, GitFolder, filepath.FromSlash(r.Path))
		to := Folder{Path: root}
		if err := to.tree(from, r.Path); err != nil {
			return err
		}
		// git knows a repository by these, empty or not.
		for _, dir := range []string{"refs", "objects"} {
			if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(r.Path), dir), 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// PutFile copies a file of a backup to a path where there is none yet, whole or not at all. It does
// nothing if the backup has no such file.
func PutFile(backup, name, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	in, err := os.Open(filepath.Join(backup, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return durable.Stream(to, ".restored-*", in)
}

// Refs reads the refs of a bare repository: their commits, by name. A loose ref counts before a
// packed one.
func Refs(repository string) (map[string]string, error) {
	out := map[string]string{}
	packed, err := os.Open(filepath.Join(repository, "packed-refs"))
	if err == nil {
		defer packed.Close()
		lines := bufio.NewScanner(packed)
		for lines.Scan() {
			if sha, name, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(sha, "#") {
				out[name] = sha
			}
		}
		err = lines.Err()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(repository, "refs"), func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(repository, at)
		if err == nil {
			out[filepath.ToSlash(rel)] = strings.TrimSpace(string(text))
		}
		return err
	})
	return out, err
}
