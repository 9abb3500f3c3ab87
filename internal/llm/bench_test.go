package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/llm"
)

// upstream answers every call alike: with a document, or with a stream of 20 events.
func upstream(t testing.TB) string {
	document := `{"id":"m","content":[{"type":"text","text":"` + strings.Repeat("word ", 200) +
		`"}],"usage":{"input_tokens":25,"output_tokens":15}}`
	return provider(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, document)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flow := http.NewResponseController(w)
		io.WriteString(w, started)
		for i := range 20 {
			fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"word %d\"}}\n\n", i)
			flow.Flush()
		}
		io.WriteString(w, ended)
	})
}

const ended = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

func callBody(stream bool) string {
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, stream, strings.Repeat("some prompt ", 300))
}

// Concurrent streams all arrive whole, and all are counted. GATEWAY_CALLS raises
// the number of calls.
func TestNoStreamIsCutShort(t *testing.T) {
	total := 2000
	if n, err := strconv.Atoi(os.Getenv("GATEWAY_CALLS")); err == nil {
		total = n
	}
	far := upstream(t)
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far, Key: key}}
	address, _ := gateway(t, d, nil)
	d.usage = make(chan llm.Usage, total)
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
				if err != nil || !strings.HasSuffix(string(text), ended) || strings.Count(string(text), "content_block_delta\n") != 21 {
					t.Errorf("call %d was cut after %d bytes: %v", i, len(text), err)
				}
			}
		})
	}
	for i := range total {
		work <- i
	}
	close(work)
	wg.Wait()
	for range total {
		if u := d.recorded(t); u.Aborted || u.Estimated || u.InputTokens != 21 || u.OutputTokens != 15 {
			t.Fatalf("%+v", u)
		}
	}
}

// BenchmarkAddedLatency reports the microseconds that the gateway and the standard
// library's bare reverse proxy add to the median of a sequential call. The three
// ways alternate within one run.
func BenchmarkAddedLatency(b *testing.B) {
	far := upstream(b)
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far, Key: key}}
	address, _ := gateway(b, d, nil)
	target, err := url.Parse(far)
	if err != nil {
		b.Fatal(err)
	}
	bare := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	b.Cleanup(bare.Close)
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			ways := []string{far, bare.URL, address}
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					req := ask(b, way, "/v1/messages", callBody(stream))
					start := time.Now()
					if resp, text := do(b, req); resp.StatusCode != 200 || !strings.HasSuffix(text, "\n") && stream {
						b.Fatal(resp.StatusCode, text)
					}
					took[i] = append(took[i], time.Since(start))
				}
				<-d.usage
			}
			median := func(i int) float64 {
				slices.Sort(took[i])
				return float64(took[i][len(took[i])/2]) / float64(time.Microsecond)
			}
			direct := median(0)
			b.ReportMetric(direct, "direct-p50-µs")
			b.ReportMetric(median(1)-direct, "reverseproxy-added-µs")
			b.ReportMetric(median(2)-direct, "gateway-added-µs")
		})
	}
}
