package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"yardmaster/internal/op"
)

func health(t *testing.T, s *Service) (status int, h Health) {
	t.Helper()
	w := httptest.NewRecorder()
	op.Handler(op.Guard{}, s.Ops()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return w.Code, h
}

func TestHealth(t *testing.T) {
	up := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("connection refused") }
	status, h := health(t, &Service{SHA: "abc", Probes: map[string]func(context.Context) error{"database": up}})
	if status != 200 || h.Status != "ok" || h.SHA == nil || *h.SHA != "abc" || h.Checks["database"].Status != "ok" {
		t.Errorf("all is well: %d %+v", status, h)
	}
	status, h = health(t, &Service{Probes: map[string]func(context.Context) error{"database": up, "bus": down}})
	if status != 503 || h.Status != "degraded" || h.SHA != nil || h.Checks["database"].Status != "ok" || h.Checks["bus"].Status != "failed" {
		t.Errorf("the bus is down: %d %+v", status, h)
	}
}

// A dependency that hangs is one that failed; the answer does not hang with it.
func TestHealthIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		status, h := health(t, &Service{Probes: map[string]func(context.Context) error{"database": hang}})
		if status != 503 || h.Checks["database"].Status != "failed" {
			t.Errorf("%d %+v", status, h)
		}
	})
}
