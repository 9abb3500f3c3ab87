package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(yardmaster_\\w+)` \\| (\\w+) \\|([^|]*)\\|")
	loopRow    = regexp.MustCompile("(?m)^\\| `([a-z_.-]+)` \\|")
	codeWord   = regexp.MustCompile("`(\\w+)`")
	metricName = regexp.MustCompile(`\b(yardmaster_\w+)(\{[^}]*\})?`)
	labelName  = regexp.MustCompile(`(\w+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"`)
	grouped    = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// metrics are the labels of each metric that docs/metrics.md tells of, which a test holds against
// what a server answers. A histogram is three.
func metrics(t *testing.T) (labels map[string][]string, loops []string) {
	t.Helper()
	page, err := os.ReadFile("metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	labels = map[string][]string{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		known := []string{"job"}
		for _, l := range codeWord.FindAllStringSubmatch(m[3], -1) {
			known = append(known, l[1])
		}
		if m[2] != "histogram" {
			labels[m[1]] = known
			continue
		}
		labels[m[1]+"_count"], labels[m[1]+"_sum"], labels[m[1]+"_bucket"] = known, known, append(slices.Clone(known), "le")
	}
	for _, m := range loopRow.FindAllStringSubmatch(string(page), -1) {
		loops = append(loops, m[1])
	}
	return labels, loops
}

// Alerts and the dashboard name metrics, labels and loops that there are, and the page shows the
// rules as they are in the file.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	labels, loops := metrics(t)
	rules, err := os.ReadFile("monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("alerts.md")
	if err != nil || !strings.Contains(string(page), "```yaml\n"+string(rules)+"```") {
		t.Error("alerts.md does not show monitoring/alerts.yml as it is", err)
	}
	dashboard, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &board); err != nil || len(board.Panels) == 0 {
		t.Fatal("dashboard.json has no panels:", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(rules)) {
		if expr, is := strings.CutPrefix(strings.TrimSpace(line), "expr: "); is {
			all[expr] = expr
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all[p.Title+": "+target.Expr] = target.Expr
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d expressions were found", len(all))
	}
	for where, expr := range all {
		known := []string{}
		for _, m := range metricName.FindAllStringSubmatch(expr, -1) {
			of, there := labels[m[1]]
			if !there {
				t.Errorf("%s: there is no metric %s", where, m[1])
			}
			known = append(known, of...)
			for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(of, l[1]) {
					t.Errorf("%s: %s has no label %s", where, m[1], l[1])
				}
				for loop := range strings.SplitSeq(l[2], "|") {
					if l[1] == "loop" && !slices.Contains(loops, loop) {
						t.Errorf("%s: there is no loop %s", where, loop)
					}
				}
			}
		}
		for _, m := range grouped.FindAllStringSubmatch(expr, -1) {
			for l := range strings.SplitSeq(m[1], ",") {
				if !slices.Contains(known, strings.TrimSpace(l)) {
					t.Errorf("%s: there is no label %s", where, l)
				}
			}
		}
	}
}
