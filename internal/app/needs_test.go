package app

import (
	"reflect"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/flow"
)

// What is found out for several at once is what is found out for each.
func TestSeveralAtOnceAreAsEach(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		for name, body := range map[string]string{
			"plain":   `{"agent": "builtin", "model": "m"}`,
			"shell":   `{"agent": "command", "command": ["true"]}`,
			"keyless": `{"agent": "claude", "provider": "anthropic"}`,
			"wrong":   `{"agent": "claude", "provider": "openai"}`,
			"vague":   `{"agent": "builtin", "provider": "openrouter"}`,
			"walled":  `{"agent": "builtin", "isolation": "bubblewrap"}`,
		} {
			y.send("PUT", "/v1/templates/"+name, y.owner, body).want(200)
		}
		y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
		for _, id := range []string{"r1", "r2"} {
			y.in(y.acct, func(tx *db.Tx) error { _, err := addRepo.Exec(tx, id, y.acct, id); return err })
		}
		templates, repos := flow.QueueTemplates{}, flow.TaskRepos{Hosts: y.hosts}
		names := []string{"default", "plain", "shell", "keyless", "wrong", "vague", "walled", "gone"}
		y.in(y.acct, func(tx *db.Tx) error {
			want := map[string]queue.Need{}
			for _, name := range names {
				n, ok, err := templates.Need(tx, y.acct, name)
				if err != nil {
					return err
				}
				if ok {
					want[name] = n
				}
			}
			got, err := templates.Needs(tx, y.acct, names)
			if err == nil && (len(got) != len(names)-1 || !reflect.DeepEqual(got, want)) {
				t.Errorf("needs %v, one by one %v", got, want)
			}
			return err
		})
		y.in(y.acct, func(tx *db.Tx) error {
			want := map[string]task.Repo{}
			for _, id := range []string{"r1", "r2"} {
				r, err := repos.ByID(tx, id)
				if err != nil {
					return err
				}
				want[id] = r
			}
			got, err := repos.ByIDs(tx, []string{"r1", "r2", "gone"})
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("repositories %v, one by one %v", got, want)
			}
			return err
		})
	})
}
