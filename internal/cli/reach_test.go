package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/object"
)

// callsAlone are the capabilities that the dashboard calls to change something and that no command reaches but call.
// The list is to become shorter.
const callsAlone = "testdata/calls_alone.txt"

var (
	generatedOp  = regexp.MustCompile(`export const (\w+) = [^\n]*\("([a-z_]+\.[a-z_]+)", "([A-Z]+)"`)
	importsOfOps = regexp.MustCompile(`import\s+\{([^}]*)\}\s+from\s+"[./]*client\.gen"`)
	inBackticks  = regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`")
	pathHole     = regexp.MustCompile(`\{[^}]*\}`)
)

// changedByPages are the capabilities that the sources of the dashboard call to change something.
func changedByPages(t *testing.T) []string {
	t.Helper()
	const folder = "../../internal/web/src"
	generated, err := os.ReadFile(filepath.Join(folder, "client.gen.ts"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, m := range generatedOp.FindAllStringSubmatch(string(generated), -1) {
		if m[3] != "GET" {
			ids[m[1]] = m[2]
		}
	}
	used := map[string]bool{}
	err = filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".ts") && !strings.HasSuffix(path, ".tsx") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range importsOfOps.FindAllStringSubmatch(string(b), -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				if id := ids[strings.TrimSpace(name)]; id != "" {
					used[id] = true
				}
			}
		}
		return err
	})
	if err != nil || len(used) < 100 {
		t.Fatalf("%d capabilities: %v", len(used), err)
	}
	return object.Sorted(used)
}

// sourcesOfCommands are the sources of the commands and of their client, without tests.
func sourcesOfCommands(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*.go", "*/*.go", "../../internal/client/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}

// What the dashboard changes a command changes, but for a list that only becomes shorter. A command reaches what it
// names by its id, or by the pieces of its path.
func TestCommandsReachWhatPagesChange(t *testing.T) {
	t.Parallel()
	sources := sourcesOfCommands(t)
	reached := func(id string) bool {
		if strings.Contains(sources, `"`+id+`"`) {
			return true
		}
		for piece := range strings.SplitSeq(pathHole.ReplaceAllString(capability.All()[id].Path, "\n"), "\n") {
			piece = strings.Trim(piece, "/")
			at := strings.Index(sources, piece)
			if piece != "" && (at < 0 || !regexp.MustCompile(`["/]`+regexp.QuoteMeta(piece)+`["/?]`).MatchString(sources)) {
				return false
			}
		}
		return true
	}
	var alone []string
	for _, id := range changedByPages(t) {
		if !reached(id) {
			alone = append(alone, id)
		}
	}
	b, err := os.ReadFile(callsAlone)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(b))
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range inBackticks.FindAllStringSubmatch(string(page), -1) {
		if _, known := capability.All()[m[1]]; known {
			told = append(told, m[1])
		}
	}
	if slices.Sort(told); !slices.Equal(told, listed) {
		t.Errorf("docs/cli.md says that no command does\n%q, and %s has\n%q", told, callsAlone, listed)
	}
	for _, id := range alone {
		if !slices.Contains(listed, id) {
			t.Errorf("the dashboard calls %s, and no command does", id)
		}
	}
	for _, id := range listed {
		if !slices.Contains(alone, id) {
			t.Errorf("%s is in %s, and a command reaches it or no page calls it: take it out", id, callsAlone)
		}
	}
}
