package app

import (
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// The prepare script of the policy of the default branch makes the environment of agents and
// checks ready: with its own secret, which they do not have, and with the files of the default
// branch, whatever the pull request says.
func TestEnvironmentForAgentsAndChecks(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			l := start(t, e).lab()
			const policy = "version: 1\nreview: {mode: off}\nprepare:\n  command: sh tools/prepare.sh\n  inputs: [tools]\n  secrets: [FETCH]\n" +
				"checks: {command: 'test -z \"$FETCH\" && test \"$MADE_BY\" = main && test \"$(cat $YARDMASTER_ENVIRONMENT/version)\" = 1'}\n"
			l.land("acme/app", "main", map[string]string{
				"README.md":        "app\n",
				"tools/version":    "1\n",
				"tools/prepare.sh": "set -e\ntest -n \"$FETCH\"\ncp tools/version $YARDMASTER_ENVIRONMENT/\necho MADE_BY=main >$YARDMASTER_ENVIRONMENT/env\n",
				".svc/policy.yml":  policy,
			}, nil)
			l.send("PUT", "/v1/repos/acme/app/secrets/FETCH", l.owner, `{"value": "for the script alone"}`).want(200)
			l.send("PUT", "/v1/repos/acme/app/secrets/OPEN", l.owner, `{"value": "for everybody in it"}`).want(200)
			// The agent changes the script and its rules: its check has what main says.
			p := l.works("acme/app", `set -e; test -z "$FETCH"; test -n "$OPEN"; test "$MADE_BY" = main; cp "$YARDMASTER_PROMPT" prompt; `+
				`echo 2 >tools/version; echo 'echo MADE_BY=$FETCH >$YARDMASTER_ENVIRONMENT/env' >tools/prepare.sh; `+
				`sed -i 's/tools.prepare.sh/-c evil/' .svc/policy.yml; git add -A; git commit -qm evil`)
			if p.Checks != "passed" {
				t.Errorf("the check has %s", p.Checks)
			}
			there := filepath.Join(t.TempDir(), "clone")
			l.git("/", l.owner, "clone", "-q", "--no-checkout", l.URL()+"/git/acme/app.git", there)
			if told := l.git(there, "", "show", p.HeadSHA+":prompt"); strings.Contains(told, "FETCH") || !strings.Contains(told, "OPEN") {
				t.Errorf("the agent is told of the secret of the script, or not of its own:\n%s", told)
			}
			var tasks struct{ Data []struct{ ID string } }
			decode(t, l.send("GET", "/v1/tasks?per_page=50", l.owner, "").want(200), &tasks)
			told := ""
			for _, task := range tasks.Data {
				told += string(l.send("GET", "/v1/tasks/"+task.ID+"/events?per_page=100", l.owner, "").body)
			}
			if strings.Count(told, `"state":"ready"`) != 1 || strings.Count(told, `"state":"kept"`) != 1 {
				t.Errorf("the events do not tell that it was made once and used twice:\n%s", told)
			}
		})
	}
}
