package app

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/config"
	"yardmaster/internal/db/dbtest"
)

// TestRetention: what goes next is told by the settings that are given, and nothing goes by it.
func TestRetention(t *testing.T) {
	t.Parallel()
	counted := map[string]bool{}
	for _, o := range old {
		counted[o.table] = true
	}
	for _, k := range config.Retention {
		for _, table := range k.Tables {
			if counted[table] != (k.Ends == config.ByDays) {
				t.Errorf("%s is counted: %v, and ends %s", table, counted[table], k.Ends)
			}
		}
	}
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.artifact("kept")
			say := func(setting func(*config.Config)) string {
				cfg := *y.cfg
				setting(&cfg)
				out := new(bytes.Buffer)
				if err := Retention(t.Context(), &cfg, out); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			said := say(func(*config.Config) {})
			for _, want := range []string{`artifacts +1 +0 +keep-artifacts`, `digests +0 +0 +keep-digests`, `audit +\d+ +0 +keep-audit`,
				`run_events +0 +0 +keep-run-events`,
				`repositories: \d+ bytes`, `objects: \d\d+ bytes`} {
				if !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("%s is not said:\n%s", want, said)
				}
			}
			if strings.Contains(said, "not known") {
				t.Errorf("%s", said)
			}
			y.send("POST", "/v1/org/members", y.owner, `{"email": "eve@example.com", "role": "admin"}`).want(201)
			mails := regexp.MustCompile(`mails +1 +(\d+) +keep-mails`)
			y.rig().Eventually("the mail is sent, and one of those that are over", func() bool {
				// With a day less than none, whatever is over goes next.
				said := mails.FindStringSubmatch(say(func(c *config.Config) { c.KeepMails = -1 }))
				return len(said) == 2 && said[1] == "1"
			})
			if kept := mails.FindStringSubmatch(say(func(c *config.Config) { c.KeepMails = 0 })); len(kept) != 2 || kept[1] != "0" {
				t.Errorf("mails are kept for good: %q", kept)
			}
		})
	}
}
