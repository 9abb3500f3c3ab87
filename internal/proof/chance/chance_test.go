package chance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/proof/chance"
)

// TestWalk is what TestSeeds runs in processes of their own.
func TestWalk(t *testing.T) {
	var drawn []int
	rapid.Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Int().Draw(t, "n")) })
	fmt.Println("drew", chance.Seed(t), flag.Lookup("rapid.seed").Value, drawn)
}

// walk runs TestWalk with a seed in the environment, and returns what it drew.
func walk(t *testing.T, seed string, more ...string) (drew string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^TestWalk$"}, more...)...)
	cmd.Env = append(os.Environ(), chance.Variable+"="+seed)
	out, err := cmd.CombinedOutput()
	_, drew, _ = strings.Cut(string(out), "drew ")
	drew, _, _ = strings.Cut(drew, "]")
	return drew, err
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	drew := map[string]string{}
	for name, seed := range map[string]string{"seven": "7", "seven again": "7", "eight": "8", "none": "", "none again": ""} {
		var err error
		if drew[name], err = walk(t, seed); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(drew["seven"], "7 7 [") || drew["seven"] != drew["seven again"] || drew["seven"] == drew["eight"] {
		t.Errorf("with a seed it draws %.100q, %.100q, and with another %.100q", drew["seven"], drew["seven again"], drew["eight"])
	}
	if drew["none"] == drew["none again"] || !strings.Contains(drew["none"], " 0 [") {
		t.Errorf("without a seed it draws %.100q twice", drew["none"])
	}
	if drew, err := walk(t, "7", "-rapid.seed=9"); err != nil || !strings.HasPrefix(drew, "7 9 [") {
		t.Errorf("rapid's own flag: %.100q, %v", drew, err)
	}
	if _, err := walk(t, "many"); err == nil {
		t.Error("a seed that is no number passes")
	}
}
