package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"yardmaster/internal/cli/noun"
)

const (
	// quick is how long a list of tasks may take, from the start of the program to its end.
	quick = 40 * time.Millisecond
	// slower is how many times as long as a bare program it may take where the machine is slow. It
	// took 5 times as long when that was set.
	slower = 10
)

// A list of tasks takes no longer than it may, of a server on the same machine; on a slow or busy
// one no more than so many times what a bare program takes for the same page.
func TestListIsQuick(t *testing.T) {
	y := yard(t) // not in parallel: what else runs here would be measured, too
	if err := y.Push("acme/web", map[string]string{"a": "a\n"}); err != nil {
		t.Fatal(err)
	}
	for i := range noun.Usual {
		called(t, y, "POST", "/v1/tasks", map[string]any{"repo": "acme/web", "title": fmt.Sprint("Task ", i), "problem": "None."})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bare, "./testdata/bare").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	programs := [2][]string{{self, "task", "list"}, {bare, fmt.Sprintf("%s/v1/tasks?per_page=%d", y.URL, noun.Usual)}}
	var best [2]time.Duration
	for range 20 {
		for i, args := range programs {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = []string{"YARDMASTER_TEST_AS=program", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"),
				"YARDMASTER_URL=" + y.URL, "YARDMASTER_TOKEN=" + y.Owner}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			begun := time.Now()
			if err := cmd.Run(); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, errs.String())
			}
			took := time.Since(begun)
			if n := bytes.Count(out.Bytes(), []byte("Task ")); n != noun.Usual {
				t.Fatalf("%q lists %d tasks:\n%s", args, n, out.String())
			}
			if best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	t.Logf("a list takes %s, a bare program %s", best[0], best[1])
	if limit := max(quick, slower*best[1]); best[0] > limit {
		t.Errorf("a list takes %s, more than %s: a bare program takes %s", best[0], limit, best[1])
	}
}
