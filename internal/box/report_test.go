package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A report that is too long says so at its end, and is no longer than what a server keeps.
func TestReportIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"short":   {"\nDone.\n", "Done."},
		"longest": {strings.Repeat("a", reportBytes), strings.Repeat("a", reportBytes)},
		"longer":  {strings.Repeat("é", reportBytes), strings.Repeat("é", (reportBytes-len(reportCut))/2) + reportCut},
		"missing": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(home, reportFile), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := readReport(home)
			if got != c.want {
				t.Errorf("%d bytes that end with %q", len(got), got[max(0, len(got)-80):])
			}
			if len(got) > reportBytes || !utf8.ValidString(got) {
				t.Errorf("%d bytes are more than %d, or no text", len(got), reportBytes)
			}
		})
	}
}
