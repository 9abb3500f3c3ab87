package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/proof/patience"
)

const (
	token = "dev_att_good"
	key   = "sk-canary-0123456789"
)

const script = `
scenarios:
  - name: hello
    match: hello
    steps:
      - {text: Hello there., usage: {input: 10, output: 4, cache_read: 2}}
`

// desk is the gateway's caller side: one valid token, one route, and a record of
// the usage.
type desk struct {
	mu    sync.Mutex
	route llm.Route
	more  []llm.Route // behind route
	deny  error
	usage chan llm.Usage
	asked []string
	left  *int64 // micro-dollars that calls may cost; nil: any amount
	spent string // a gift that pays for no more
}

func (d *desk) Reserve(_ context.Context, _ llm.Grant, over llm.Route, q llm.Quote) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.spent != "" && over.Lent.Gift == d.spent:
		return 0, fault.New(fault.PaymentRequired, llm.SlugQuota, "Nothing is left of it.")
	case d.left == nil:
		return q.Most, nil
	case *d.left < q.Least:
		return 0, fault.New(fault.PaymentRequired, "budget_exhausted", "There is no room.")
	}
	return min(*d.left, q.Most), nil
}

func (d *desk) Authorize(_ context.Context, t string, api llm.API, model string) (llm.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, string(api)+" "+model)
	if t != token {
		return llm.Grant{}, fault.New(fault.Unauthenticated, "", "This token is not known.")
	}
	return llm.Grant{Routes: append([]llm.Route{d.route}, d.more...), Session: "s1"}, d.deny
}

func (d *desk) Record(ctx context.Context, g llm.Grant, over llm.Route, u llm.Usage) {
	if g.Session != "s1" || !slices.Contains(g.Routes, over) || ctx.Err() != nil {
		panic("the recorder got another call's grant, or a dead context")
	}
	d.usage <- u
}

func (d *desk) recorded(t testing.TB) llm.Usage {
	t.Helper()
	return patience.Receive(t, "a record", d.usage)
}

