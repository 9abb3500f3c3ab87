package cli

import (
	"sync"

	"yardmaster/internal/cli/tree"
)

// examplesOf are the examples of commands that have none beside their definition: one line of each is all that
// there is to show. @last is what was shown or made last.
var examplesOf = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"demo":                       "yardmaster demo --once",
		"serve":                      "yardmaster serve --data /var/lib/yardmaster --listen 127.0.0.1:8080",
		"config":                     "yardmaster config --data /var/lib/yardmaster",
		"keys list":                  "yardmaster keys list --data /var/lib/yardmaster",
		"keys new":                   "yardmaster keys new > master.key",
		"keys rotate":                "yardmaster keys rotate --data /var/lib/yardmaster",
		"keys forget":                "yardmaster keys forget ID --data /var/lib/yardmaster",
		"audit accept":               `yardmaster audit accept "The backup of Monday was put back." --data /var/lib/yardmaster`,
		"mail":                       "yardmaster mail ada@example.com",
		"github setup":               "yardmaster github setup",
		"github deliveries":          "yardmaster github deliveries --state failed",
		"github redeliver":           "yardmaster github redeliver GUID",
		"operator token":             "yardmaster operator token --login ada --scopes admin:accounts",
		"chaos":                      "yardmaster chaos --minutes 2 --seed 7",
		"setup":                      "yardmaster setup --token TOKEN --login ada --email ada@example.com --account acme",
		"login":                      "yardmaster login --url https://yard.example.com",
		"auth list":                  "yardmaster auth list",
		"auth git":                   "yardmaster auth git",
		"repo enable":                "yardmaster repo enable acme/web",
		"repo remove":                "yardmaster repo remove acme/web",
		"notification routes resend": "yardmaster notification routes resend team@example.com",
		"notification routes delete": "yardmaster notification routes delete team@example.com",
		"notification webhook":       "yardmaster notification webhook",
		"notification webhook clear": "yardmaster notification webhook clear",
		"notification webhook test":  "yardmaster notification webhook test",
		"sso view":                   "yardmaster sso view",
		"sso delete":                 "yardmaster sso delete",
		"github token":               "yardmaster github token",
		"github token clear":         "yardmaster github token clear",
		"github bindings":            "yardmaster github bindings",
		"github bind":                "yardmaster github bind acme/web",
		"github unbind":              "yardmaster github unbind acme/web",
		"prompt variables delete":    "yardmaster prompt variables delete team --scope account",
		"box unprompt":               "yardmaster box unprompt builder",
		"box renew":                  "yardmaster box renew builder",
		"source linear":              "yardmaster source linear",
		"source linear delete":       "yardmaster source linear delete",
		"plan filing":                "yardmaster plan filing",
		"plan filing on":             "yardmaster plan filing on",
		"plan filing off":            "yardmaster plan filing off",
		"repo setup":                 "yardmaster repo setup acme/web",
		"box run":                    "yardmaster box run --slots 4",
		"box agents":                 "yardmaster box agents",
		"box agents install":         "yardmaster box agents install claude",
		"box drain":                  "yardmaster box drain builder",
		"box resume":                 "yardmaster box resume builder",
		"box decommission":           "yardmaster box decommission builder",
		"box revoke":                 "yardmaster box revoke builder",
		"box enroll":                 "yardmaster box enroll --name builder --slots 4",
		"task retry":                 "yardmaster task retry @last",
		"task report":                "yardmaster task report @last",
		"pr diff":                    "yardmaster pr diff acme/web#3",
		"pr checks":                  "yardmaster pr checks acme/web#3",
		"pr skip":                    "yardmaster pr skip acme/web#3",
		"pr unapprove":               "yardmaster pr unapprove acme/web#3",
		"pr ask-again":               "yardmaster pr ask-again acme/web#3",
		"pr merge":                   "yardmaster pr merge acme/web#3",
		"pr open":                    "yardmaster pr open acme/web#3",
		"finding restore":            "yardmaster finding restore RULE --repo acme/web",
		"finding dismiss":            `yardmaster finding dismiss ID "The buffer is freed by its owner."`,
		"ask get":                    "yardmaster ask get @last",
		"ask approve":                "yardmaster ask approve @last",
		"ask redrive":                "yardmaster ask redrive @last",
		"plan survey":                "yardmaster plan survey FANOUT",
		"plan approve":               "yardmaster plan approve @last",
		"plan cancel":                "yardmaster plan cancel @last",
		"plan unlink":                `yardmaster plan unlink @last --group-id ID --upstream-group-ids ID --reason "They touch other files."`,
		"plan regroup":               "yardmaster plan regroup @last --group-ids ID --ask-id ID",
		"blocker withdraw":           "yardmaster blocker withdraw @last",
		"issue handoff":              `yardmaster issue handoff acme/web#12 --webhook-ref support "It is about a bill."`,
		"schedule update":            `yardmaster schedule update @last --cron "0 7 * * 1" --zone Europe/Berlin`,
		"schedule pause":             "yardmaster schedule pause @last",
		"schedule resume":            "yardmaster schedule resume @last",
		"schedule run":               "yardmaster schedule run @last",
		"schedule delete":            "yardmaster schedule delete @last",
		"notification read":          "yardmaster notification read @last",
		"notification unread":        "yardmaster notification unread @last",
		"notification archive":       "yardmaster notification archive @last",
		"notification read-all":      "yardmaster notification read-all",
		"template delete":            "yardmaster template delete careful",
		"token rename":               "yardmaster token rename ci nightly",
		"token revoke":               "yardmaster token revoke ci",
		"member remove":              "yardmaster member remove bob",
		"member leave":               "yardmaster member leave",
		"invitation revoke":          "yardmaster invitation revoke ID",
		"webhook test":               "yardmaster webhook test ci",
		"webhook revive":             "yardmaster webhook revive ci",
		"webhook delete":             "yardmaster webhook delete ci",
		"source update":              "yardmaster source update errors --label bug",
		"source rotate":              "yardmaster source rotate errors --secret-file secret.txt",
		"source disconnect":          "yardmaster source disconnect errors",
		"billing view":               "yardmaster billing view",
		"billing portal":             "yardmaster billing portal",
		"budget view":                "yardmaster budget view",
		"budget member":              "yardmaster budget member bob 50",
		"budget task":                "yardmaster budget task @last 5",
		"budget plan":                "yardmaster budget plan @last 40",
		"audit export":               "yardmaster audit export > audit.jsonl",
		"audit verify":               "yardmaster audit verify audit.jsonl",
		"doctor":                     "yardmaster doctor",
		"openapi":                    "yardmaster openapi > openapi.json",
		"events":                     "yardmaster events > events.json",
		"version":                    "yardmaster version",
	}
})

// withExamples gives each command without examples its own.
func withExamples(of []tree.Section) []tree.Section {
	for _, s := range of {
		for i := range s.Commands {
			c := &s.Commands[i]
			if line := examplesOf()[c.Words]; line != "" && len(c.Examples) == 0 {
				c.Examples = []string{line}
			}
		}
	}
	return of
}
