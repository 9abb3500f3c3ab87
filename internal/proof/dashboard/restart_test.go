//go:build !race

package dashboard_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// serve is the program of a server that a test may kill: this test binary, started with
// the word "serve" and flags of `yardmaster serve`.
func serve(flags []string) int {
	cfg, err := config.Load("test", flags, func(string) (string, bool) { return "", false }, os.Stderr)
	if err == nil {
		err = app.Run(context.Background(), cfg, app.Options{
			Version: "test", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Ready: func(*app.App) { fmt.Println("ready") },
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The process of the server is killed under open pages, and started again on its data. A
// list keeps its rows, says that it is cut off, and goes on with what came meanwhile; the
// transcript of a run goes on after the last line that it had. Nothing is lost or doubled.
func TestServerIsKilledUnderAPage(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, listen, bus := t.TempDir(), loopback.Address(), loopback.Address()
	y := &yard{Yard: &rig.Yard{Plane: rig.Plane{URL: "http://" + listen}, T: t, Log: rig.Log(t)}}
	run := func() *chaos.Process {
		t.Helper()
		p, err := chaos.Start(filepath.Join(dir, "server.log"), dir, nil, self, "serve", "--data", filepath.Join(dir, "data"),
			"--listen", listen, "--nats-listen", bus, "--setup-token", "dev_setup_for_tests", "--rate-limits", "off")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		patience.Until(y.T, "the server answers", func() bool {
			if p.Ended() {
				t.Fatalf("the server ended:\n%s", p.Output())
			}
			resp, err := rig.Plain.Get(y.URL + "/healthz")
			if err == nil {
				resp.Body.Close()
			}
			return err == nil && resp.StatusCode == http.StatusOK
		})
		return p
	}
	server := run()
	c, err := client.Setup(t.Context(), y.URL, "dev_setup_for_tests",
		client.Owner{Login: "ada", Name: "Ada", Email: "ada@example.com", Password: rig.Password, Account: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	y.Owner = c.Token
	y.call(http.MethodPut, "/v1/templates/counter", `{"agent": "command", "command": ["sh", "count.sh"]}`)
	if err := y.Push("acme/web", map[string]string{
		"count.sh": "i=0; while :; do i=$((i+1)); echo tick $i.; sleep 0.1; done\n",
	}); err != nil {
		t.Fatal(err)
	}
	y.box()
	task, _ := y.call(http.MethodPost, "/v1/tasks",
		`{"repo": "acme/web", "title": "Count aloud", "problem": "Count.", "template": "counter"}`)["task_id"].(string)

	list := y.open(1440, 900)
	list.Go("/ui/tasks")
	list.See("Count aloud")
	page := list.Another()
	page.Go("/ui/tasks/" + task)
	lines := func(n int) string {
		return fmt.Sprintf(`Number(/(\d+) lines/.exec(document.querySelector(".logbox .tools .num")?.innerText)?.[1]) > %d`, n)
	}
	page.Until("some lines", lines(10))
	for _, b := range []*browser.Tab{list, page} {
		b.Until("live", `document.querySelector(".foot .link.live")`)
	}
	before := ticks(t, page)

	server.Kill()
	for _, b := range []*browser.Tab{list, page} {
		b.See("Reconnecting")
		b.Until("how old the rows are", `document.querySelector(".foot .link").title.includes("as of")`)
		b.See("Count aloud")
	}
	if away := ticks(t, page); len(away) < len(before) {
		t.Errorf("%d lines were there, %d are left while the server is away", len(before), len(away))
	}
	run()
	y.task("Meanwhile", "Nothing to do.")
	list.See("Meanwhile")
	for _, b := range []*browser.Tab{list, page} {
		b.Until("live again", `document.querySelector(".foot .link.live")`)
	}
	if rows := browser.Eval[[]string](list, `[...document.querySelectorAll("#tasks [role=row] a")].map(e => e.innerText.split(" ·")[0])`); !slices.Equal(rows,
		[]string{"Meanwhile", "Count aloud"}) {
		t.Errorf("after the restart the list has the rows %q", rows)
	}
	page.Until("the transcript goes on", lines(len(before)+40))
	for i, n := range ticks(t, page) {
		if n != i+1 {
			t.Fatalf("line %d of the count is %d: lines were lost or doubled", i+1, n)
		}
	}
	y.call(http.MethodPost, "/v1/tasks/"+task+"/cancel", `{}`)
	page.See("The run is over.")
}

var tick = regexp.MustCompile(`(?m)^tick (\d+)\.$`)

// ticks are the numbers that a run has counted, as its whole transcript on a page has
// them, on screen or not.
func ticks(t *testing.T, b *browser.Tab) (out []int) {
	t.Helper()
	browser.Eval[any](b, `void (navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	b.Button("Copy all")
	for _, m := range tick.FindAllStringSubmatch(browser.Eval[string](b, `window.copied`), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}
