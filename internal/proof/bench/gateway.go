package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/protocol"
)

const (
	gatewayCalls = 600 // sequential, through the gateway and directly
	streams      = 10_000
	chunks       = 20
)

func gateway(ctx context.Context, b *bench) error {
	upstream, stop, err := provider(nil)
	if err != nil {
		return err
	}
	defer stop()
	bare, _, err := b.launch(ctx, b.self, "baseline", "--upstream", upstream)
	if err != nil {
		return err
	}
	defer bare.stop()
	w, err := b.settle(ctx, "gateway")
	if err != nil {
		return err
	}
	defer w.stop()
	address, token, leave, err := w.model(ctx, upstream)
	if err != nil {
		return err
	}
	defer leave()

	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, stream := range []bool{false, true} {
		ways := []string{upstream, bare.url, address}
		took := make([][]time.Duration, len(ways))
		for range gatewayCalls {
			for i, way := range ways {
				d, err := prompt(ctx, client, way, token, stream)
				if errors.As(err, new(errCut)) && i > 0 {
					continue // counted below
				}
				if err != nil {
					return err
				}
				took[i] = append(took[i], d)
			}
		}
		direct := median(took[0])
		ours, theirs := median(took[2])-direct, median(took[1])-direct
		what := "added to a call, p50"
		if stream {
			what = "added to a streamed call, p50"
		}
		b.add(row{what: fmt.Sprintf("%s (%s without)", what, us(direct)), value: us(ours), baseline: us(theirs), ratio: ratio(ours, theirs),
			target: "≤ 300 µs", met: ours <= 300*time.Microsecond})
	}

	if err := b.commits(ctx); err != nil {
		return err
	}
	var cut [2]int64
	for i, way := range []string{address, bare.url} {
		if cut[i], err = flood(ctx, client, way, token); err != nil {
			return err
		}
	}
	b.add(row{what: fmt.Sprintf("of %d streamed calls, 16 at a time, cut short", streams), value: fmt.Sprint(cut[0]),
		baseline: fmt.Sprint(cut[1]), target: "0", met: cut[0] == 0})
	return nil
}

// commits measures what the gateway does besides proxying: it stores the usage of a
// call durably before the caller sees the end of the answer.
func (b *bench) commits(ctx context.Context) error {
	f, err := newFloor(filepath.Join(b.dir, "gateway.db"))
	if err != nil {
		return err
	}
	defer f.close()
	took := make([]time.Duration, gatewayCalls)
	for i := range took {
		begin := time.Now()
		if err := f.commit(ctx); err != nil {
			return err
		}
		took[i] = time.Since(begin)
	}
	b.add(row{what: "for comparison: one bare durable SQLite commit, p50", value: us(median(took))})
	return nil
}

// model makes a key for the upstream, and a live run whose token the gateway accepts.
func (w *world) model(ctx context.Context, upstream string) (address, token string, leave func(), err error) {
	if err := w.api.Call(ctx, http.MethodPost, "/v1/billing/keys",
		map[string]any{"provider": "compatible", "base_url": upstream, "key": "secret", "model": "m", "priority": 1}, nil); err != nil {
		return "", "", nil, err
	}
	template := map[string]string{"agent": "builtin", "provider": "compatible", "base_url": upstream, "model": "m"}
	if err := w.api.Call(ctx, http.MethodPut, "/v1/templates/default", template, nil); err != nil {
		return "", "", nil, err
	}
	x, err := w.join(ctx, "caller", 1)
	if err != nil {
		return "", "", nil, err
	}
	if err := w.file(ctx, 1); err != nil {
		return "", "", nil, err
	}
	run, _, err := x.take(ctx)
	if err != nil {
		return "", "", nil, err
	}
	life, cancel := context.WithCancel(ctx)
	go func() { // renews the lease
		for {
			select {
			case <-life.Done():
				return
			case <-time.After(10 * time.Second):
				// A lost lease makes the measured calls fail.
				_ = x.call(life, protocol.CallRenew, protocol.Renew{Run: run.Run, Attempt: run.Attempt}, nil)
			}
		}
	}()
	return run.GatewayURL, run.ModelToken, func() { cancel(); x.close() }, nil
}

// provider is a model provider that answers at once: a document, or a stream; or 500, if fails
// says so.
func provider(fails func() bool) (url string, stop func(), err error) {
	document := `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 200) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":25,"completion_tokens":15}}`
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if fails != nil && fails() {
			http.Error(w, `{"error":{"type":"server_error","message":"The server had an error."}}`, http.StatusInternalServerError)
			return
		}
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, document)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flow := http.NewResponseController(w)
		for i := range chunks {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
			if flow.Flush() != nil {
				return
			}
		}
		io.WriteString(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}]}\n\n"+
			"data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":25,\"completion_tokens\":15}}\n\n"+streamEnd)
	})}
	go func() { _ = server.Serve(l) }() // until the listener is closed
	return "http://" + l.Addr().String(), func() { server.Close() }, nil
}

const streamEnd = "data: [DONE]\n\n"

// errCut says that a stream ended too early.
type errCut struct{ got int }

func (e errCut) Error() string { return fmt.Sprintf("the answer was cut after %d bytes", e.got) }

// statusError is an answer that is a refusal.
type statusError struct {
	address, status string
	text            []byte
}

func (e statusError) Error() string {
	return fmt.Sprintf("%s answered %s: %.300s", e.address, e.status, e.text)
}

// prompt makes one call and reads its whole answer.
func prompt(ctx context.Context, c *http.Client, address, token string, stream bool) (time.Duration, error) {
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, stream,
		strings.Repeat("some prompt ", 300))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	begin := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return 0, statusError{address, resp.Status, text}
	}
	if err != nil || stream && (strings.Count(string(text), `"delta"`) != chunks || !strings.HasSuffix(string(text), streamEnd)) {
		return 0, errCut{len(text)}
	}
	return time.Since(begin), nil
}

// flood counts the streams that are cut.
func flood(ctx context.Context, c *http.Client, address, token string) (cut int64, err error) {
	var next, short atomic.Int64
	var once sync.Once
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for next.Add(1) <= streams {
				switch _, e := prompt(ctx, c, address, token, true); {
				case errors.As(e, new(errCut)):
					short.Add(1)
				case e != nil:
					once.Do(func() { err = e })
					return
				}
			}
		})
	}
	wg.Wait()
	return short.Load(), err
}
