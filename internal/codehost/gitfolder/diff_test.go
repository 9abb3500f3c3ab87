package gitfolder

import (
	"bufio"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
)

// FuzzHunks checks that reading any output of git ends, within the limits.
func FuzzHunks(f *testing.F) {
	f.Add("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@ func x\n a\n-b\n\\ No newline at end of file\n")
	f.Add("@@ -1 +1 @@\n-@@ -1 +1 @@\n+diff --git\ndiff --git a/b b/b\n")
	f.Fuzz(func(t *testing.T, patch string) {
		var out codehost.File
		if _, err := readHunks(bufio.NewReader(strings.NewReader(patch)), &out); err != nil {
			return
		}
		size := 0
		for _, h := range out.Hunks {
			for _, l := range h.Lines {
				size += len(l)
			}
		}
		if size > len(patch) {
			t.Errorf("%d bytes of %d", size, len(patch))
		}
	})
}
