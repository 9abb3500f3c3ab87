package op_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/idempotency"
	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

type makeIn struct {
	Owner string   `json:"owner"`
	Name  string   `json:"name" minLength:"1" maxLength:"5"`
	Mail  string   `json:"mail,omitempty" pattern:"^[^@]+@[^@]+$" says:"must be an e-mail address"`
	Deep  []string `json:"deep,omitempty" maxItems:"2"`
}

type thing struct {
	Owner string `json:"owner"`
	Name  string `json:"name"`
	Made  int    `json:"made"`
}

type listIn struct {
	Owner string `json:"owner"`
	Deep  bool   `json:"deep,omitempty"`
	op.PageIn
}

// house is a pipeline with a few ops. The bearer token is the list of its scopes.
type house struct {
	*op.Pipeline
	ops  []op.Op
	made int
}

func build(d *db.DB) *house {
	now := time.Unix(1_700_000_000, 0)
	h := &house{}
	h.Pipeline = &op.Pipeline{
		BaseURL: "http://yard", Limits: limit.New(func() time.Time { return now }),
		Ledger: &idempotency.Ledger{DB: d, Hub: event.NewHub(), Logger: slog.New(slog.DiscardHandler)},
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			if p.Bearer == "" {
				return policy.Actor{}, nil
			}
			scopes, unknown := policy.ParseScopes(strings.Split(p.Bearer, ","))
			if unknown != nil {
				return policy.Actor{}, policy.Unauthenticated()
			}
			return policy.Actor{Credential: policy.PAT, CredentialID: p.Bearer, AccountID: "acme", Scopes: scopes}, nil
		},
	}
	row := func(id, method, path string, rule policy.Rule) op.Row {
		return op.Row{ID: id, Method: method, Path: path, Rule: rule, Group: "Things"}
	}
	h.ops = []op.Op{
		op.New(row("thing.list", "GET", "/v1/{owner}/things", policy.Require(policy.ReadTasks)),
			func(_ context.Context, in listIn) (op.Page[thing], error) {
				return op.Page[thing]{Data: []thing{{in.Owner, "a", h.made}}}, nil
			}),
		op.New(row("thing.make", "POST", "/v1/{owner}/things", policy.Require(policy.WriteTasks)),
			func(_ context.Context, in makeIn) (thing, error) {
				switch in.Name {
				case "taken":
					return thing{}, fault.Reason("name-taken", "Taken.").With("by", "x")
				case "boom":
					panic("the cause")
				}
				h.made++
				return thing{in.Owner, in.Name, h.made}, nil
			}),
		op.Stream(row("thing.tail", "GET", "/v1/{owner}/tail", policy.Require(policy.ReadTasks)), func(_ context.Context, in struct {
			Owner string `json:"owner"`
		}, s *op.Sink) error {
			if err := s.Send("1", "row", thing{Owner: in.Owner}); err != nil {
				return err
			}
			return fault.Missing("more")
		}),
	}
	return h
}

// text is a Tail that keeps the stream.
type text struct {
	strings.Builder
	status int
}

func (x *text) Open(status int) { x.status = status }

// ask calls an op in this process, without HTTP.
func (h *house) ask(ctx context.Context, id, bearer, key, args string) op.Answer {
	c := op.Call{Request: op.Request{ID: "mine", IP: "10.0.0.1"}, Presented: op.Presented{Bearer: bearer},
		Arguments: map[string]jsontext.Value{}}
	for i := range h.ops {
		if h.ops[i].ID == id {
			c.Op = &h.ops[i]
		}
	}
	if err := json.Unmarshal([]byte(args), &c.Arguments); err != nil {
		panic(err)
	}
	if key != "" {
		c.Keys = []string{key}
	}
	c.Changes = c.Op.Changes()
	tail := &text{}
	c.Tail = tail
	a := h.Do(ctx, &c)
	if a.Streamed {
		a.Status, a.Body = tail.status, []byte(tail.String())
	}
	return a
}

// over makes the call of ask as an HTTP request.
func (h *house) over(server *rest.Config, method, target, bearer, key, body string) op.Answer {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.RemoteAddr = "10.0.0.1:1"
	for name, value := range map[string]string{"X-Request-Id": "mine", "Content-Type": "application/json", "Idempotency-Key": key} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	rest.Handler(*server, h.ops).ServeHTTP(w, req)
	return op.Answer{
		Status: w.Code, Body: w.Body.Bytes(), ContentType: w.Header().Get("Content-Type"),
		Replayed: w.Header().Get("X-Idempotent-Replayed") == "true",
	}
}