// gateway serves a gateway; the buffer receives its log.
func gateway(t testing.TB, d *desk, change func(*llm.Config)) (url string, logs *bytes.Buffer) {
	t.Helper()
	d.usage = make(chan llm.Usage, 1000)
	logs = &bytes.Buffer{}
	scenarios, err := scripted.ParseScenarios([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	c := llm.Config{Authorizer: d, Reserver: d, Recorder: d, Now: time.Now, Scripted: scripted.New(scenarios),
		Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&c)
	}
	srv := httptest.NewServer(llm.NewGateway(c))
	t.Cleanup(srv.Close)
	return srv.URL, logs
}

func ask(t testing.TB, url, path, body string) *http.Request {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}

func do(t testing.TB, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// provider is a far peer with the given handler.
func provider(t testing.TB, h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

var calls = map[llm.API]struct{ path, body string }{
	llm.Messages: {"/v1/messages",
		`{"model":"small","stream":%v,"max_tokens":9,"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"x","input_schema":{}}]}`},
	llm.Chat: {"/v1/chat/completions",
		`{"model":"small","stream":%v,"messages":[{"role":"user","content":"hello"}],"tools":[{"function":{"name":"x"}}]}`},
	llm.Responses: {"/v1/responses", `{"model":"small","stream":%v,"input":"hello","tools":[{"type":"function","name":"x"}]}`},
}

func TestEveryAPIIsCarriedAndCounted(t *testing.T) {
	scenarios, err := scripted.ParseScenarios([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	far := provider(t, scripted.New(scenarios).ServeHTTP)
	prices, err := llm.ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: compatible, family: big, input: 1, output: 10, cache_read: 0.5}, {provider: scripted, family: big, input: 1, output: 10, cache_read: 0.5}]"))
	if err != nil {
		t.Fatal(err)
	}
	cost := int64(10*1 + 4*10 + 1)
	for _, route := range []llm.Route{{Provider: llm.Compatible, BaseURL: far, Model: "big"}, {Provider: llm.Scripted, Model: "big"}} {
		d := &desk{route: route}
		url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = prices })
		for api, c := range calls {
			for _, stream := range []bool{false, true} {
				body := fmt.Sprintf(c.body, stream)
				direct, want := do(t, ask(t, far, c.path, strings.Replace(body, "small", "big", 1)))
				resp, got := do(t, ask(t, url, c.path, body))
				if api == llm.Chat && stream { // the gateway asks for a count, so the ids differ
					_, want = do(t, ask(t, far, c.path,
						`{"stream_options":{"include_usage":true},`+strings.Replace(body, "small", "big", 1)[1:]))
				}
				if d := cmp.Diff(want, got); d != "" || resp.Header.Get("Content-Type") != direct.Header.Get("Content-Type") {
					t.Fatalf("%s: %s", api, d)
				}
				u := d.recorded(t)
				if u.Duration <= 0 {
					t.Error("it took no time")
				}
				if u.Reserved < cost {
					t.Errorf("%d set aside for a call of %d", u.Reserved, cost)
				}
				u.Duration, u.Reserved = 0, 0
				expect := llm.Usage{Tokens: llm.Tokens{InputTokens: 10, OutputTokens: 4, CacheReadTokens: 2},
					API: api, Model: "big", CostMicros: &cost, Status: 200, Streamed: stream}
				if d := cmp.Diff(expect, u); d != "" {
					t.Fatalf("%s %s stream %v: %s", route.Provider, api, stream, d)
				}
			}
		}
		resp, text := do(t, ask(t, url, "/v1/messages/count_tokens", `{"model":"small","messages":[]}`))
		if resp.StatusCode != 200 || !strings.Contains(text, "input_tokens") {
			t.Fatal(text)
		}
		if resp, text = do(t, ask(t, url, "/v1/models", "")); resp.StatusCode != 200 || !strings.Contains(text, "scripted-1") {
			t.Fatal(text)
		}
		if len(d.usage) != 0 {
			t.Fatal("a free call was recorded")
		}
	}
}

// fine is a whole answer of each API.
const fine = `{"type":"message","content":[],"object":"response","status":"completed","choices":[{"message":{"content":"Well."},"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"completion_tokens":10,"input_tokens":250,"output_tokens":10}}`

func TestTokenAndKeyAreSwapped(t *testing.T) {
	var seen *http.Request
	var body []byte
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "session="+key)
		w.Header().Set("Openai-Organization", "org-of-the-account")
		w.Header().Set("X-Request-Id", "req_1")
		io.WriteString(w, fine)
	})
	for _, c := range []struct {
		route llm.Route
		api   llm.API
		path  string
		want  map[string]string
	}{
		{llm.Route{Provider: llm.Anthropic, BaseURL: far}, llm.Messages, "/v1/messages",
			map[string]string{"X-Api-Key": key, "Anthropic-Version": "2023-06-01"}},
		{llm.Route{Provider: llm.OpenAI, BaseURL: far + "/v1/"}, llm.Responses, "/v1/responses",
			map[string]string{"Authorization": "Bearer " + key}},
		{llm.Route{Provider: llm.Google, BaseURL: far + "/v1beta/openai"}, llm.Chat, "/v1beta/openai/chat/completions",
			map[string]string{"Authorization": "Bearer " + key}},
		{llm.Route{Provider: llm.OpenRouter, BaseURL: far + "/api/v1"}, llm.Messages, "/api/v1/messages",
			map[string]string{"Authorization": "Bearer " + key, "Anthropic-Version": "2023-06-01"}},
		{llm.Route{Provider: llm.Compatible, BaseURL: far + "/llm"}, llm.Chat, "/llm/v1/chat/completions",
			map[string]string{"Authorization": "Bearer " + key}},
	} {
		c.route.Key = key
		url, logs := gateway(t, &desk{route: c.route}, nil)
		req := ask(t, url, calls[c.api].path, `{"model":"as asked"}`)
		req.Header = http.Header{"X-Api-Key": {token}, "Cookie": {"a=b"}, "X-Forwarded-For": {"10.0.0.1"},
			"Openai-Organization": {"theirs"},
			"User-Agent":          {"agent/1"}, "Content-Type": {"application/json"}, "Anthropic-Beta": {"some-2025"},
			"Connection": {"close"}}
		resp, text := do(t, req)
		if resp.StatusCode != 200 {
			t.Fatal(text)
		}
		got := map[string]string{}
		for name, v := range seen.Header {
			got[name] = v[0]
		}
		c.want["User-Agent"], c.want["Content-Type"], c.want["Anthropic-Beta"] = "agent/1", "application/json", "some-2025"
		c.want["Accept-Encoding"], c.want["Content-Length"] = "identity", got["Content-Length"]
		if d := cmp.Diff(c.want, got); d != "" || seen.URL.Path != c.path || string(body) != `{"model":"as asked"}` {
			t.Errorf("%s: %s %s %s", c.route.Provider, seen.URL.Path, body, d)
		}
		if all := fmt.Sprint(resp.Header, text, logs); strings.Contains(all, key) || strings.Contains(all, "org-of") ||
			resp.Header.Get("X-Request-Id") != "req_1" {
			t.Errorf("the caller or the log saw %s", all)
		}
	}
}

