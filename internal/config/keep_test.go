package config

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// How long rows are kept is said in days, and days that make no sense are refused by name.
func TestKeep(t *testing.T) {
	t.Parallel()
	env := environment(map[string]string{"YARDMASTER_DATA": t.TempDir()})
	for _, c := range []struct{ key, value, says string }{
		{"keep-notifications", "1", ""}, {"keep-notifications", "0", "from 1 to 36500"}, {"keep-digests", "-1", "from 1 to"},
		{"keep-webhook-events", "7", ""}, {"keep-host-deliveries", "7", "from 8 to"}, {"keep-host-deliveries", "8", ""},
		{"keep-audit", "29", "from 30 to"}, {"keep-audit", "30", ""}, {"keep-run-events", "0", "from 1 to"},
		{"keep-source-deliveries", "1", ""}, {"keep-mails", "0", ""}, {"keep-mails", "-1", "from 0 to"},
		{"keep-mails", "99999", "from 0 to"}, {"keep-mails", "30d", "is not an integer"},
	} {
		_, err := Load("serve", []string{"--" + c.key, c.value}, env, new(bytes.Buffer))
		named := err != nil && strings.HasPrefix(err.Error(), c.key+" (from --"+c.key+")") && strings.Contains(err.Error(), c.says)
		if c.says == "" && err != nil || c.says != "" && !named {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// docs/backup.md has each of these settings with its default.
func TestKeepIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range new(Config).settings() {
		if !strings.HasPrefix(s.key, "keep-") {
			continue
		}
		n++
		if !regexp.MustCompile("(?m)^\\| `" + s.key + "` \\| " + s.def + "\\b").Match(text) {
			t.Errorf("docs/backup.md does not say that %s is %s", s.key, s.def)
		}
	}
	if n < 6 {
		t.Errorf("there are %d settings", n)
	}
}
