package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a transport.
type answering func(*http.Request) (status int, body io.Reader)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	if body == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
}

// dripping sends a byte every half second, until its call is over.
type dripping struct {
	ctx  context.Context
	byte byte
}

func (d dripping) Read(b []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(500 * time.Millisecond):
		b[0] = d.byte
		return 1, nil
	}
}

// Calls that are limited, and answers that never come or come byte by byte, are told of and
// given up, and end at once with their context.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	limited := func(after int) answering {
		return func(*http.Request) (int, io.Reader) {
			return 429, strings.NewReader(fmt.Sprintf(`{"type": "/problems/rate-limited", "retry_after": %d}`, after))
		}
	}
	dripped := func(status int) answering {
		return func(r *http.Request) (int, io.Reader) { return status, dripping{r.Context(), ' '} }
	}
	for name, of := range map[string]struct {
		server answering
		told   string
		after  time.Duration // that it is given up
		silent bool          // it is, for want of an answer
	}{
		"an hour":       {limited(3600), "", 0, false},
		"again, again":  {limited(50), "http://y limits calls: the next one is in 50s", 100 * time.Second, false},
		"no time":       {limited(0), "limits calls", Patience, false},
		"no answer":     {func(*http.Request) (int, io.Reader) { return 0, nil }, "sent 0 bytes in 10s", Patience, true},
		"a slow answer": {dripped(200), "bytes in 10s", Patience, true},
		"a slow refusal": {dripped(500), "sent 0 bytes", Patience,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				c := &Client{URL: "http://y", HTTP: &http.Client{Transport: of.server}}
				ctx := Telling(t.Context(), func(text string) { told = append(told, text) })
				start := time.Now()
				err := c.Call(ctx, "GET", "/x", nil, nil)
				if took := time.Since(start); took != of.after {
					t.Errorf("it is given up after %s: %v", took, err)
				}
				var p *Problem
				var silent *Unreachable
				if errors.As(err, &silent) != of.silent || errors.As(err, &p) == of.silent {
					t.Errorf("it ends with %v", err)
				}
				all := strings.Join(told, "\n")
				if !strings.Contains(all, of.told) || of.told == "" && all != "" {
					t.Errorf("it tells %q", all)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(3500*time.Millisecond, cancel)
				c := &Client{URL: "http://y", HTTP: &http.Client{Transport: of.server}}
				start := time.Now()
				err := c.Call(ctx, "GET", "/x", nil, nil)
				took := time.Since(start)
				if took != min(of.after, 3500*time.Millisecond) || took > 0 && !errors.Is(err, context.Canceled) {
					t.Errorf("it ends after %s with %v", took, err)
				}
			})
		})
	}
}

// Every call that is limited is made again, one that changes something with all that it sends, and a large
// one tells anew how much is sent. One whose time would be over before it may be made again is not waited for.
func TestLimitedCallsAreMadeAgain(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 2*largeBody)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		synctest.Test(t, func(t *testing.T) {
			var sent []string
			server := answering(func(r *http.Request) (int, io.Reader) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if sent = append(sent, string(b)); len(sent) < 3 {
					return 429, strings.NewReader(`{"type": "/problems/queue-full", "detail": "9 tasks wait.", "retry_after": 30}`)
				}
				return 200, strings.NewReader(`{"id": "a"}`)
			})
			var told []string
			part := &steps{}
			c := &Client{URL: "http://y", HTTP: &http.Client{Transport: server}, Steps: part}
			ctx := Telling(t.Context(), func(text string) { told = append(told, text) })
			start := time.Now()
			b, err := c.Fetch(ctx, method, "/x", map[string]string{"text": large})
			if err != nil || string(b) != `{"id": "a"}` || time.Since(start) != time.Minute {
				t.Errorf("%s after %s: %s, %v", method, time.Since(start), b, err)
			}
			if len(sent) != 3 || sent[0] != sent[2] || !strings.Contains(sent[0], large) || sent[1] != sent[2] {
				t.Errorf("%s is sent %d times", method, len(sent))
			}
			if len(told) != 2 || told[0] != "9 tasks wait: the next one is in 30s; Ctrl-C ends it" || len(part.parts) < 6 {
				t.Errorf("%s tells %q, %q", method, told, part.parts)
			}
			sent = nil
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			var p *Problem
			start = time.Now()
			if err := c.Call(ctx, method, "/x", "y", nil); !errors.As(err, &p) || time.Since(start) > 0 || len(sent) != 1 {
				t.Errorf("%s, with 20 s for it, after %s: %v", method, time.Since(start), err)
			}
		})
	}
}

