package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

// counted serves a few rows with limits; X-As names the credential. The clock stands
// still, so that one minute lasts for the whole test.
func counted(t *testing.T) http.Handler {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	done := func(context.Context, op.None) (op.None, error) { return op.None{}, nil }
	row := func(id, method, path string, rule policy.Rule) op.Row {
		return op.Row{ID: id, Method: method, Path: path, Rule: rule, Group: "Items"}
	}
	narrow := row("item.badge", "GET", "/v1/badge", policy.Public())
	narrow.PerAddress = 3
	other := narrow
	other.ID, other.Path = "item.other", "/v1/other"
	return rest.Handler(rest.Config{AccountHeader: "X-As", Pipeline: &op.Pipeline{
		BaseURL: "http://yard",
		Limits:  limit.New(func() time.Time { return now }),
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			as := p.Account
			switch as {
			case "":
				return policy.Actor{}, nil
			case "bad":
				return policy.Actor{}, policy.Unauthenticated()
			}
			return policy.Actor{Credential: policy.PAT, CredentialID: as, Scopes: policy.Scopes(policy.ReadTasks, policy.WriteTasks)}, nil
		},
	}}, []op.Op{
		op.New(row("item.get", "GET", "/v1/item", policy.Require(policy.ReadTasks)), done),
		op.New(row("item.put", "PUT", "/v1/item", policy.Require(policy.WriteTasks)), done),
		op.New(row("item.admin", "GET", "/v1/admin", policy.Require(policy.AdminUsers)), done),
		op.New(row("item.free", "GET", "/v1/free", policy.Public()), done),
		op.New(narrow, done), op.New(other, done),
	})
}

func ask(h http.Handler, method, path, as, from string) *http.Response {
	req := httptest.NewRequest(method, path, nil)
	req.RemoteAddr = from + ":4711"
	req.Header.Set("X-As", as)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Result()
}

// shows returns the headers of a response about a bucket.
func shows(r *http.Response) string {
	return r.Header.Get("RateLimit-Limit") + "/" + r.Header.Get("RateLimit-Remaining") + "/" + r.Header.Get("RateLimit-Reset")
}

func TestLimitsOfACredential(t *testing.T) {
	h := counted(t)
	from := func(i int) string { return "10.0.0." + strconv.Itoa(i%4+1) } // never too many from one
	for i := range 600 {
		r := ask(h, "GET", "/v1/item", "a", from(i))
		if want := "600/" + strconv.Itoa(599-i) + "/60"; r.StatusCode != 200 || shows(r) != want {
			t.Fatalf("read %d: %d %s, want %s", i, r.StatusCode, shows(r), want)
		}
	}
	for i := range 120 { // the reads are all used up, the writes are not
		r := ask(h, "PUT", "/v1/item", "a", from(i))
		if want := "120/" + strconv.Itoa(119-i) + "/60"; r.StatusCode != 200 || shows(r) != want {
			t.Fatalf("write %d: %d %s, want %s", i, r.StatusCode, shows(r), want)
		}
	}
	for path, want := range map[string]string{"GET": "600/0/60", "PUT": "120/0/60"} {
		r, p := call(t, h, path, "/v1/item", "", "", "X-As", "a")
		if r.StatusCode != 429 || shows(r) != want || r.Header.Get("Retry-After") != "60" || p["retry_after"] != 60.0 ||
			p["type"] != "http://yard/problems/rate-limited" {
			t.Errorf("%s beyond: %d %s, Retry-After %q: %v", path, r.StatusCode, shows(r), r.Header.Get("Retry-After"), p)
		}
	}
	if r := ask(h, "GET", "/v1/item", "b", from(0)); r.StatusCode != 200 || shows(r) != "600/599/60" {
		t.Errorf("another credential: %d %s", r.StatusCode, shows(r))
	}
	// The limit comes before the scope, and after the credential.
	if r := ask(h, "GET", "/v1/admin", "a", from(0)); r.StatusCode != 429 {
		t.Errorf("beyond and without scope: %d", r.StatusCode)
	}
	if r := ask(h, "GET", "/v1/admin", "b", from(0)); r.StatusCode != 403 || shows(r) != "600/598/60" {
		t.Errorf("without scope: %d %s", r.StatusCode, shows(r))
	}
	for _, as := range []string{"", "bad"} {
		if r := ask(h, "GET", "/v1/item", as, from(0)); r.StatusCode != 401 || shows(r) != "//" {
			t.Errorf("credential %q: %d %s", as, r.StatusCode, shows(r))
		}
	}
	if r := ask(h, "GET", "/v1/free", "a", from(0)); r.StatusCode != 200 || shows(r) != "//" {
		t.Errorf("ahead of the guard: %d %s", r.StatusCode, shows(r))
	}
}

func TestLimitOfAnAddress(t *testing.T) {
	h := counted(t)
	for i := range 1200 { // every kind of request counts
		path, want := "/v1/free", 200
		switch i % 3 {
		case 1:
			path, want = "/nothing", 404
		case 2:
			path, want = "/v1/item", 401
		}
		if r := ask(h, "GET", path, "", "10.0.0.1"); r.StatusCode != want {
			t.Fatalf("%d: %s answers %d", i, path, r.StatusCode)
		}
	}
	for _, c := range [][3]string{{"GET", "/v1/free", ""}, {"GET", "/nothing", ""}, {"POST", "/v1/free", ""}, {"GET", "/v1/item", "bad"},
		{"GET", "/v1/item", "a"}} {
		if r := ask(h, c[0], c[1], c[2], "10.0.0.1"); r.StatusCode != 429 || r.Header.Get("Retry-After") != "60" ||
			shows(r) != "1200/0/60" {
			t.Errorf("%v: %d %s", c, r.StatusCode, shows(r))
		}
	}
	if r := ask(h, "GET", "/v1/badge", "", "10.0.0.1"); r.StatusCode != 429 || shows(r) != "//" {
		t.Errorf("a row with a bucket of its own: %d %s", r.StatusCode, shows(r))
	}
	if r := ask(h, "GET", "/v1/item", "a", "10.0.0.2"); r.StatusCode != 200 {
		t.Errorf("from elsewhere: %d", r.StatusCode)
	}
}

func TestLimitOfARow(t *testing.T) {
	h := counted(t)
	for i := range 4 {
		want := 200
		if i == 3 {
			want = 429
		}
		r := ask(h, "GET", "/v1/badge", "a", "10.0.0.1")
		if r.StatusCode != want || shows(r) != "//" || want == 429 && r.Header.Get("Retry-After") != "60" {
			t.Errorf("call %d: %d %s", i, r.StatusCode, shows(r))
		}
	}
	for _, c := range [][2]string{{"/v1/other", "10.0.0.1"}, {"/v1/badge", "10.0.0.2"}, {"/v1/free", "10.0.0.1"}} {
		if r := ask(h, "GET", c[0], "", c[1]); r.StatusCode != 200 {
			t.Errorf("%v is counted with it: %d", c, r.StatusCode)
		}
	}
}
