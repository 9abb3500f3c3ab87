package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/mcp"
)

// FuzzFrame holds that the answer to any message is one JSON-RPC message, a
// problem, or empty with 202, and never an internal error.
func FuzzFrame(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`,
		`{"jsonrpc": "2.0", "method": "notifications/initialized"}`,
		`{"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}`,
		`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "thing.get", "arguments": {"owner": "o", "tags": ["a"], ` +
			`"count": 3}}}`,
		`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "thing_set_name", "arguments": {"owner": "o/../x", "name": ` +
			`"\u0000", "conversation_ref": 1}}}`,
		`{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}`, `{"jsonrpc": "2.0", "id": null, "result": 1}`, `[]`, `[[`, `1`, ``, "\xff",
		`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}`,
	} {
		f.Add([]byte(body), "")
		f.Add([]byte(body), "2026-07-28")
	}
	h := things(nil)
	f.Fuzz(func(t *testing.T, body []byte, revision string) {
		req := httptest.NewRequest("POST", mcp.Path, strings.NewReader(string(body)))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + both}}
		if revision != "" {
			req.Header.Set("Mcp-Protocol-Version", revision)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Fatalf("%q is answered %d %s", body, w.Code, w.Body)
		}
		if w.Code == http.StatusAccepted {
			if w.Body.Len() > 0 {
				t.Errorf("%q: 202 with %s", body, w.Body)
			}
			return
		}
		var m struct {
			JSONRPC string
			Result  json.RawMessage
			Error   *struct{ Code int }
			Type    string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatalf("%q is answered %q: %v", body, w.Body, err)
		}
		if m.Type == "" && (m.JSONRPC != "2.0" || (m.Result == nil) == (m.Error == nil)) {
			t.Errorf("%q is answered %s", body, w.Body)
		}
	})
}
