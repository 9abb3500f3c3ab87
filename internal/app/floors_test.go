package app

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Every reader of a policy is told no more than the account allows, from the
// moment that it says so, with or without a file.
func TestFloorsReachTheirReaders(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e)
			y.push("acme/web", map[string]string{".svc/policy.yml": "version: 1\nagent: {isolation: none}\nbudget: {run_usd: 50}\n" +
				"mcp_servers: {x: {url: 'https://x.example.com', transport: http, token_ref: T}}\n"})
			y.push("acme/bare", map[string]string{"README": "hello\n"})
			read := func(name string) (r task.Repo, task, run *int64, servers []protocol.MCPServer) {
				y.in(y.acct, func(tx *db.Tx) error {
					var err error
					if r, _, err = y.parts.task.RepoByName(tx, "acme", name); err != nil {
						return err
					}
					limits, err := y.parts.budget.Work.Limits(tx, r.ID)
					if err != nil {
						return err
					}
					servers, err = y.parts.run.Setup.Servers(tx, taskOf(r))
					task, run = limits.Task, limits.Run
					return err
				})
				return r, task, run, servers
			}
			y.send("PUT", "/v1/secrets/T", y.owner, `{"value": "a long value", "delivery": "broker", "hosts": ["x.example.com"]}`).want(200)
			if r, task, run, servers := read("web"); r.Isolation != "none" || task != nil || *run != 50_000_000 || len(servers) != 1 {
				t.Fatalf("without floors: %+v, %v, %v, %v", r, task, run, servers)
			}
			y.send("PUT", "/v1/account/floors", y.owner,
				`{"isolation": "bubblewrap", "task_usd": 3, "run_usd": 2, "egress": ["*.trusted.example"]}`).want(200)
			for _, name := range []string{"web", "bare"} {
				r, task, run, servers := read(name)
				if r.Isolation != "bubblewrap" || task == nil || *task != 3_000_000 || run == nil || *run != 2_000_000 ||
					len(servers) != 0 {
					t.Errorf("%s: %+v, %v, %v, %v", name, r, task, run, servers)
				}
			}
			// Another account is not held to them.
			rival := y.tenant("rival")
			y.in(rival, func(tx *db.Tx) error {
				r, _, err := y.parts.task.RepoByName(tx, "acme", "web")
				if r.ID != "" {
					t.Errorf("a rival finds %+v", r)
				}
				return err
			})
			y.send("PUT", "/v1/account/floors", y.owner, `{}`).want(200)
			if r, _, run, _ := read("web"); r.Isolation != "none" || *run != 50_000_000 {
				t.Errorf("when they are gone: %+v, %v", r, run)
			}
		})
	}
}

func taskOf(r task.Repo) *task.Row { return &task.Row{RepoID: r.ID} }
