package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
)

const hello = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}],"tools":[{"functionDeclarations":[{"name":"x"}]}]}`

func TestGeminiIsCarriedAndCounted(t *testing.T) {
	scenarios, err := scripted.ParseScenarios([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	var seen *http.Request
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		scripted.New(scenarios).ServeHTTP(w, r)
	})
	prices, err := llm.ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: google, family: big, input: 1, output: 10, cache_read: 0.5}, {provider: scripted, family: big, input: 1, output: 10, cache_read: 0.5}]"))
	if err != nil {
		t.Fatal(err)
	}
	cost := int64(10*1 + 4*10 + 1)
	for _, route := range []llm.Route{{Provider: llm.Google, BaseURL: far + "/v1beta/openai", Key: key, Model: "big"},
		{Provider: llm.Scripted, Model: "big"}} {
		d := &desk{route: route}
		url, logs := gateway(t, d, func(c *llm.Config) { c.Prices = prices })
		for action, stream := range map[string]bool{":generateContent": false, ":streamGenerateContent?alt=sse": true} {
			_, want := do(t, ask(t, far, "/v1beta/models/big"+action, hello))
			req := ask(t, url, "/v1beta/models/small"+action, hello)
			req.Header.Del("Authorization")
			req.Header.Set("X-Goog-Api-Key", token)
			resp, got := do(t, req)
			if d := cmp.Diff(want, got); d != "" || resp.StatusCode != 200 || !strings.Contains(got, "Hello there.") {
				t.Fatalf("%s: %d %s", action, resp.StatusCode, d)
			}
			u := d.recorded(t)
			if u.Reserved < cost {
				t.Errorf("%d set aside for a call of %d", u.Reserved, cost)
			}
			u.Duration, u.Reserved = 0, 0
			expect := llm.Usage{Tokens: llm.Tokens{InputTokens: 10, OutputTokens: 4, CacheReadTokens: 2},
				API: llm.Gemini, Model: "big", CostMicros: &cost, Status: 200, Streamed: stream}
			if d := cmp.Diff(expect, u); d != "" {
				t.Fatalf("%s %s: %s", route.Provider, action, d)
			}
			if route.Provider == llm.Google && (seen.Header.Get("X-Goog-Api-Key") != key ||
				seen.Header.Get("Authorization") != "" || seen.URL.Query().Get("key") != "") {
				t.Errorf("the provider was asked with %v at %s", seen.Header, seen.URL)
			}
		}
		resp, text := do(t, ask(t, url, "/v1beta/models/small:countTokens", hello))
		if resp.StatusCode != 200 || !strings.Contains(text, "totalTokens") || len(d.usage) != 0 {
			t.Fatal(resp.StatusCode, text, len(d.usage))
		}
		for _, secret := range []string{key, token} {
			if strings.Contains(logs.String(), secret) {
				t.Errorf("the log shows a secret: %s", logs)
			}
		}
	}
}

func TestGeminiRefusals(t *testing.T) {
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_KEY_INVALID"}]}}`)
	})
	stream, whole := "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:generateContent"
	for _, c := range []struct {
		name, path, body string
		provider         llm.Provider
		status           int
		reason           string
	}{
		{"a key that is none", whole, hello, llm.Google, 403, llm.SlugAuth},
		{"a provider of another API", whole, hello, llm.Anthropic, 400, "api_unsupported"},
		{"a stream that is no stream", "/v1beta/models/m:streamGenerateContent", hello, llm.Google, 400, ""},
		{"two models", stream, `{"model":"models/other","contents":[]}`, llm.Google, 400, ""},
		{"two caps", stream, `{"generationConfig":{"maxOutputTokens":5,"max_output_tokens":500000}}`, llm.Google, 400, ""},
		{"two configurations", stream, `{"generation_config":{},"generationConfig":{"maxOutputTokens":5}}`, llm.Google, 400, ""},
		{"a misspelt cap", stream, `{"generationConfig":{"MaxOutputTokens":5}}`, llm.Google, 400, ""},
		{"a prompt kept elsewhere", stream, `{"cachedContent":"cachedContents/1"}`, llm.Google, 400, ""},
		{"no object", stream, `[]`, llm.Google, 400, ""},
		{"another verb", "/v1beta/models/m:embedContent", hello, llm.Google, 404, ""},
		{"a way out", "/v1beta/models/../../v1/files:generateContent", hello, llm.Google, 404, ""},
	} {
		d := &desk{route: llm.Route{Provider: c.provider, BaseURL: far + "/v1beta/openai", Key: key}}
		url, _ := gateway(t, d, nil)
		resp, text := do(t, ask(t, url, c.path, c.body))
		if resp.StatusCode != c.status || strings.Contains(text, key) {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, text)
		}
		if c.status == 404 {
			continue // no API has this address
		}
		var said struct {
			Error struct {
				Code    int
				Message string
				Status  string
				Details []struct{ Reason string }
			}
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil || said.Error.Code != c.status || said.Error.Status == "" ||
			said.Error.Message == "" {
			t.Errorf("%s: %v %s", c.name, err, text)
		}
		if c.reason != "" && (len(said.Error.Details) != 1 || said.Error.Details[0].Reason != c.reason) {
			t.Errorf("%s: the reason is in %s", c.name, text)
		}
	}
}

