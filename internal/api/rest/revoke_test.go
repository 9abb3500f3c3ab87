package rest_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

// TestStreamEndsWithItsCredential holds that an open stream, of which nothing comes,
// ends within a second after its credential was taken away, and says why.
func TestStreamEndsWithItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var revoked atomic.Bool
		ops := []op.Op{op.Stream(op.Row{ID: "item.silent", Method: "GET", Path: "/v1/silent", Rule: policy.Require(policy.ReadTasks),
			Group: "Items"}, func(ctx context.Context, _ op.None, s *op.Sink) error {
			if err := s.Send("", "ready", 1); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})}
		authenticate := func(context.Context, op.Presented) (policy.Actor, error) {
			if revoked.Load() {
				return policy.Actor{}, policy.Unauthenticated()
			}
			return policy.Actor{Credential: policy.PAT, UserID: "u", Scopes: policy.Owner.Ceiling()}, nil
		}
		api := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard", Authenticate: authenticate}}, ops)
		w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/v1/silent", nil)
		req.Header.Set("Authorization", "Bearer x")
		ended := make(chan struct{})
		go func() {
			api.ServeHTTP(w, req)
			close(ended)
		}()
		time.Sleep(10*time.Minute + 300*time.Millisecond)
		select {
		case <-ended:
			t.Fatalf("it ended before: %s", w.Body)
		default:
		}
		revoked.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Fatal("a second later it goes on")
		}
		if got := w.Body.String(); !strings.Contains(got, "event: error") || !strings.Contains(got, "problems/unauthenticated") {
			t.Errorf("it ends with %s", got)
		}
	})
}
