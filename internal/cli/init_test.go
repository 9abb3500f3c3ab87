package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// mostInit is the largest number of allocations that packages may make before main. They
// were 35,900 when it was set, 21,300 of which the library of JSON Schema makes: it compiles
// the meta-schemas of its drafts in a function init, which no program that links it can put
// off. What else needs more is made at its first use (sync.OnceValue, package lazy).
const mostInit = 37_500

// mostOfOwn is the largest number of allocations that one package of this program may make
// before main. They are its events, its errors and the places of its statements.
const mostOfOwn = 200

// TestInit holds what the program does before main. Allocations are counted, not time: they
// are the same on a machine with other work.
func TestInit(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "version")
	cmd.Env = []string{"YARDMASTER_TEST_AS=program", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GODEBUG=inittrace=1"}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatal(err, said.String())
	}
	all, packages := 0, 0
	var largest []string
	for line := range strings.Lines(said.String()) {
		// init PACKAGE @N ms, N ms clock, N bytes, N allocs
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "init" || words[len(words)-1] != "allocs" {
			continue
		}
		n, err := strconv.Atoi(words[len(words)-2])
		if err != nil {
			t.Fatal(line)
		}
		packages++
		all += n
		own := strings.HasPrefix(words[1], "yardmaster/") && words[1] != "yardmaster/internal/cli" // which is here with its tests
		if own && n > mostOfOwn {
			t.Errorf("%s makes %d allocations before main, more than %d", words[1], n, mostOfOwn)
		}
		if n > 3000 {
			largest = append(largest, words[1]+" "+words[len(words)-2])
		}
	}
	if packages < 50 {
		t.Fatalf("the trace has %d packages:\n%s", packages, said.String())
	}
	if all > mostInit {
		t.Errorf("packages make %d allocations before main, more than %d; the most: %s", all, mostInit, strings.Join(largest, ", "))
	}
}