func TestUpstreamErrors(t *testing.T) {
	var answer func(w http.ResponseWriter)
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answer(w)
	})
	host := strings.TrimPrefix(far, "http://")
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   int
		fault  string
		says   string
	}{
		{"key refused", 401, `{"error":{"message":"Incorrect API key provided: ` + key + `. See http://` + host + `"}}`, 403,
			llm.SlugAuth, "refused the account's key"},
		{"key not allowed", 403, `{"error":{"message":"forbidden"}}`, 403, llm.SlugAuth, "refused the account's key"},
		{"rate limit", 429, `{"error":{"message":"slow down ` + key + `","type":"tokens","code":"rate_limit_exceeded"}}`, 429,
			llm.SlugRateLimit, "slow down [key]"},
		{"no quota", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, 402, "provider_quota",
			"no quota left"},
		{"no credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`,
			402, llm.SlugQuota, "no quota left"},
		{"payment", 402, ``, 402, llm.SlugQuota, "no quota left"},
		{"bad request", 400, `{"error":{"message":"prompt is too long","type":"invalid_request_error","code":"context_length_exceeded"}}`,
			400, "", "prompt is too long"},
		{"no such model", 404, `{"error":{"message":"no model x"}}`, 404, llm.SlugModel, "no model x"},
		{"broken", 500, `<html>nginx at ` + host + ` with ` + key + `</html>`, 500, llm.SlugUnavailable, "answered 500"},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded at ` + host + `"}}`, 529,
			llm.SlugUnavailable, "Overloaded at [provider]"},
		{"redirect", 302, ``, 502, llm.SlugUnavailable, "redirect"},
	} {
		for api, call := range calls {
			t.Run(c.name+" "+string(api), func(t *testing.T) {
				answer = func(w http.ResponseWriter) {
					w.Header().Set("Location", "http://"+host+"/"+key)
					w.Header().Set("Retry-After", "7")
					w.Header().Set(llm.FaultHeader, "made-up")
					w.WriteHeader(c.status)
					io.WriteString(w, c.body)
				}
				d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: far, Key: key}}
				url, logs := gateway(t, d, nil)
				resp, text := do(t, ask(t, url, call.path, fmt.Sprintf(call.body, true)))
				var said struct {
					Type  string
					Error struct{ Type, Code, Message string }
				}
				if err := json.Unmarshal([]byte(text), &said); err != nil {
					t.Fatal(err, text)
				}
				if resp.StatusCode != c.want || resp.Header.Get(llm.FaultHeader) != c.fault ||
					!strings.Contains(said.Error.Message, c.says) ||
					said.Error.Type == "" || (said.Type == "error") != (api == llm.Messages) || resp.Header.Get("Retry-After") != "7" {
					t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
				}
				u := d.recorded(t)
				if u.Status != c.want || u.Fault != c.fault || u.Tokens != (llm.Tokens{}) || u.Aborted {
					t.Errorf("recorded %+v", u)
				}
				if all := fmt.Sprint(resp.Header, text); strings.Contains(all+logs.String(), key) || strings.Contains(all, host) {
					t.Errorf("the caller or the log saw %s %s", all, logs)
				}
			})
		}
	}
}

func TestUnreachableProvider(t *testing.T) {
	srv := httptest.NewServer(nil)
	address := srv.URL
	srv.Close()
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: address, Key: key}}
	url, logs := gateway(t, d, nil)
	resp, text := do(t, ask(t, url, "/v1/responses", `{"model":"m"}`))
	if resp.StatusCode != 502 || resp.Header.Get(llm.FaultHeader) != llm.SlugUnavailable || strings.Contains(text, address[7:]) ||
		strings.Contains(logs.String(), key) {
		t.Fatal(resp, text)
	}
	if u := d.recorded(t); !u.Aborted || u.Status != 502 || u.Fault != llm.SlugUnavailable {
		t.Fatalf("%+v", u)
	}
}

