package llm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm"
)

// A provider that sends each call back to the gateway, with a token of the gateway
// as its key, ends in a refusal.
func TestCallsThatComeBackEnd(t *testing.T) {
	d := &desk{}
	url, _ := gateway(t, d, nil)
	d.route = llm.Route{Provider: llm.Compatible, BaseURL: url, Key: token}
	for range 2 { // the second call proves that the first was released
		resp, text := do(t, ask(t, url, "/v1/chat/completions", `{"model":"m"}`))
		if resp.StatusCode != 429 || !strings.Contains(text, "under way") {
			t.Fatal(resp.StatusCode, text)
		}
		for range 64 {
			if u := d.recorded(t); u.Status != 429 {
				t.Fatalf("%+v", u)
			}
		}
		if len(d.usage) > 0 {
			t.Fatal("more calls were made than one token has")
		}
	}
}

// The memory that the calls of one token occupy is bounded.
func TestLongPromptsAtOnceAreBounded(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-release
		io.WriteString(w, fine)
	})
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: far}}
	url, _ := gateway(t, d, nil)
	long := `{"model":"` + strings.Repeat("m", 30<<20) + `"}`
	status := make(chan int, 2)
	for range 2 {
		go func() {
			resp, _ := do(t, ask(t, url, "/v1/chat/completions", long))
			status <- resp.StatusCode
		}()
	}
	<-arrived
	<-arrived
	known := ask(t, url, "/v1/chat/completions", long)
	unknown := ask(t, url, "/v1/chat/completions", long)
	unknown.Body, unknown.ContentLength = io.NopCloser(strings.NewReader(long)), -1
	for name, req := range map[string]*http.Request{"known": known, "unknown": unknown} {
		// The refusal arrives before the server has read the body; a client may miss it.
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" {
			t.Error(name, resp.Status)
		}
	}
	select {
	case <-arrived:
		t.Fatal("a third one went through")
	default:
	}
	go func() { <-arrived }()
	small := make(chan int, 1)
	go func() {
		resp, _ := do(t, ask(t, url, "/v1/chat/completions", `{"model":"m"}`))
		small <- resp.StatusCode
	}()
	close(release)
	for range 2 {
		if s := <-status; s != 200 {
			t.Error(s)
		}
	}
	if s := <-small; s != 200 {
		t.Error("a short one:", s)
	}
	go func() { <-arrived }()
	if resp, text := do(t, ask(t, url, "/v1/chat/completions", long)); resp.StatusCode != 200 {
		t.Error("afterwards:", resp.StatusCode, text)
	}
}

// A cap under a name that the API does not know is refused.
func TestCapOfAnotherAPI(t *testing.T) {
	d := &desk{route: llm.Route{Provider: llm.Scripted}}
	url, _ := gateway(t, d, nil)
	for api, caps := range map[llm.API]map[string]int{
		llm.Chat:      {"max_tokens": 200, "max_completion_tokens": 200, "max_output_tokens": 400},
		llm.Responses: {"max_tokens": 400, "max_completion_tokens": 400, "max_output_tokens": 200},
		llm.Messages:  {"max_tokens": 200, "max_completion_tokens": 400, "max_output_tokens": 400},
	} {
		for name, status := range caps {
			body := strings.Replace(strings.Replace(calls[api].body, "%v", "false", 1), `"max_tokens":9,`, "", 1)
			body = `{"` + name + `":5,` + body[1:]
			if resp, text := do(t, ask(t, url, calls[api].path, body)); resp.StatusCode != status {
				t.Errorf("%s by %s: %d %s", api, name, resp.StatusCode, text)
			}
		}
	}
}

func TestCompressedAnswersAreRefused(t *testing.T) {
	far := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "\x1f\x8b...")
	})
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: far}}
	url, _ := gateway(t, d, nil)
	resp, text := do(t, ask(t, url, "/v1/messages", `{"model":"m"}`))
	if resp.StatusCode != 502 || !strings.Contains(text, "compressed") {
		t.Fatal(resp.StatusCode, text)
	}
	if u := d.recorded(t); u.Status != 502 || u.Fault != llm.SlugUnavailable {
		t.Fatalf("%+v", u)
	}
}
