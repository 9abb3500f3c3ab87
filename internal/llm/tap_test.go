package llm_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/proof/patience"
)

// taps keeps copies of all calls.
type taps struct {
	mu    sync.Mutex
	off   bool
	asked int
	ended chan *copied
}

type copied struct {
	llm.Tapped
	of     *taps
	status int
	media  string
	answer []byte
	usage  llm.Usage
}

func (k *taps) Keep(g llm.Grant, t llm.Tapped) llm.Copy {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked++; k.off || g.Session != "s1" {
		return nil
	}
	t.Body = append([]byte{}, t.Body...)
	return &copied{Tapped: t, of: k}
}

func (k *taps) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

func (c *copied) Begun(status int, media string) {
	if c.status != 0 {
		panic("an answer has begun twice")
	}
	c.status, c.media = status, media
}
func (c *copied) Answer(p []byte) { c.answer = append(c.answer, p...) }
func (c *copied) Ended(u llm.Usage) {
	c.usage = u
	c.of.ended <- c
}

// A tap gets of each billed call what the caller has sent and got, and what it has cost.
func TestTap(t *testing.T) {
	t.Parallel()
	scenarios, err := scripted.ParseScenarios([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	far := provider(t, scripted.New(scenarios).ServeHTTP)
	down := provider(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) })
	broken := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Well\"}}\n\n"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	k := &taps{ended: make(chan *copied, 10)}
	for _, route := range []llm.Route{{Provider: llm.Compatible, BaseURL: far, Model: "big"}, {Provider: llm.Scripted, Model: "big"}} {
		d := &desk{route: route}
		url, _ := gateway(t, d, func(c *llm.Config) { c.Tap = k })
		for api, c := range calls {
			for _, stream := range []bool{false, true} {
				body := fmt.Sprintf(c.body, stream)
				resp, got := do(t, ask(t, url, c.path, body))
				kept := patience.Receive(t, "a copy", k.ended)
				if d := cmp.Diff(got, string(kept.answer)); d != "" || kept.status != 200 || kept.media != resp.Header.Get("Content-Type") {
					t.Errorf("%s: %d %s %s", api, kept.status, kept.media, d)
				}
				if string(kept.Body) != body || kept.API != api || kept.Model != "big" || kept.Token != token ||
					kept.Provider != route.Provider {
					t.Errorf("%s: %+v", api, kept.Tapped)
				}
				if d := cmp.Diff(d.recorded(t), kept.usage); d != "" {
					t.Errorf("%s: %s", api, d)
				}
			}
		}
		asked := k.count()
		do(t, ask(t, url, "/v1/messages/count_tokens", `{"model":"small","messages":[]}`))
		do(t, ask(t, url, "/v1/models", ""))
		if k.count() != asked {
			t.Error("a free call is kept")
		}
	}
	c := calls[llm.Messages]
	for _, address := range []string{down, broken} {
		d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: address}}
		url, _ := gateway(t, d, func(c *llm.Config) { c.Tap = k })
		resp, err := http.DefaultClient.Do(ask(t, url, c.path, fmt.Sprintf(c.body, true)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		kept := patience.Receive(t, "a copy of a call that fails", k.ended)
		if kept.status != resp.StatusCode || kept.usage.Fault == "" && !kept.usage.Aborted ||
			address == broken && !strings.Contains(string(kept.answer), "Well") {
			t.Errorf("%d %+v: %s", kept.status, kept.usage, kept.answer)
		}
	}
	k.mu.Lock()
	k.off = true
	k.mu.Unlock()
	url, _ := gateway(t, &desk{route: llm.Route{Provider: llm.Scripted}}, func(c *llm.Config) { c.Tap = k })
	if resp, text := do(t, ask(t, url, c.path, fmt.Sprintf(c.body, true))); resp.StatusCode != 200 || len(k.ended) != 0 {
		t.Errorf("a call that nobody keeps: %s", text)
	}
}
