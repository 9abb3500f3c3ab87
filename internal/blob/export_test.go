package blob

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Partials are the files of uploads under way.
func Partials(f *Folder) (out []string) {
	_ = filepath.WalkDir(f.root, func(path string, e fs.DirEntry, err error) error { // there may be none
		if err == nil && strings.HasPrefix(e.Name(), partial) {
			out = append(out, path)
		}
		return err
	})
	return out
}
