package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/llm"
	"yardmaster/internal/llm/answer"
	"yardmaster/internal/proof/recorded"
)

// well answers every call of every API whole.
func well(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, fine)
}

// TestA08FailOverBeforeTheFirstByte: what is the route's fault goes on to the next route
// within the call, and what is the call's own goes back to the caller. Each try has a record,
// in which what was set aside for it comes back.
func TestA08FailOverBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	good := provider(t, well)
	for _, x := range []struct {
		name  string
		first http.HandlerFunc
		on    bool // the next route serves the call
	}{
		{"408", says(408, `{"error":{"message":"timeout"}}`), true},
		{"429", says(429, `{"error":{"message":"slow down"}}`), true},
		{"a week", says(429, `{"error":{"type":"insufficient_quota","message":"your weekly limit is used up"}}`), true},
		{"500", says(500, `{"error":{"message":"oops"}}`), true},
		{"502", says(502, `<html>bad gateway</html>`), true},
		{"503", says(503, ``), true},
		{"529", says(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), true},
		{"401", says(401, `{"error":{"message":"no such key"}}`), true},
		{"402", says(402, `{"error":{"message":"pay first"}}`), true},
		{"403", says(403, `{"error":{"message":"revoked"}}`), true},
		{"a page", says(200, `<html>login</html>`), true},
		{"a reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { io.ReadAll(r.Body); <-r.Context().Done() }, true},
		{"400", says(400, `{"error":{"message":"bad"}}`), false},
		{"404", says(404, `{"error":{"message":"no such model"}}`), false},
		{"413", says(413, `{"error":{"message":"too large"}}`), false},
		{"422", says(422, `{"error":{"message":"wrong"}}`), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: provider(t, x.first), Model: "small", ID: "1"}}
			d.more = []llm.Route{{Provider: llm.Compatible, BaseURL: good, Model: "small", ID: "2"}}
			url, _ := gateway(t, d, func(c *llm.Config) {
				c.Idle = 5 * time.Second
				if x.name == "silence" {
					c.Idle = 200 * time.Millisecond
				}
				c.Prices = dear(t)
			})
			for api, c := range calls {
				resp, text := do(t, ask(t, url, c.path, fmt.Sprintf(c.body, false)))
				first := d.recorded(t)
				if first.Reserved <= 0 {
					t.Errorf("%s: nothing was set aside", api)
				}
				if !x.on {
					if resp.StatusCode/100 != 4 || len(d.usage) != 0 {
						t.Errorf("%s: %d %s", api, resp.StatusCode, text)
					}
					continue
				}
				second := d.recorded(t)
				if h := resp.Header; resp.StatusCode != 200 || text != fine || h.Get(llm.FaultHeader) != "" || h.Get(llm.KindHeader) != "" {
					t.Errorf("%s: %d %v %s", api, resp.StatusCode, resp.Header, text)
				}
				if first.Kind+answer.Kind(first.Fault) == "" || first.Tokens != (llm.Tokens{}) ||
					second.InputTokens != 250 || second.Reserved <= 0 {
					t.Errorf("%s: recorded %+v, then %+v", api, first, second)
				}
			}
		})
	}
}

// says answers every call with a status and a text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// dear is a table in which the provider compatible has a price.
func dear(t *testing.T) *llm.Prices {
	p, err := llm.ParsePrices([]byte("as_of: 2026-01-02\nprices: [{provider: compatible, family: '*', input: 1, output: 10}]"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFailOverIsAsRecorded plays every recorded answer over the first route: the caller gets
// the second route's answer exactly where another route is allowed.
func TestFailOverIsAsRecorded(t *testing.T) {
	t.Parallel()
	far, good := recorded.Play(t), provider(t, well)
	d := &desk{}
	patient, _ := gateway(t, d, func(c *llm.Config) { c.Prices = dear(t) })
	records := d.usage
	hasty, _ := gateway(t, d, func(c *llm.Config) { c.Idle, c.Prices = 500*time.Millisecond, dear(t) })
	d.usage = records
	went := 0
	for _, c := range recorded.Served(t) {
		path, body, p := recordedCall(c)
		if strings.HasPrefix(path, "/v1beta") {
			continue // the good answer is none of that API
		}
		d.mu.Lock()
		d.route = routeTo(p, far.URL+"/"+c.Name)
		d.more = []llm.Route{{Provider: llm.Compatible, BaseURL: good, Model: "m", ID: "2"}}
		d.mu.Unlock()
		url := patient
		if c.Answer.End == "hang" {
			url = hasty
		}
		resp, err := http.DefaultClient.Do(ask(t, url, path, body))
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		d.recorded(t)
		on := c.Want.Error != nil && c.Want.AnotherRoute && !atFault[c.Answer.Status]
		if on {
			went++
			d.recorded(t)
		}
		if got := string(text) == fine; got != on {
			t.Errorf("%s: another route %v, want %v; %d %.200s", c.Name, got, on, resp.StatusCode, text)
		}
	}
	if went < 60 {
		t.Errorf("%d calls went on", went)
	}
}

// atFault are the statuses that say that a call itself is at fault.
var atFault = map[int]bool{404: true, 413: true, 422: true}

// TestNoFailOverAfterTheFirstByte: what has begun is not begun again elsewhere.
func TestNoFailOverAfterTheFirstByte(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	good := provider(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); well(w, r) })
	bad := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, started+"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"word\"}}\n\n")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	d := &desk{route: llm.Route{Provider: llm.Compatible, BaseURL: bad}, more: []llm.Route{{Provider: llm.Compatible, BaseURL: good}}}
	url, _ := gateway(t, d, func(c *llm.Config) { c.Prices = dear(t) })
	resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", callBody(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil || !strings.Contains(string(text), "word") || asked.Load() != 0 {
		t.Errorf("%v, %s, asked %d times elsewhere", err, text, asked.Load())
	}
	if u := d.recorded(t); !u.Aborted || u.InputTokens == 0 {
		t.Errorf("recorded %+v", u)
	}
}

