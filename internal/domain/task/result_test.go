package task

import (
	"strings"
	"testing"
)

func TestResult(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"},"n":{"type":"integer"}},"additionalProperties":false}`
	for name, tc := range map[string]struct {
		report, kind, says, want string
	}{
		"valid":           {"Done.\n\n```json\n{\"ok\": true}\n```\n", "", "", `{"ok": true}`},
		"the last counts": {"```json\n{\"ok\": 1}\n```\nthen\n```json\n{\"ok\": false, \"n\": 3}\n```", "", "", `{"ok": false, "n": 3}`},
		"with CRLF":       {"```json\r\n{\"ok\": true}\r\n```\r\n", "", "", `{"ok": true}`},
		"none":            {"Done.", ReportMissing, "does not end with", ""},
		"another block":   {"```sh\nmake\n```", ReportMissing, "does not end with", ""},
		"no JSON":         {"```json\n{ok: true}\n```", AgentError, "is not JSON", ""},
		"missing":         {"```json\n{}\n```", AgentError, "ok", ""},
		"wrong type":      {"```json\n{\"ok\": \"yes\"}\n```", AgentError, "boolean", ""},
		"one too many":    {"```json\n{\"ok\": true, \"x\": 1}\n```", AgentError, "x", ""},
		"duplicate":       {"```json\n{\"ok\": true, \"ok\": false}\n```", AgentError, "is not JSON", ""},
		"a long one":      {"```json\n{\"" + strings.Repeat("é", 5000) + "\": 1}\n```", AgentError, "not valid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, kind, why := (&Row{ResultSchema: &schema}).Result(tc.report)
			if string(got) != tc.want || kind != tc.kind || !strings.Contains(why, tc.says) || len(why) > maxMismatch {
				t.Errorf("%s %q %q", got, kind, why)
			}
			if got, kind, _ := (&Row{}).Result(tc.report); got != nil || kind != "" {
				t.Errorf("without a schema: %s %s", got, kind)
			}
		})
	}
}
