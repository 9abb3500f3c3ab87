package client

import (
	"strings"
	"testing"
)

// What a tool prints keeps its shape: indentation, tabs, empty lines. A call is shown by the command that it runs,
// also where the agent says that later than its name, and one that failed says so, with its exit code.
func TestToolsAreShownAsTheyRan(t *testing.T) {
	for name, c := range map[string]struct {
		updates []string
		want    string
	}{
		"indented": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"python3 -m unittest"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","_meta":{"terminal_output_delta":{"data":"Traceback:\n  File \"a.py\"\n\n\tx = 1\n"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","_meta":{"terminal_exit":{"exit_code":1}}}`},
			"  run       tool: python3 -m unittest\n  output    Traceback:\n  output      File \"a.py\"\n  output\n  output            x = 1\n" +
				"  failed    failed, exit 1\n"},
		"named later": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"bash","kind":"execute"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"make","rawInput":{"command":"make all","cwd":"/task"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","rawInput":{"command":"make all"},"content":[{"type":"content","content":{"text":"one\n"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","content":[{"type":"content","content":{"text":"one\ntwo"}}],"status":"completed","rawOutput":{"exitCode":2}}`},
			"  run       tool: bash\n  run       tool: make all\n  output    one\n  output    two\n  failed    failed, exit 2\n"},
		"titled later": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"edit","kind":"edit"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"src/a.py"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"src/a.py","status":"completed"}`},
			"  run       tool: edit\n  run       tool: src/a.py\n"},
		"a command keeps its name": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"make","rawInput":{"command":"make all"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Builds it","status":"completed"}`},
			"  run       tool: make all\n"},
		"refused": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Create a.md","rawInput":{"path":"a.md"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`},
			"  run       tool: Create a.md\n  failed    failed: Create a.md\n"},
		"well": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","rawInput":{"command":["go","test"]}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"exit_code":0}}`},
			"  run       tool: go test\n"},
	} {
		var out strings.Builder
		w := Print(&out, 0)
		for _, u := range c.updates {
			w.Event(Task{}, Event{Kind: "agent.update", Data: []byte(u)})
		}
		if out.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, out.String(), c.want)
		}
	}
}
