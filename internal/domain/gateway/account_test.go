package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/frames"
	"yardmaster/internal/proof/seed"
)

// detour leads calls to one address, whichever provider they are for.
type detour struct {
	http.RoundTripper
	to atomic.Pointer[url.URL] // nil: calls go where they are to
}

func (d *detour) RoundTrip(r *http.Request) (*http.Response, error) {
	if to := d.to.Load(); to != nil {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	}
	return d.RoundTripper.RoundTrip(r)
}

// answerOf is an answer in the form of an API, of a thousand tokens in and a hundred out.
func answerOf(api llm.API, stream bool) string {
	events := func(all ...string) string { return "data: " + strings.Join(all, "\n\ndata: ") + "\n\n" }
	switch api {
	case llm.Messages:
		if !stream {
			return `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn",
				"usage":{"input_tokens":1000,"output_tokens":100}}`
		}
		return events(`{"type":"message_start","message":{"usage":{"input_tokens":1000,"output_tokens":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi."}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":100}}`, `{"type":"message_stop"}`)
	case llm.Chat:
		const usage = `"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"cost":0}`
		if !stream {
			return `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],` + usage + `}`
		}
		return events(`{"choices":[{"index":0,"delta":{"content":"Hi."}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"choices":[],`+usage+`}`, `[DONE]`)
	case llm.Responses:
		const done = `"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi."}]}],
			"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`
		if !stream {
			return `{"object":"response",` + done
		}
		return events(`{"type":"response.output_text.delta","delta":"Hi."}`,
			strings.ReplaceAll(`{"type":"response.completed","response":{`+done+`}`, "\n", " "))
	}
	const one = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100}}`
	if stream {
		return events(one)
	}
	return one
}

// inFrames writes events as Bedrock sends them.
func inFrames(t *testing.T, w io.Writer, events string) {
	out := eventstream.NewEncoder()
	for _, e := range strings.Split(strings.TrimSpace(events), "\n\n") {
		payload, err := json.Marshal(map[string][]byte{"bytes": []byte(strings.TrimPrefix(e, "data: "))})
		if err != nil {
			t.Error(err)
		}
		m := eventstream.Message{Payload: payload}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue("chunk"))
		if err := out.Encode(w, m); err != nil {
			return // the caller has gone
		}
	}
}

// everyAPI is a peer that answers in the form that a call has.
func everyAPI(t *testing.T) *url.URL {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		api, stream := llm.Gemini, strings.Contains(string(body), `"stream":true`)
		for _, a := range []struct {
			api  llm.API
			path string
		}{{llm.Messages, "/messages"}, {llm.Chat, "/chat/completions"}, {llm.Responses, "/responses"}} {
			if strings.HasSuffix(r.URL.Path, a.path) {
				api = a.api
			}
		}
		stream = stream || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
		switch {
		case strings.HasSuffix(r.URL.Path, "/invoke"):
			api = llm.Messages
		case strings.HasSuffix(r.URL.Path, "/invoke-with-response-stream"):
			w.Header().Set("Content-Type", frames.Type)
			inFrames(t, w, answerOf(llm.Messages, true))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		io.WriteString(w, answerOf(api, stream))
	}))
	t.Cleanup(far.Close)
	to, err := url.Parse(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// callOf is a call in the form of an API.
func callOf(api llm.API, stream bool) (path, body string) {
	switch api {
	case llm.Messages:
		return "/v1/messages",
			fmt.Sprintf(`{"model":"small","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
	case llm.Chat:
		return "/v1/chat/completions",
			fmt.Sprintf(`{"model":"small","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
	case llm.Responses:
		return "/v1/responses", fmt.Sprintf(`{"model":"small","max_output_tokens":50,"stream":%v,"input":"hi"}`, stream)
	}
	body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":50}}`
	if stream {
		return "/v1beta/models/small:streamGenerateContent?alt=sse", body
	}
	return "/v1beta/models/small:generateContent", body
}

// limits are those of budgets, in the order of their scopes.
var limits = []string{budget.Account, budget.Member, budget.Plan, budget.Task, budget.OwnWork, budget.Run, budget.Key}

// limited begins a session for which one limit of a dollar holds, and no other one.
func (f *fixture) limited(scope, key string) (session string) {
	f.t.Helper()
	session = id.New()
	person, plan, task, run := id.New(), id.New(), id.New(), id.New()
	dollar, of := int64(1_000_000), seed.Task{ID: task, Account: "acme", Repo: "repo", By: &person}
	kind := "review"
	switch scope {
	case budget.Task:
		of.Budget = &dollar
	case budget.OwnWork:
		of.Budget, kind = &dollar, "work"
	}
	f.write(func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.User{ID: person}, seed.Member{Account: "acme", User: person},
			seed.Plan{ID: plan, Account: "acme", Repo: "repo"}, of,
			seed.Run{ID: run, Account: "acme", Task: task, Repo: "repo", Box: "box"},
			seed.Session{ID: session, Account: "acme", Repo: "repo", Kind: kind, Run: &run, Task: &task, By: &person}); err != nil {
			return err
		}
		_, err := seed.SetPlan.Exec(tx, task, nil, plan)
		return err
	})
	f.runLimit = nil
	f.api(200, "PUT", "/v1/billing/spend-cap", `{"usd":null}`, nil)
	f.api(200, "PUT", "/v1/billing/keys/"+key+"/budget", `{"usd":null}`, nil)
	switch scope {
	case budget.Key:
		var now budget.KeyCap
		f.api(200, "PUT", "/v1/billing/keys/"+key+"/budget", `{"usd":null}`, &now)
		f.api(200, "PUT", "/v1/billing/keys/"+key+"/budget", fmt.Sprintf(`{"usd":%.2f}`, f.dollars(now.Spent)+1), nil)
	case budget.Account:
		var now budget.SpendCap
		f.api(200, "GET", "/v1/billing/spend-cap", "", &now)
		f.api(200, "PUT", "/v1/billing/spend-cap", fmt.Sprintf(`{"usd":%.2f}`, f.dollars(now.Spent)+1), nil)
	case budget.Member:
		f.api(200, "PUT", "/v1/billing/spend-cap/members/"+person, `{"usd":1}`, nil)
	case budget.Plan:
		f.api(200, "PUT", "/v1/plans/"+plan+"/budget", `{"usd":1}`, nil)
	case budget.Run:
		f.runLimit = &dollar
	}
	return session
}

