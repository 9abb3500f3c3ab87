package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart makes the archive of the Helm chart, whose version is that of the release, and of the image
// which it takes.
func (r *release) chart() error {
	folder := os.DirFS(filepath.Join(r.source, "release/chart"))
	var entries []entry
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		if name == "Chart.yaml" {
			text = chartVersion.ReplaceAll(text, []byte(`$1: "`+r.number()+`"`))
		}
		entries = append(entries, entry{name: "yardmaster/" + name, mode: 0o644, content: text})
		return err
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
	return r.put("yardmaster-chart-"+r.number()+".tgz", whole)
}
