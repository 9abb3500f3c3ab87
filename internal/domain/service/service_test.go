package service

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
)

// nobody is a Sessions without a session.
type nobody struct{}

func (nobody) Who(context.Context) (login, account string, err error) { return "", "", nil }

// newService returns a Service of n with the rest filled in: no session, no
// documents, an empty disk, a process that does not stop.
func newService(n Needs) *Service {
	n.Sessions, n.Document, n.Reference = nobody{}, nothing, nothing
	if n.Free == nil {
		n.Free, n.Stopping = func() (int64, error) { return 1 << 40, nil }, func() bool { return false }
	}
	return New(n)
}

func nothing() (*op.Asset, error) { return nil, errors.New("there is no document") }

func health(t *testing.T, s *Service) (status int, h Health) {
	t.Helper()
	w := httptest.NewRecorder()
	rest.Handler(rest.Config{}, s.Ops()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return w.Code, h
}

func TestHealth(t *testing.T) {
	t.Parallel()
	up := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("connection refused") }
	status, h := health(t, newService(Needs{SHA: "abc", Probes: map[string]func(context.Context) error{"database": up}}))
	if status != 200 || h.Status != "ok" || h.SHA == nil || *h.SHA != "abc" || h.Checks["database"].Status != "ok" {
		t.Errorf("all is well: %d %+v", status, h)
	}
	status, h = health(t, newService(Needs{Probes: map[string]func(context.Context) error{"database": up, "bus": down}}))
	if status != 503 || h.Status != "degraded" || h.SHA != nil || h.Checks["database"].Status != "ok" ||
		h.Checks["bus"].Status != "failed" {
		t.Errorf("the bus is down: %d %+v", status, h)
	}
}

// TestReady holds that a degraded dependency does not make a load balancer turn away,
// and that readiness counts needed dependencies only.
func TestReady(t *testing.T) {
	t.Parallel()
	up := func(context.Context) error { return nil }
	scarce := func(context.Context) error { return &Trouble{Degraded: true, Detail: "Nearly full."} }
	down := func(context.Context) error { return errors.New("connection refused") }
	free, stopping := int64(7), false
	s := newService(Needs{
		Probes:   map[string]func(context.Context) error{"database": up, "storage": scarce, "events": down},
		Needed:   []string{"database", "storage"},
		Free:     func() (int64, error) { return free, nil },
		Stopping: func() bool { return stopping },
	})
	ready := func() (int, Readiness) {
		w := httptest.NewRecorder()
		rest.Handler(rest.Config{}, s.Ops()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		var r Readiness
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return w.Code, r
	}
	code, r := ready()
	if c := r.Checks["storage"]; code != 200 || r.Status != "ready" || len(r.Checks) != 2 || c.Status != "degraded" ||
		*c.Detail != "Nearly full." || *c.FreeBytes != 7 {
		t.Errorf("%d %+v", code, r)
	}
	if code, h := health(t, s); code != 503 || h.Checks["events"].Detail != nil {
		t.Errorf("health: %d %+v", code, h)
	}
	delete(s.Probes, "events")
	if code, h := health(t, s); code != 200 || h.Status != "degraded" {
		t.Errorf("health of what still works: %d %+v", code, h)
	}
	stopping = true
	if code, r := ready(); code != 503 || r.Status != "stopping" {
		t.Errorf("while stopping: %d %+v", code, r)
	}
	stopping, s.Probes["database"] = false, down
	if code, r := ready(); code != 503 || r.Status != "not-ready" {
		t.Errorf("without a database: %d %+v", code, r)
	}
}

// TestHealthIsBounded holds that a dependency that hangs counts as failed, and that
// the answer does not hang with it.
func TestHealthIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		status, h := health(t, newService(Needs{Probes: map[string]func(context.Context) error{"database": hang}}))
		if status != 503 || h.Checks["database"].Status != "failed" {
			t.Errorf("%d %+v", status, h)
		}
	})
}
