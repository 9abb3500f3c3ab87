package transcript

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/app"
)

// others are archives in that format that are not transcripts.
var others = map[string]string{
	"internal/box/scrub/testdata/recorded.txtar": "output of agents, for the scrubber",
}

var plays = regexp.MustCompile(`(?m)^func TestTranscripts\(t \*testing\.T\) \{ transcript\.Run\(t\) \}$`)

// TestEveryTranscriptIsPlayed holds that every package with capabilities has
// transcripts and plays them.
func TestEveryTranscriptIsPlayed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]bool{} // by folder
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || others[filepath.ToSlash(rel)] != "" {
			return err
		}
		found[filepath.ToSlash(filepath.Dir(filepath.Dir(rel)))] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range found {
		text, err := os.ReadFile(filepath.Join(root, dir, "transcript_test.go"))
		if err != nil || !plays.Match(text) {
			t.Errorf("%s has transcripts and does not play them: copy transcript_test.go of a sibling there (%v)", dir, err)
		}
	}
	for _, pkg := range app.Packages() {
		if dir := strings.TrimPrefix(pkg, "yardmaster/"); !found[dir] {
			t.Errorf("%s has capabilities and no transcript: add %s/testdata/%s.txtar", pkg, dir, filepath.Base(dir))
		}
	}
}