// TestARouteOfAnotherProviderKnowsTheModel: a call goes on to another provider only where
// that has the model, and what that finds wrong with the call does not reach the caller.
func TestARouteOfAnotherProviderKnowsTheModel(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := provider(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		says(404, `{"error":{"message":"what model"}}`)(w, r)
	})
	busy := provider(t, says(429, `{"error":{"message":"slow down"}}`))
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: busy}, more: []llm.Route{{Provider: llm.Compatible, BaseURL: other}}}
	url, _ := gateway(t, d, nil)
	if resp, text := do(t, ask(t, url, "/v1/messages", callBody(false))); resp.StatusCode != 429 || asked.Load() != 0 {
		t.Errorf("%d %s, asked %d times elsewhere", resp.StatusCode, text, asked.Load())
	}
	url, _ = gateway(t, d, func(c *llm.Config) { c.Prices = dear(t) })
	if resp, text := do(t, ask(t, url, "/v1/messages", callBody(false))); resp.StatusCode != 429 || asked.Load() != 1 {
		t.Errorf("%d %s, asked %d times elsewhere", resp.StatusCode, text, asked.Load())
	}
}

// TestNoFailureIsSeen: streamed calls over twenty keys of a provider that fails one call in
// ten, each in another way, all arrive whole. GATEWAY_CALLS raises the number of calls.
func TestNoFailureIsSeen(t *testing.T) {
	total := 500
	if n, err := strconv.Atoi(os.Getenv("GATEWAY_CALLS")); err == nil {
		total = n
	}
	var asked atomic.Int64
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: failing(t, &asked), ID: "0"}}
	for i := range 19 {
		d.more = append(d.more, llm.Route{Provider: llm.Anthropic, BaseURL: d.route.BaseURL, ID: strconv.Itoa(i + 1)})
	}
	address, _ := gateway(t, d, func(c *llm.Config) { c.Idle = 2 * time.Second })
	d.usage = make(chan llm.Usage, 2*total)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	work := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range work {
				resp, err := client.Do(ask(t, address, "/v1/messages", callBody(true)))
				if err != nil {
					t.Errorf("call %d: %v", i, err)
					continue
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				whole := strings.HasSuffix(string(text), ended) && strings.Count(string(text), "message_start") == 2
				if err != nil || resp.StatusCode != 200 || !whole {
					t.Errorf("call %d: %d, %v: %s", i, resp.StatusCode, err, text)
				}
			}
		})
	}
	for i := range total {
		work <- i
	}
	close(work)
	wg.Wait()
	whole, tokens := 0, int64(0)
	for range len(d.usage) {
		if u := <-d.usage; u.Kind == "" && !u.Aborted {
			whole++
			tokens += u.OutputTokens
		}
	}
	if failed := int(asked.Load()) - total; whole != total || tokens != 15*int64(total) || failed < total/10 {
		t.Errorf("%d of %d calls are recorded as whole, with %d tokens; %d tries failed", whole, total, tokens, failed)
	}
}

// failing is a provider of streams that fails one call in ten.
func failing(t *testing.T, asked *atomic.Int64) string {
	stream := started + strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"word\"}}\n\n", 20) + ended
	ways := []http.HandlerFunc{
		says(429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`),
		says(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		says(200, `<html>maintenance</html>`),
		says(401, `{"error":{"message":"no such key"}}`),
		func(w http.ResponseWriter, _ *http.Request) { // cut before its content
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, started[:strings.Index(started, "\n\n")+2])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	}
	return provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if n := asked.Add(1); n%10 == 0 {
			ways[int(n/10)%len(ways)](w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, stream)
	})
}
