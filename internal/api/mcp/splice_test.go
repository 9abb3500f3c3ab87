package mcp

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestListIsSpliced holds that the tools, which are long, are not encoded again for
// each list.
func TestListIsSpliced(t *testing.T) {
	l := listed{settled{ResultType: "complete"}, jsontext.Value(`[{"a": 1}]`)}
	got, ok := l.splice(response{JSONRPC: "2.0", ID: jsontext.Value("7")}).([]byte)
	if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","tools":[{"a": 1}]}}`; !ok || string(got) != want {
		t.Errorf("%t %s", ok, got)
	}
}