// An answer that is long but comes is waited for, and so is one to a call that changes
// something, of which nobody knew what it did.
func TestLongAnswersAreWaitedFor(t *testing.T) {
	t.Parallel()
	for method, server := range map[string]answering{
		"GET": func(*http.Request) (int, io.Reader) {
			r, w := io.Pipe()
			go func() {
				for range 30 {
					time.Sleep(toldAfter)
					_, _ = w.Write(make([]byte, leastSent))
				}
				w.Close()
			}()
			return 200, r
		},
		"POST": func(*http.Request) (int, io.Reader) {
			time.Sleep(5 * time.Minute)
			return 200, strings.NewReader("{}")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{URL: "http://y", HTTP: &http.Client{Transport: server}}
			start := time.Now()
			if err := c.Call(t.Context(), method, "/x", nil, nil); err != nil || time.Since(start) < 5*time.Minute {
				t.Errorf("%s after %s: %v", method, time.Since(start), err)
			}
		})
	}
}

// A list whose server names yet another page, again and again, ends.
func TestListsEnd(t *testing.T) {
	t.Parallel()
	n := 0
	c := &Client{URL: "http://y", HTTP: &http.Client{Transport: answering(func(*http.Request) (int, io.Reader) {
		n++
		return 200, strings.NewReader(fmt.Sprintf(`{"data": [1], "next_cursor": "c%d"}`, n))
	})}}
	rows := 0
	err := Each(t.Context(), c, "/x", func(int) error { rows++; return nil })
	if err == nil || !strings.Contains(err.Error(), "100000 pages") || rows != mostRead {
		t.Errorf("after %d rows: %v", rows, err)
	}
	var p Pages
	for err = nil; err == nil; n++ {
		err = p.Next(fmt.Sprint(n), 64<<20)
	}
	if len(p.seen) != 4 || !strings.Contains(err.Error(), "256.0 MiB") {
		t.Errorf("after %d pages: %v", len(p.seen), err)
	}
}

// A line four times as long takes about four times the time, not sixteen, at once or in pieces, and ends where
// nobody reads on.
func TestLongLines(t *testing.T) {
	words := strings.Repeat("a b ", 1<<14)
	for name, f := range map[string]func(string){
		"in a row": func(line string) { Print(io.Discard, 100).State(Task{Status: line}) },
		"in pieces": func(line string) {
			w := Print(io.Discard, 100)
			for ; line != ""; line = line[8:] {
				w.Event(Task{}, Event{Kind: "agent.update",
					Data: []byte(`{"sessionUpdate": "agent_message_chunk", "content": {"text": "` + line[:8] + `"}}`)})
			}
		},
		"a word": func(line string) { Print(io.Discard, 100).State(Task{Status: strings.ReplaceAll(line, " ", "x")}) },
	} {
		part, all := time.Hour, time.Hour // the least of a few: the machine has more to do
		for round := 0; round < 5 || round < 15 && all > 8*part; round++ {
			start := worked(t)
			f(words[:len(words)/4])
			between := worked(t)
			f(words)
			part, all = min(part, between-start), min(all, worked(t)-between)
		}
		if all > 8*part {
			t.Errorf("%s: %s, and a quarter of it %s", name, all, part)
		}
	}
	var w few
	Print(&w, 100).State(Task{Status: words})
	if w != 4 {
		t.Errorf("%d lines are written to nobody", w-3)
	}
}

// worked is how long this process has had a processor.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// few takes three writes.
type few int

func (f *few) Write(b []byte) (int, error) {
	if *f++; *f > 3 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestBroken(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                      "",
		"exactly twenty chars":                  "exactly twenty chars",
		"twenty characters and one":             "twenty characters|and one",
		"größe größe größe übergröße":           "größe größe größe|übergröße",
		"a   b                      c":          "a   b|c",
		"averyverylongwordwithoutaspace and on": "averyverylongwordwithoutaspace|and on",
		"averyverylongwordwithoutaspace":        "averyverylongwordwithoutaspace",
	} {
		var parts []string
		for p := range Broken(line, 20) {
			parts = append(parts, p)
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("%q is broken into %q, not %q", line, got, want)
		}
	}
}

// A stream and a call beyond the limit of what is open wait as long as the server asks, say
// so, and are made again.
func TestTooMuchOpenIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]func(context.Context, *Client) error{
		"stream": func(ctx context.Context, c *Client) error {
			return c.Stream(ctx, "/x", "", func(Frame) error { return ErrStop })
		},
		"call": func(ctx context.Context, c *Client) error { return c.Call(ctx, "GET", "/x", nil, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			refusals := 2
			c := &Client{URL: "http://y", HTTP: &http.Client{Transport: answering(func(*http.Request) (int, io.Reader) {
				if refusals--; refusals >= 0 {
					return 503, strings.NewReader(`{"type": "/problems/too-many-open", "detail": "There are 20 open streams. End some.", "retry_after": 7}`)
				}
				return 200, strings.NewReader("data: 1\n\n")
			})}}
			var told []string
			start := time.Now()
			err := calls(Telling(t.Context(), func(text string) { told = append(told, text) }), c)
			if took := time.Since(start); err != nil || took != 14*time.Second {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
			if len(told) != 2 || !strings.HasPrefix(told[0], "There are 20 open streams: the next") || !strings.Contains(told[0], "in 7s") {
				t.Errorf("%s: told %q", name, told)
			}
		})
	}
}
