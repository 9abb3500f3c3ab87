package arch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// values are the schemas of the API whose values the pages explain, by page: the member
// of each after a full stop.
var values = map[string][]string{
	"pulls.md":      {"Need.why", "Babysit.state", "PullRequest.state"},
	"merging.md":    {"QueuePlace.state", "MergeBatch.state"},
	"pull-moves.md": {"PendingAction.state", "PendingAction.kind"},
	"reviews.md":    {"Finding.state", "ReviewRun.status", "ReviewRun.verdict", "ReviewBrain.gap"},
	"digests.md":    {"DigestWait.kind", "DigestRate.name"},
	"schedules.md":  {"Schedule.state", "Schedule.obstacle", "Schedule.last_outcome", "Schedule.when_busy"},
	"webhooks.md":   {"WebhookAttempt.status", "WebhookAttempt.type"},
	"sources.md":    {"Source.kind", "Source.state", "SourceReceipt.kind", "SourceReceipt.reason", "LinearIssue.state"},
	"github.md":     {"CodeHostDelivery.state", "IssuePolicy.triage"},
}

// The pages have every value that the API answers where people have to act on it.
func TestPagesHaveEveryValue(t *testing.T) {
	t.Parallel()
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []any }
			}
		}
	}
	if err := json.Unmarshal(docsPage(t, "openapi.json"), &api); err != nil {
		t.Fatal(err)
	}
	for page, members := range values {
		text := string(docsPage(t, page))
		for _, member := range members {
			schema, name, _ := strings.Cut(member, ".")
			all := api.Components.Schemas[schema].Properties[name].Enum
			if len(all) == 0 {
				t.Errorf("docs/openapi.json has no values of %s", member)
			}
			for _, v := range all {
				if s, ok := v.(string); ok && !says(text, s) && !says(text, strings.SplitAfter(s, ".")[0]+"KIND") {
					t.Errorf("docs/%s does not have %q, a value of %s", page, s, member)
				}
			}
		}
	}
}

// docs/trouble.md has every reason for which a task waits.
func TestPageHasEveryHold(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "domain", "task", "hold.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(docsPage(t, "trouble.md"))
	all := regexp.MustCompile(`(?m)^\tHold\w+ += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(all) < 10 {
		t.Fatalf("only %d reasons were found", len(all))
	}
	_, list, found := strings.Cut(text, "\n## Why a task waits\n")
	if !found {
		t.Fatal("docs/trouble.md has no list of the reasons")
	}
	reasons := []string{"box_unfit", "blocked", "budget_exhausted", "unpriced_model"} // are declared as failures
	for _, m := range all {
		reasons = append(reasons, m[1])
	}
	for _, reason := range reasons {
		if !says(list, reason) {
			t.Errorf("docs/trouble.md does not say why a task waits with %q", reason)
		}
	}
}

func docsPage(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// says tells whether a page has a word between backticks, or as a value in a block of
// YAML or in the comment behind one.
func says(page, word string) bool {
	w := regexp.QuoteMeta(word)
	inBlock := regexp.MustCompile(`(?m)^ *\w+: (?:.*#.*\b` + w + `\b|` + w + `(?: +#|$))`)
	return strings.Contains(page, "`"+word+"`") || inBlock.MatchString(page)
}
