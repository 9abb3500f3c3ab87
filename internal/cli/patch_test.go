package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// What is written to a pipe is the change byte for byte: git applies it. On a terminal the
// hidden characters of names and lines are escapes.
func TestDiffIsAPatch(t *testing.T) {
	const odd, text = "we\u202eird \\\"q\"\t.js", "a\x1b[2J\u202eb\r"
	changed := func(of map[string]any) map[string]any {
		all := map[string]any{"path": odd, "was": nil, "kind": "modified", "type": "file", "was_type": nil, "binary": false, "cut": false,
			"hunks": []any{}}
		for k, v := range of {
			all[k] = v
		}
		return all
	}
	hunk := func(oldStart, oldLines, newStart, newLines int, lines ...string) []any {
		return []any{map[string]any{"old_start": oldStart, "old_lines": oldLines, "new_start": newStart, "new_lines": newLines,
			"section": "", "lines": lines}}
	}
	files := []map[string]any{
		changed(map[string]any{"hunks": hunk(1, 2, 1, 2, " one", "-two", "+"+text, `\ No newline at end of file`)}),
		changed(map[string]any{"path": "new.sh", "kind": "added", "type": "executable", "hunks": hunk(0, 0, 1, 1, "+echo")}),
		changed(map[string]any{"path": "gone", "kind": "deleted", "hunks": hunk(1, 1, 0, 0, "-gone")}),
		changed(map[string]any{"path": `"\xff"`, "was": "named", "kind": "renamed"}),
		changed(map[string]any{"path": "empty", "kind": "added"}),
	}
	servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"files": files}
		for _, f := range files {
			if f["path"] == r.URL.Query().Get("path") {
				answer["file"] = f
			}
		}
		b, err := object.Encode(answer)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	})
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(odd, "one\ntwo\n")
	write("gone", "gone\n")
	write("named", "same\n")
	patch := printed(t, []string{"pr", "diff", someID})
	write("patch", patch)
	apply := exec.CommandContext(t.Context(), "git", "apply", "patch")
	apply.Dir = folder
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("git says %s of\n%s", out, patch)
	}
	for name, want := range map[string]string{odd: "one\n" + text, "new.sh": "echo\n", "\xff": "same\n", "empty": ""} {
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != want {
			t.Errorf("%q is %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"gone", "named"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if got := change.OneLine(odd); client.Inert(got) != got || !strings.Contains(got, `\u202e`) || !strings.Contains(got, `\t`) {
		t.Errorf("a name in a header is %q", got)
	}
}
