package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/minisign"
)

// wanted is what a release must have, that its bundle is enough for a machine without a network.
func (r Release) wanted() error {
	has := func(name string) bool {
		return slices.ContainsFunc(r.Files, func(f File) bool { return f.Name == name })
	}
	names := []string{"install.sh", strings.Replace(r.Folder(), "_", "-docs_", 1) + ".tar.gz"}
	for _, name := range r.archives() {
		names = append(names, strings.TrimSuffix(name, ".tar.gz")+".cdx.json")
	}
	if len(names) == 2 {
		return fmt.Errorf("the release has no program (%s_SYSTEM_MACHINE.tar.gz)", r.Folder())
	}
	for _, name := range names {
		if !has(name) {
			return fmt.Errorf("the release has no %s", name)
		}
	}
	return nil
}

// archives are the names of the archives of programs.
func (r Release) archives() (out []string) {
	for _, f := range r.Files {
		if strings.HasPrefix(f.Name, r.Folder()+"_") && strings.HasSuffix(f.Name, ".tar.gz") {
			out = append(out, f.Name)
		}
	}
	return out
}

// Make makes the bundle of the release in a folder, which must be whole and by one of keys, into a new
// file. What else lies in the folder stays out. If it fails, there is no file.
func Make(folder string, keys []minisign.Key, path string) (out Release, err error) {
	sums, err1 := os.ReadFile(filepath.Join(folder, Sums))
	text, err2 := os.ReadFile(filepath.Join(folder, signature))
	if err := errors.Join(err1, err2); err != nil {
		return out, err
	}
	if out, err = signed(keys, sums, text); err != nil {
		return out, fmt.Errorf("%s is refused: %w", folder, err)
	}
	if err := out.wanted(); err != nil {
		return out, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return out, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	w := tar.NewWriter(f)
	for _, name := range []string{Sums, signature} {
		if err := out.add(w, folder, name); err != nil {
			return out, err
		}
	}
	for _, each := range out.Files {
		if err := out.add(w, folder, each.Name); err != nil {
			return out, err
		}
	}
	if err := errors.Join(w.Close(), f.Sync()); err != nil {
		return out, err
	}
	return Check(path, keys) // what lies in the folder may be another thing than what was signed
}

func (r Release) add(w *tar.Writer, folder, name string) error {
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(r.head(name, info.Size())); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = io.Copy(w, f)
	return err
}
