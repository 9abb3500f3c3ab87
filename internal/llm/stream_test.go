package llm_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"yardmaster/internal/llm"
	"yardmaster/internal/proof/patience"
)

// tap is a provider that streams the texts that the test sends.
type tap struct {
	url     string
	send    chan string // closed: the stream ends
	cut     chan struct{}
	gone    chan struct{} // closed when the gateway disconnects
	started chan struct{}
}

func newTap(t testing.TB) *tap {
	p := &tap{send: make(chan string), cut: make(chan struct{}), gone: make(chan struct{}), started: make(chan struct{})}
	p.url = provider(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		close(p.started)
		for {
			select {
			case text, more := <-p.send:
				if !more {
					return
				}
				io.WriteString(w, text)
				http.NewResponseController(w).Flush()
			case <-p.cut:
				panic(http.ErrAbortHandler)
			case <-r.Context().Done():
				close(p.gone)
				return
			}
		}
	})
	return p
}

// begin sends the beginning of a stream, without waiting until it is read.
func (p *tap) begin() {
	go func() {
		select {
		case p.send <- started:
		case <-p.gone:
		}
	}()
}

// started is the beginning of a stream, with its first content.
const started = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":21,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Well\"}}\n\n"

func TestEachPieceIsSentOnAtOnce(t *testing.T) {
	far := newTap(t)
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far.url}}
	url, _ := gateway(t, d, nil)
	far.begin()
	resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", `{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if _, err := io.CopyN(io.Discard, lines, int64(len(started))); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		far.send <- fmt.Sprintf("data: %d\n", i)
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatal(line, err)
		}
	}
	far.send <- "\n" + ended
	close(far.send)
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "\n"+ended {
		t.Fatal(rest, err)
	}
	if u := d.recorded(t); u.Aborted || u.Estimated || u.OutputTokens != 15 {
		t.Fatalf("%+v", u)
	}
}

func TestCallerWhoHangsUpIsCounted(t *testing.T) {
	far := newTap(t)
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far.url}}
	url, _ := gateway(t, d, nil)
	ctx, hangUp := context.WithCancel(context.Background())
	far.begin()
	resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", `{"model":"m","stream":true}`).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	hangUp()
	patience.Ended(t, "the end of the provider's call", far.gone)
	if u := d.recorded(t); !u.Aborted || u.InputTokens != 21 || u.Estimated {
		t.Fatalf("%+v", u)
	}
}

// The caller can tell a stream that the provider cut from one that ended.
func TestCutStreamIsCutForTheCallerToo(t *testing.T) {
	far := newTap(t)
	d := &desk{route: llm.Route{Provider: llm.Anthropic, BaseURL: far.url}}
	url, _ := gateway(t, d, nil)
	far.begin()
	resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", `{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(far.cut)
	if text, err := io.ReadAll(resp.Body); err == nil || string(text) != started {
		t.Fatalf("%q %v", text, err)
	}
	if u := d.recorded(t); !u.Aborted || u.InputTokens != 21 {
		t.Fatalf("%+v", u)
	}
}

// A provider is given up once it has been silent for Idle, before its answer and in the
// middle of it. How long the machine needs until a provider is reached is not known: Idle
// grows until it was enough.
func TestSilentProviderIsGivenUp(t *testing.T) {
	longEnough := func(try func(url string, d *desk) bool) {
		d := &desk{}
		for idle := 20 * time.Millisecond; ; idle *= 2 {
			url, _ := gateway(t, d, func(c *llm.Config) { c.Idle = idle })
			if try(url, d) {
				return
			}
		}
	}
	longEnough(func(url string, d *desk) bool {
		reached, silent := make(chan struct{}), make(chan struct{})
		d.route = llm.Route{Provider: llm.Anthropic, BaseURL: provider(t, func(w http.ResponseWriter, r *http.Request) {
			close(reached)
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			close(silent)
		})}
		if resp, text := do(t, ask(t, url, "/v1/messages", `{"model":"m"}`)); resp.StatusCode != 504 {
			t.Fatal(resp.StatusCode, text)
		}
		select {
		case <-reached:
			patience.Ended(t, "the end of the provider's call", silent)
			return true
		default:
			return false
		}
	})
	longEnough(func(url string, d *desk) bool {
		far := newTap(t)
		far.begin()
		d.route = llm.Route{Provider: llm.Anthropic, BaseURL: far.url}
		resp, err := http.DefaultClient.Do(ask(t, url, "/v1/messages", `{"model":"m","stream":true}`))
		if err != nil {
			return false // cut before the head was sent on
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			return false // given up before the head came
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Fatal("a stream that went silent ended like a whole one")
		}
		patience.Ended(t, "the end of the provider's stream", far.gone)
		return true
	})
}
