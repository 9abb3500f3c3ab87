package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/llm/answer"
)

// watched is a caller whose answer is looked at while it comes.
type watched struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	heads int
}

func (w *watched) head() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads++
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(p)
}

func (w *watched) seen() (heads int, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heads, w.Body.String()
}

// An answer is held back until its content comes, for holdTime at most; an error that
// comes before is the caller's as a refusal, and nothing is sent.
func TestAnswerIsHeldBack(t *testing.T) {
	const ping, content, failed = ": ping\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
		"data: {\"error\":{\"message\":\"Busy\",\"type\":\"overloaded\"}}\n\n"
	for _, c := range []struct {
		name  string
		after time.Duration
		then  string
		sent  bool
		kind  answer.Kind
	}{
		{"content", time.Second, content, true, answer.Cut},
		{"an error", time.Second, failed, false, answer.Overloaded},
		{"an error, late", holdTime + time.Second, failed, true, answer.Overloaded},
		{"nothing", time.Second, "", false, answer.NotAnswer},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			ctx, cancel := context.WithCancelCause(t.Context())
			x := &Exchange{ctx: ctx, cancel: cancel, idle: time.Hour, timer: time.AfterFunc(time.Hour, func() { cancel(ErrIdle) })}
			x.Response = &http.Response{Body: r}
			defer x.Close()
			out := &watched{ResponseRecorder: httptest.NewRecorder()}
			m := meter(Chat, "text/event-stream")
			done := make(chan error, 1)
			go func() { done <- x.Copy(out, m, out.head) }()
			w.Write([]byte(ping))
			synctest.Wait()
			if heads, body := out.seen(); heads != 0 || body != "" {
				t.Errorf("%s: %d heads, %q", c.name, heads, body)
			}
			time.Sleep(c.after)
			synctest.Wait()
			heads, body := out.seen()
			if late := c.after > holdTime; (heads == 1) != late || (body == ping) != late {
				t.Errorf("%s: %d heads, %q", c.name, heads, body)
			}
			go func() {
				w.Write([]byte(c.then))
				w.Close()
			}()
			err := <-done
			want := ""
			if c.sent {
				want = ping + c.then
			}
			if x.Sent() != c.sent || out.Body.String() != want || m.Failure() == nil || m.Failure().Kind != c.kind {
				t.Errorf("%s: sent %v, %q, %v", c.name, x.Sent(), out.Body, m.Failure())
			}
			var failure *answer.Failure
			if !c.sent && !errors.As(err, &failure) || c.kind == answer.Cut && !errors.Is(err, ErrCut) {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