// TestCallerWithoutHTTP holds that a caller without HTTP gets the answers that REST
// gives, by the same code: limits, credential, rule, input and retries.
func TestCallerWithoutHTTP(t *testing.T) {
	const all, things = "read:tasks,write:tasks", "/v1/o/things"
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		direct, served := build(d), build(d)
		server := &rest.Config{Pipeline: served.Pipeline}
		for _, c := range []struct {
			name, id, bearer, key, args string
			method, target, body        string
			status                      int
			says                        string
		}{
			{"success", "thing.list", all, "", `{"owner": "o"}`, "GET", things, "", 200, `"owner":"o"`},
			{"a change", "thing.make", all, "", `{"owner": "o", "name": "n"}`, "POST", things, `{"name": "n"}`, 200, `"made":1`},
			{"nobody", "thing.list", "", "", `{"owner": "o"}`, "GET", things, "", 401, "unauthenticated"},
			{"a bad credential", "thing.list", "x", "", `{"owner": "o"}`, "GET", things, "", 401, "unauthenticated"},
			{"a scope too few", "thing.make", "read:tasks", "", `{"owner": "o", "name": "n"}`, "POST", things, `{"name": "n"}`, 403,
				"write:tasks"},
			{"a wrong field", "thing.make", all, "", `{"owner": "o", "name": "longer"}`, "POST", things, `{"name": "longer"}`, 400,
				"at most 5"},
			{"a wrong pattern", "thing.make", all, "", `{"owner": "o", "name": "n", "mail": "m"}`, "POST", things,
				`{"name": "n", "mail": "m"}`, 400, "e-mail"},
			{"an unknown field", "thing.make", all, "", `{"owner": "o", "name": "n", "x": 1}`, "POST", things, `{"name": "n", "x": 1}`, 400,
				`"x"`},
			{"an unknown parameter", "thing.list", all, "", `{"owner": "o", "x": 1}`, "GET", "/v1/o/things?x=1", "", 400, `"x"`},
			{"a wrong parameter", "thing.list", all, "", `{"owner": "o", "deep": 1}`, "GET", "/v1/o/things?deep=1", "", 400,
				"true or false"},
			{"the domain's refusal", "thing.make", all, "", `{"owner": "o", "name": "taken"}`, "POST", things, `{"name": "taken"}`, 409,
				"name-taken"},
			{"a panic", "thing.make", all, "", `{"owner": "o", "name": "boom"}`, "POST", things, `{"name": "boom"}`, 500, "internal"},
			{"a stream", "thing.tail", all, "", `{"owner": "o"}`, "GET", "/v1/o/tail", "", 200, "event: error"},
			{"a key", "thing.make", all, "k", `{"owner": "o", "name": "k"}`, "POST", things, `{"name": "k"}`, 200, `"made":2`},
			{"its retry", "thing.make", all, "k", `{"owner": "o", "name": "k"}`, "POST", things, `{"name": "k"}`, 200, `"made":2`},
			{"its abuse", "thing.make", all, "k", `{"owner": "o", "name": "l"}`, "POST", things, `{"name": "l"}`, 409,
				"idempotency-conflict"},
			{"a bad key", "thing.make", all, "\x01", `{"owner": "o", "name": "l"}`, "POST", things, `{"name": "l"}`, 400,
				"Idempotency-Key"},
		} {
			key := c.key
			if key == "k" {
				key = "direct"
			}
			a := direct.ask(t.Context(), c.id, c.bearer, key, c.args)
			if a.Status != c.status || !strings.Contains(string(a.Body), c.says) || strings.Contains(string(a.Body), "cause") {
				t.Errorf("%s: %d %s", c.name, a.Status, a.Body)
			}
			b := served.over(server, c.method, c.target, c.bearer, c.key, c.body)
			if a.Streamed {
				a.ContentType = b.ContentType // the Tail of REST sets it
			}
			if a.Status != b.Status || string(a.Body) != string(b.Body) || a.ContentType != b.ContentType || a.Replayed != b.Replayed {
				t.Errorf("%s: answered\n%d %s %t %s, over REST\n%d %s %t %s", c.name,
					a.Status, a.ContentType, a.Replayed, a.Body, b.Status, b.ContentType, b.Replayed, b.Body)
			}
			if want := c.name == "its retry"; a.Replayed != want {
				t.Errorf("%s: replayed %t", c.name, a.Replayed)
			}
		}
	})
}

// TestLimitsWithoutHTTP holds that the limits count calls without HTTP as they count
// requests.
func TestLimitsWithoutHTTP(t *testing.T) {
	const bearer = "write:tasks"
	direct, served := build(nil), build(nil)
	server := &rest.Config{Pipeline: served.Pipeline}
	direct.Ledger, served.Ledger = nil, nil
	for i := range op.WritesPerConversation + 1 {
		a := direct.ask(t.Context(), "thing.make", bearer, "", `{"owner": "o", "name": "n"}`)
		b := served.over(server, "POST", "/v1/o/things", bearer, "", `{"name": "n"}`)
		want := 200
		if i == op.WritesPerConversation {
			want = 429
		}
		if a.Status != want || b.Status != want || string(a.Body) != string(b.Body) {
			t.Fatalf("call %d: %d %s, over REST %d %s", i, a.Status, a.Body, b.Status, b.Body)
		}
		if a.Limit == nil || a.Limit.Remaining != max(0, op.WritesPerConversation-1-i) || (a.RetryAfter > 0) != (want == 429) {
			t.Fatalf("call %d: limit %+v, retry after %d", i, a.Limit, a.RetryAfter)
		}
	}
}