func TestRefusals(t *testing.T) {
	ok := `{"model":"m"}`
	anthropic := llm.Route{Provider: llm.Anthropic, BaseURL: "http://127.0.0.1:1"}
	for _, c := range []struct {
		name, method, path, token, body string
		route                           llm.Route
		deny                            error
		status                          int
		says                            string
	}{
		{"no token", "POST", "/v1/messages", "", ok, anthropic, nil, 401, `"authentication_error"`},
		{"unknown token", "POST", "/v1/messages", "dev_att_other", ok, anthropic, nil, 401, "not known"},
		{"denied", "POST", "/v1/messages", token, ok, anthropic,
			fault.New(fault.PaymentRequired, "budget-exhausted", "The budget is spent."), 402, `"budget-exhausted"`},
		{"our own fault", "POST", "/v1/messages", token, ok, anthropic, fmt.Errorf("db at %s is down", key), 500, "our side"},
		{"other API", "POST", "/v1/chat/completions", token, ok, anthropic, nil, 400, "does not speak"},
		{"method", "GET", "/v1/messages", token, "", anthropic, nil, 405, "Use POST"},
		{"path", "POST", "/v1/embeddings", token, ok, anthropic, nil, 404, "no such address"},
		{"no JSON", "POST", "/v1/messages", token, "model: m", anthropic, nil, 400, "not a JSON object"},
		{"two models", "POST", "/v1/messages", token, `{"model":"a","model":"b"}`, anthropic, nil, 400, "twice"},
		{"too large", "POST", "/v1/messages", token, `{"model":"` + strings.Repeat("m", 2000) + `"}`, anthropic, nil, 413,
			"larger than 1000 bytes"},
		{"no address", "POST", "/v1/chat/completions", token, ok, llm.Route{Provider: llm.Compatible}, nil, 503, "no usable address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := gateway(t, &desk{route: c.route, deny: c.deny}, func(c *llm.Config) { c.MaxBody = 1000 })
			req, err := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.token != "" {
				req.Header.Set("X-Api-Key", c.token)
			}
			resp, text := do(t, req)
			if resp.StatusCode != c.status || !strings.Contains(text, c.says) || strings.Contains(text, key) {
				t.Fatal(resp.StatusCode, text)
			}
		})
	}
	url, _ := gateway(t, &desk{route: anthropic}, func(c *llm.Config) { c.MaxBody = 1000 })
	req := ask(t, url, "/v1/messages", "x")
	req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"a":"`), bytes.NewReader(make([]byte, 5000)))), -1
	if resp, _ := do(t, req); resp.StatusCode != 413 {
		t.Fatal("a body of unknown length:", resp.StatusCode)
	}
	// An unknown caller gets an answer without sending a body.
	body, never := io.Pipe()
	req = ask(t, url, "/v1/messages", "")
	req.Header.Set("Authorization", "Bearer dev_att_other")
	req.Body, req.ContentLength = body, -1
	if resp, _ := do(t, req); resp.StatusCode != 401 {
		t.Fatal("a stranger's body was waited for:", resp.StatusCode)
	}
	never.Close()
	req = ask(t, url, "/v1/messages", ok)
	req.Header.Set("Content-Encoding", "zstd")
	if resp, _ := do(t, req); resp.StatusCode != 415 {
		t.Fatal(resp.StatusCode)
	}
}

func TestProbe(t *testing.T) {
	var path, auth string
	status := 200
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.RequestURI(), r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")
		w.WriteHeader(status)
		io.WriteString(w, `{"data":[{"id":"models/b"},{"id":"a"}],"error":{"message":"no `+key+`"}}`)
	})
	scenarios, err := scripted.ParseScenarios([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	p := llm.Probe{Scripted: scripted.New(scenarios)}
	ctx := t.Context()
	models, err := p.Models(ctx, llm.Route{Provider: llm.Anthropic, BaseURL: far, Key: key})
	if err != nil || fmt.Sprint(models) != "[a b]" || path != "/v1/models?limit=1000" || auth != key {
		t.Fatal(models, err, path, auth)
	}
	if _, err := p.Models(ctx, llm.Route{Provider: llm.OpenRouter, BaseURL: far + "/api/v1", Key: key}); err != nil ||
		path != "/api/v1/models" || auth != "Bearer "+key {
		t.Fatal(err, path, auth)
	}
	if err := p.Check(ctx, llm.Route{Provider: llm.OpenRouter, BaseURL: far + "/api/v1", Key: key}); err != nil || path != "/api/v1/key" {
		t.Fatal(err, path) // everybody may list its models
	}
	for s, slug := range map[int]string{401: llm.SlugAuth, 402: llm.SlugQuota, 429: llm.SlugRateLimit, 503: llm.SlugUnavailable} {
		status = s
		_, err := p.Models(ctx, llm.Route{Provider: llm.OpenAI, BaseURL: far, Key: key})
		if f := fault.From(err); err == nil || f.Slug != slug || strings.Contains(err.Error(), key) {
			t.Errorf("%d: %v", s, err)
		}
	}
	if models, err := p.Models(ctx, llm.Route{Provider: llm.Scripted}); err != nil || fmt.Sprint(models) != "[scripted-1]" {
		t.Fatal(models, err)
	}
	if _, err := p.Models(ctx, llm.Route{Provider: llm.Compatible}); err == nil {
		t.Fatal("a route without an address was asked")
	}
}