func (f *fixture) dollars(text string) (usd float64) {
	f.t.Helper()
	if _, err := fmt.Sscan(text, &usd); err != nil {
		f.t.Fatal(err)
	}
	return usd
}

// TestA04EveryAPICountsForEveryLimit: whichever API a call has and whoever answers it, whole or
// streamed, its cost moves each limit that it counts for, and stops at it.
func TestA04EveryAPICountsForEveryLimit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.detour.to.Store(everyAPI(t))
		f.write(func(tx *db.Tx) error { return seed.Add(tx, seed.Box{ID: "box", Account: "acme"}) })
		seen := map[llm.API]int{}
		for _, p := range llm.Providers() {
			body := `{"provider":"` + string(p) + `"`
			switch {
			case p == llm.Bedrock:
				body += `,"key":"eu-central-1:AKIA0123456789abcdef:secret-0123456789abcdef"`
			case !p.Local():
				body += `,"key":"key-0123456789abcdef"`
			}
			if p.Addressed() {
				body += `,"base_url":"` + f.detour.to.Load().String() + `/v1","model":"small"`
			}
			key := f.addKey(body + `}`).ID
			f.api(200, "PUT", "/v1/billing/prices", `{"provider":"`+string(p)+`","model":"small","input_usd":1000,"output_usd":1000}`, nil)
			for _, api := range []llm.API{llm.Messages, llm.Chat, llm.Responses, llm.Gemini} {
				if !p.Speaks(api) {
					continue
				}
				for _, scope := range limits {
					seen[api]++
					f.stopsAt(scope, key, p, api, true)
				}
				f.stopsAt(budget.Account, key, p, api, false)
			}
		}
		if seen[llm.Messages] < 4*len(limits) || seen[llm.Gemini] < 2*len(limits) {
			t.Errorf("walked over %v", seen)
		}
	})
}

// stopsAt makes calls until a limit of a dollar stops them.
func (f *fixture) stopsAt(scope, key string, p llm.Provider, api llm.API, stream bool) {
	f.t.Helper()
	session := f.limited(scope, key)
	f.mu.Lock()
	f.attempt = &Attempt{SessionID: session, AccountID: "acme", RunID: "run", Provider: string(p), Model: "small"}
	if p.Addressed() {
		f.attempt.BaseURL = f.detour.to.Load().String() + "/v1"
	}
	f.mu.Unlock()
	f.later(2 * time.Second) // forget the grant
	path, body := callOf(api, stream)
	var cost string
	most := 2 // of a dollar, where the answer costs more
	if p.Local() {
		most = 400
	}
	for n := range most {
		req := httptest.NewRequestWithContext(context.Background(), "POST", path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer tok")
		rec := httptest.NewRecorder()
		f.caller.Gateway.ServeHTTP(rec, req)
		s := f.get(session)
		if s.CostUSD != nil {
			cost = *s.CostUSD
		}
		switch {
		case n == 0 && (rec.Code != 200 || s.Calls != 1):
			f.t.Errorf("%s of %s, streamed %v, limit of %s: %d %s", api, p, stream, scope, rec.Code, rec.Body)
			return
		case rec.Code == 402 && rec.Header().Get(llm.FaultHeader) == budget.SlugExhausted:
			if cost == "" || cost == "0.00" || !p.Local() && cost != "1.10" {
				f.t.Errorf("%s of %s, streamed %v: cost %q", api, p, stream, cost)
			}
			return
		case rec.Code != 200:
			f.t.Errorf("%s of %s, streamed %v, limit of %s: %d %s", api, p, stream, scope, rec.Code, rec.Body)
			return
		}
	}
	f.t.Errorf("%s of %s, streamed %v: the limit of %s did not move in %d calls, which cost %q", api, p, stream, scope, most, cost)
}