// A budget limits a Gemini call like any other.
func TestGeminiIsCapped(t *testing.T) {
	var body string
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":4,"thoughtsTokenCount":6,"toolUsePromptTokenCount":5,"cachedContentTokenCount":10}}`)
	})
	prices, err := llm.ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: google, family: big, input: 0, output: 1, max_output: 60000}]"))
	if err != nil {
		t.Fatal(err)
	}
	left := int64(2000) // micro-dollars, and tokens at this price
	for in, want := range map[string]string{
		`{"contents":[]}`:                 `{"generationConfig":{"maxOutputTokens":2000},"contents":[]}`,
		`{}`:                              `{"generationConfig":{"maxOutputTokens":2000}}`,
		`{"generationConfig":null}`:       `{"generationConfig":{"maxOutputTokens":2000}}`,
		`{"generationConfig":{"topP":1}}`: `{"generationConfig":{"maxOutputTokens":2000,"topP":1}}`,
		`{"generationConfig":{}}`:         `{"generationConfig":{"maxOutputTokens":2000}}`,
		`{"generation_config":{"maxOutputTokens":9}}`:                        `{"generation_config":{"maxOutputTokens":9}}`,
		`{"generationConfig":{"max_output_tokens":5000,"candidateCount":1}}`: `{"generationConfig":{"max_output_tokens":2000,"candidateCount":1}}`,
		`{"generationConfig":{"candidateCount":2}}`:                          `{"generationConfig":{"maxOutputTokens":1000,"candidateCount":2}}`,
	} {
		d := &desk{route: llm.Route{Provider: llm.Google, BaseURL: far + "/v1beta", Key: key}, left: &left}
		url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = prices })
		if strings.Contains(in, "candidateCount\":2") {
			left = 2048 // enough for two answers with the least cap
			want = fmt.Sprintf(`{"generationConfig":{"maxOutputTokens":%d,"candidateCount":2}}`, left/2)
		} else {
			left = 2000
		}
		if resp, text := do(t, ask(t, url, "/v1beta/models/big:generateContent", in)); resp.StatusCode != 200 {
			t.Fatal(in, resp.StatusCode, text)
		}
		if body != want {
			t.Errorf("%s was sent as %s, want %s", in, body, want)
		}
		u := d.recorded(t)
		if want := (llm.Tokens{InputTokens: 25, OutputTokens: 10, CacheReadTokens: 10}); u.Tokens != want {
			t.Errorf("counted %+v, want %+v", u.Tokens, want)
		}
	}
	// Thinking gets less with the whole, and no less than it needs.
	left = 2000
	d := &desk{route: llm.Route{Provider: llm.Google, BaseURL: far + "/v1beta", Key: key}, left: &left}
	url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = prices })
	if resp, text := do(t, ask(t, url, "/v1beta/models/big:generateContent",
		`{"generationConfig":{"thinkingConfig":{"thinkingBudget":9000}}}`)); resp.StatusCode != 402 ||
		!strings.Contains(text, "budget_exhausted") {
		t.Error(resp.StatusCode, text)
	}
	left = 5000
	if resp, text := do(t, ask(t, url, "/v1beta/models/big:generateContent",
		`{"generationConfig":{"thinkingConfig":{"thinking_budget":9000}}}`)); resp.StatusCode != 200 ||
		body != `{"generationConfig":{"maxOutputTokens":5000,"thinkingConfig":{"thinking_budget":3976}}}` ||
		resp.Header.Get(llm.CapHeader) != "5000" {
		t.Error(resp.StatusCode, text, body, resp.Header)
	}
}

func TestNoModelIsRefused(t *testing.T) {
	far := provider(t, func(http.ResponseWriter, *http.Request) { t.Error("a call without a model was sent") })
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: far}}
	url, _ := gateway(t, d, nil)
	resp, text := do(t, ask(t, url, "/v1/chat/completions", `{"messages":[]}`))
	if resp.StatusCode != 422 || resp.Header.Get(llm.FaultHeader) != llm.SlugModel {
		t.Error(resp.StatusCode, text)
	}
}
