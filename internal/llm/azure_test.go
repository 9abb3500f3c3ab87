package llm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"yardmaster/internal/llm"
)

// A call to Azure goes to a deployment, in a version of the API, with the key in Azure's header.
func TestAzureCalls(t *testing.T) {
	var seen []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
		if r.Method == "GET" {
			io.WriteString(w, `{"data":[{"id":"gpt-4o"}]}`)
			return
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
	}))
	defer far.Close()
	for _, base := range []string{far.URL, far.URL + "/openai/"} {
		seen = nil
		route := llm.Route{Provider: llm.Azure, BaseURL: base, Key: key, Model: "d1"}
		d := &desk{route: route}
		url, _ := gateway(t, d, nil)
		resp, text := do(t, ask(t, url, "/v1/chat/completions", `{"model":"m"}`))
		if u := d.recorded(t); resp.StatusCode != 200 || u.InputTokens != 8 || u.OutputTokens != 2 {
			t.Errorf("%d %s %+v", resp.StatusCode, text, u)
		}
		models, err := llm.Probe{}.Models(t.Context(), route)
		if err != nil || !slices.Equal(models, []string{"gpt-4o"}) {
			t.Errorf("%q %v", models, err)
		}
		want := []string{"POST /openai/deployments/d1/chat/completions?api-version=2024-10-21 " + key,
			"GET /openai/models?api-version=2024-10-21 " + key}
		if !slices.Equal(seen, want) {
			t.Errorf("%q", seen)
		}
	}
	d := &desk{route: llm.Route{Provider: llm.Azure, BaseURL: far.URL, Key: key, Model: "../../x"}}
	url, _ := gateway(t, d, nil)
	if resp, text := do(t, ask(t, url, "/v1/chat/completions", `{}`)); resp.StatusCode != 503 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
