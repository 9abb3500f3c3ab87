package transcript

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/app"
)

// TestEveryTranscriptIsPlayed holds that every package with capabilities has
// transcripts, where RunAll finds them.
func TestEveryTranscriptIsPlayed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]bool{} // by folder
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || others[filepath.ToSlash(filepath.Dir(rel))] != "" {
			return err
		}
		found[filepath.ToSlash(filepath.Dir(filepath.Dir(rel)))] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range found {
		if strings.Count(dir, "/") != 2 {
			t.Errorf("%s has transcripts where RunAll does not look", dir)
		}
	}
	for _, pkg := range app.Packages() {
		if dir := strings.TrimPrefix(pkg, "yardmaster/"); !found[dir] {
			t.Errorf("%s has capabilities and no transcript: add %s/testdata/%s.txtar", pkg, dir, filepath.Base(dir))
		}
	}
}
