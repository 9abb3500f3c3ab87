package op_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// When the process is about to stop, streams end and calls that wait for news; other calls are answered.
func TestStopping(t *testing.T) {
	t.Parallel()
	begun, release := make(chan string, 3), make(chan struct{})
	work := func(ctx context.Context, name string) error {
		begun <- name
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-release:
			return nil
		}
	}
	row := func(name string) op.Row {
		return op.Row{ID: "thing." + name, Method: "GET", Path: "/v1/" + name, Rule: policy.Public(), Group: "Things"}
	}
	type waitIn struct {
		WaitMS int64 `json:"wait_ms,omitempty"`
	}
	ops := []op.Op{
		op.New(row("work"), func(ctx context.Context, _ struct{}) (thing, error) { return thing{}, work(ctx, "work") }),
		op.New(row("wait"), func(ctx context.Context, _ waitIn) (thing, error) { return thing{}, work(ctx, "wait") }),
		op.Stream(row("tail"), func(ctx context.Context, _ struct{}, s *op.Sink) error {
			s.Open()
			return work(ctx, "tail")
		}),
	}
	stopping, stop := context.WithCancel(t.Context())
	s := httptest.NewServer(rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard", Stopping: stopping}}, ops))
	defer s.Close()
	answers := map[string]chan int{"work": make(chan int, 1), "wait": make(chan int, 1), "tail": make(chan int, 1)}
	for _, name := range []string{"work", "wait", "tail"} {
		go func() {
			answer, err := http.Get(s.URL + "/v1/" + name)
			if err != nil {
				answers[name] <- 0
				return
			}
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if err != nil {
				answer.StatusCode = 0
			}
			answers[name] <- answer.StatusCode
		}()
		patience.Receive(t, name+" begins", begun)
	}
	stop()
	for _, c := range []struct {
		name string
		want int
	}{{"tail", http.StatusOK}, {"wait", http.StatusServiceUnavailable}} {
		if got := patience.Receive(t, "the end of "+c.name, answers[c.name]); got != c.want {
			t.Errorf("%s ends with %d, want %d", c.name, got, c.want)
		}
	}
	close(release)
	if got := patience.Receive(t, "the answer to work", answers["work"]); got != http.StatusOK {
		t.Errorf("a call that was under way is answered %d", got)
	}
}
