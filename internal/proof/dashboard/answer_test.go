//go:build !race

package dashboard_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A repository is asked about: the answer stands with its lines, a refusal says why, and nothing
// of either is markup.
func TestAnswerHasItsLines(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "answers.yml")
	if err := os.WriteFile(script, []byte(`scenarios:
  - name: port
    without_tools: true
    match: "| Which port is it?"
    steps:
      - text: '{"claims":[{"text":"`+"`port`"+` is 8080.","citations":["config.yml:1-2"]},{"text":"`+"`port`"+` is 9.","citations":["config.yml:1"]}]}'
  - name: none
    without_tools: true
    match: ""
    steps:
      - text: '{"claims":[]}'
`), 0o600); err != nil {
		t.Fatal(err)
	}
	y, b := begin(t, "--scenario", script)
	if err := y.Push("acme/web", map[string]string{"config.yml": "port: 8080\nlogo: <img src=x onerror=alert(1)>\n"}); err != nil {
		t.Fatal(err)
	}
	b.Go("/ui/repos/acme/web?tab=ask")
	b.Fill("Question", "Which port is it?")
	b.Click("main form button.main")
	b.See("no key of a model provider")
	call[any](y, http.MethodPost, "/v1/billing/keys", `{"provider": "scripted"}`)
	b.Click("main form button.main")
	b.See("config.yml:1-2")
	b.See("logo: <img src=x")
	b.See("1 sentence was left out.")
	b.Until("the way to the file, at its lines", `/\/ui\/repos\/acme\/web\/file\?path=config.yml&at=[0-9a-f]{40}#L1-L2$/.test(
		document.querySelector("figcaption a")?.href ?? "")`)
	shoot(b, "answer")
	b.Fill("Question", "What is the port of the moon?")
	b.Click("main form button.main")
	b.See("The lines that were found do not answer the question.")
	b.Gone("config.yml:1-2")
	content(b)
}
