package cli

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recording is the picture of a terminal in the README.
const recording = "../../docs/pictures/terminal.svg"

// The README shows a session on a terminal. It is drawn from a real one: the text of the
// picture is what a fresh session shows. -update draws it anew.
func TestRecording(t *testing.T) {
	t.Parallel()
	y := yard(t, "--scenario", "../../internal/demo/scenario.yml")
	files := map[string]string{".svc/policy.yml": "version: 1\nmerge: {mode: ask}\nreview: {mode: off}\n"}
	for _, name := range []string{"README.md", "slug.sh", "test.sh"} {
		text, err := os.ReadFile(filepath.Join("../../internal/demo/sample", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	if err := y.Push("acme/slug", files); err != nil {
		t.Fatal(err)
	}
	if resp, body := y.Send(http.MethodPost, "/v1/billing/keys", y.Owner, `{"provider": "scripted"}`); resp.StatusCode >= 300 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	var made struct{ Token string }
	_, body := y.Send(http.MethodPost, "/v1/runners/enrollments", y.Owner, `{}`)
	if err := json.Unmarshal(body, &made); err != nil {
		t.Fatal(err)
	}
	y.Box(made.Token)
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	p.cols = 100
	title := "Make the tests of slug.sh pass."
	if shown, code := p.terminal([]string{"task", "create", "--repo", "acme/slug", title}); code != 0 {
		t.Fatalf("exit code %d: %s", code, shown)
	}
	watched, code := p.terminal([]string{"task", "watch", "@last"}, step{"a approves", "a\r"}, step{"merged", ""})
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, watched)
	}
	typed := []string{`$ yardmaster task create --repo acme/slug "` + title + `"`, "$ yardmaster task watch @last"}
	fresh := drawing(append(typed, steady(watched)...))
	if *update {
		if err := os.WriteFile(recording, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	had, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	if string(had) != fresh {
		t.Errorf("%s is not what a session shows: go test ./internal/cli -run TestRecording -update\n%s",
			recording, difference(string(had), fresh))
	}
	if len(had) > 100_000 || strings.Contains(fresh, "<script") || strings.Contains(fresh, "127.0.0.1") ||
		xml.Unmarshal(had, new(any)) != nil {
		t.Errorf("%s is no picture that may stand in the README", recording)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !regexp.MustCompile(`!\[[^\]]{30,}\]\(docs/pictures/terminal\.svg\)`).Match(readme) {
		t.Errorf("the README does not show the recording with words for it: %v", err)
	}
}

var (
	row  = regexp.MustCompile(`^\d\d:\d\d:\d\d  (\w+) +(.*)$`)
	kept = regexp.MustCompile(`^(agent|output) |^run +(claimed|checked|tool:|finished)|^pull +asked|^task +merged`)
	sgr  = regexp.MustCompile(`\x1b\[([0-9;]*)m`)
)

// steady are the lines of a watched task that each session has, without the clock and the
// ids: not what the server and the machine do meanwhile, such as states that pass. Those
// of the run come first, then the question and its answer, then the end: on a busy machine
// the watch may hear of one before the last of the other.
func steady(watched string) []string {
	var stages [3][]string
	take, stage := false, 0
	for line := range strings.Lines(strings.ReplaceAll(watched, "\r\n", "\n")) {
		line = strings.TrimRight(line, "\n")
		bare := sgr.ReplaceAllString(line, "")
		switch m := row.FindStringSubmatch(bare); {
		case m != nil:
			stage = map[string]int{"pull": 1, "task": 2}[m[1]]
			if take = kept.MatchString(m[1] + " " + m[2]); take {
				stages[stage] = append(stages[stage], commits.ReplaceAllString(line[len("00:00:00  "):], "3f9c2ab1d0"))
			}
		case take && strings.HasPrefix(bare, strings.Repeat(" ", 20)):
			stages[stage] = append(stages[stage], line[len("00:00:00  "):])
		case strings.HasPrefix(bare, "Answer here:"), bare == "a":
			stages[1], take = append(stages[1], line), false
		}
	}
	return slices.Concat(stages[0], stages[1], stages[2])
}

// drawing is a terminal that shows lines one after the other, as an SVG whose only motion
// is by style. Who wants no motion sees all of it at once.
func drawing(lines []string) string {
	const high, wide = 19, 860
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-label="A session on a terminal">
<style>
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #dfe5ea; white-space: pre; animation: come 1ms both; }
.b { font-weight: bold } .d { fill: #9aa6b1 } .y { fill: #e3b341 } .c { fill: #7ee2b8 }
@keyframes come { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#14191e"/>
`, wide, 24+high*len(lines), wide)
	for i, line := range lines {
		after := float64(i) * 0.35
		if strings.HasPrefix(line, "$ ") {
			line = "\x1b[36m" + line
		}
		fmt.Fprintf(&b, `<text x="14" y="%d" style="animation-delay:%.2fs" xml:space="preserve">`, 24+high*i, after)
		class, at := "", 0
		piece := func(s string) {
			if s == "" {
				return
			}
			var safe strings.Builder
			_ = xml.EscapeText(&safe, []byte(s)) // a builder takes all
			fmt.Fprintf(&b, `<tspan class=%q>%s</tspan>`, class, &safe)
		}
		for _, m := range sgr.FindAllStringSubmatchIndex(line, -1) {
			piece(line[at:m[0]])
			class, at = map[string]string{"1": "b", "2": "d", "33": "y", "36": "c"}[line[m[2]:m[3]]], m[1]
		}
		piece(line[at:])
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
