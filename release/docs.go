package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// docs makes the archive of the documents, for people on a machine without a network.
func (r *release) docs() error {
	base := "yardmaster-docs_" + r.number()
	entries := []entry{}
	add := func(name, from string) error {
		text, err := os.ReadFile(filepath.Join(r.source, from))
		entries = append(entries, entry{name: base + "/" + name, mode: 0o644, content: text})
		return err
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		if err := add(name, name); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(filepath.Join(r.source, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		name, err := filepath.Rel(r.source, path)
		if err != nil {
			return err
		}
		return add(filepath.ToSlash(name), name)
	})
	if err != nil {
		return err
	}
	plain, err := packed(entries, r.at)
	if err != nil {
		return err
	}
	whole, err := zipped(plain)
	if err != nil {
		return err
	}
	return r.put(base+".tar.gz", whole)
}
