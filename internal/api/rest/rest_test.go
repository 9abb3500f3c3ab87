package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

type listIn struct {
	Owner string `json:"owner"`
	State string `json:"state,omitempty" enum:"open,closed"`
	op.PageIn
}

type item struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

type part struct {
	Name string `json:"name" minLength:"1" maxLength:"5"`
}

type createIn struct {
	Owner  string            `json:"owner"`
	Title  string            `json:"title" minLength:"1" maxLength:"10"`
	Count  *int              `json:"count,omitempty" minimum:"1" maximum:"9"`
	Tags   []string          `json:"tags,omitempty" maxItems:"2" maxLength:"3"`
	Parts  []part            `json:"parts,omitempty"`
	Labels map[string]string `json:"labels,omitempty" maxLength:"4"`
	Note   *string           `json:"note" required:"true"`
}

var start = time.UnixMicro(1_700_000_000_000_000).UTC()

func handler(t *testing.T) http.Handler {
	t.Helper()
	ops := []op.Op{
		op.New(op.Row{ID: "item.list", Method: "GET", Path: "/v1/{owner}/items", Rule: policy.Require(policy.ReadTasks), Group: "Items",
			Paging: &op.Paging{Default: 2, Max: 3, Sorts: []string{"new", "old"}, Filters: map[string][]string{"state": {"open", "closed"}},
				Q: true}},
			func(_ context.Context, in listIn) (op.Page[item], error) {
				from := 0
				if at, _, ok, err := in.AfterTime(); err != nil {
					return op.Page[item]{}, err
				} else if ok {
					from = int(at-start.UnixMicro()) + 1
				}
				var rows []item
				for i := from; i < 5 && len(rows) < in.Size(); i++ {
					rows = append(rows, item{string(rune('a' + i)), start.Add(time.Duration(i) * time.Microsecond)})
				}
				return op.NewPage(in.PageIn, rows, func(i item) []string { return op.TimeKey(i.At, i.ID) }), nil
			}),
		op.New(op.Row{ID: "item.create", Method: "POST", Path: "/v1/{owner}/items", Rule: policy.Require(policy.WriteTasks), Group: "Items",
			Status: 201, MaxBody: 512},
			func(_ context.Context, in createIn) (item, error) {
				switch in.Title {
				case "boom":
					panic("the cause")
				case "dup":
					return item{}, fault.Reason("dup_title", "Taken.").With("by", "x")
				case "wait":
					return item{}, fault.New(fault.RateLimited, "queue-full", "Full.").After(1500 * time.Millisecond)
				}
				return item{ID: in.Owner + "/" + in.Title}, nil
			}),
		op.New(op.Row{ID: "item.delete", Method: "DELETE", Path: "/v1/{owner}/items/{id}", Rule: policy.PerRequest().OfUser(),
			Group: "Items"},
			func(_ context.Context, in struct {
				Owner string `json:"owner"`
				ID    string `json:"id"`
			}) (op.None, error) {
				return op.None{}, fault.Missing("item")
			}),
		op.Stream(op.Row{ID: "item.tail", Method: "GET", Path: "/v1/tail", Rule: policy.Public(), Group: "Items", Resume: true},
			func(_ context.Context, _ op.None, s *op.Sink) error {
				if _, err := s.Since(); err != nil {
					return err
				}
				return s.Send("7", "row", item{ID: "x"})
			}),
		op.Stream(op.Row{ID: "item.live", Method: "GET", Path: "/v1/live", Rule: policy.Public(), Group: "Items"},
			func(_ context.Context, _ op.None, s *op.Sink) error { return s.Send("", "", 1) }),
	}
	p := &op.Pipeline{BaseURL: "http://yard", Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
		switch p.Bearer {
		case "":
			return policy.Actor{}, nil
		case "full":
			return policy.Actor{Credential: policy.PAT, UserID: "u", Scopes: policy.Owner.Ceiling()}, nil
		case "machine":
			return policy.Actor{Credential: policy.PAT, Scopes: policy.Scopes(policy.ReadTasks)}, nil
		}
		return policy.Actor{}, policy.Unauthenticated()
	}}
	return rest.Handler(rest.Config{Pipeline: p}, ops)
}

func call(t *testing.T, h http.Handler, method, target, token, body string, header ...string) (*http.Response, map[string]any) {
	t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, rd)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	res := w.Result()
	var m map[string]any
	if strings.Contains(res.Header.Get("Content-Type"), "json") && method != "HEAD" {
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatalf("%s %s: body %q: %v", method, target, w.Body, err)
		}
	}
	return res, m
}

// TestMatrix holds requests that are easy to get wrong.
func TestMatrix(t *testing.T) {
	ok := `{"title":"x","note":null}`
	for name, c := range map[string]struct {
		method, target, token, body string
		header                      []string
		status                      int
		slug, field                 string // field: a key of errors
	}{
		"anonymous":              {"GET", "/v1/o/items", "", "", nil, 401, "unauthenticated", ""},
		"bad token":              {"GET", "/v1/o/items", "nope", "", nil, 401, "unauthenticated", ""},
		"under-scoped":           {"POST", "/v1/o/items", "machine", ok, nil, 403, "missing-scope", ""},
		"scope before body":      {"POST", "/v1/o/items", "machine", "{", nil, 403, "missing-scope", ""},
		"machine on personal":    {"DELETE", "/v1/o/items/1", "machine", "", nil, 403, "user-required", ""},
		"unknown path":           {"GET", "/nowhere", "full", "", nil, 404, "not-found", ""},
		"unclean path":           {"GET", "/v1//o/items", "full", "", nil, 404, "not-found", ""},
		"other method":           {"PUT", "/v1/o/items", "full", "", nil, 405, "method-not-allowed", ""},
		"domain 404":             {"DELETE", "/v1/o/items/1", "full", "", nil, 404, "not-found", ""},
		"list":                   {"GET", "/v1/o/items", "full", "", nil, 200, "", ""},
		"head":                   {"HEAD", "/v1/o/items", "full", "", nil, 200, "", ""},
		"page":                   {"GET", "/v1/o/items?page=2", "full", "", nil, 400, "invalid", "page"},
		"limit where no page is": {"DELETE", "/v1/o/items/1?limit=2", "full", "", nil, 400, "invalid", "limit"},
		"limit":                  {"GET", "/v1/o/items?limit=2", "full", "", nil, 400, "invalid", "limit"},
		"per_page over":          {"GET", "/v1/o/items?per_page=4", "full", "", nil, 400, "invalid", "per_page"},
		"per_page zero":          {"GET", "/v1/o/items?per_page=0", "full", "", nil, 400, "invalid", "per_page"},
		"per_page text":          {"GET", "/v1/o/items?per_page=x", "full", "", nil, 400, "invalid", "per_page"},
		"per_page twice":         {"GET", "/v1/o/items?per_page=1&per_page=2", "full", "", nil, 400, "invalid", "per_page"},
		"unknown parameter":      {"GET", "/v1/o/items?colour=red", "full", "", nil, 400, "invalid", "colour"},
		"unknown sort":           {"GET", "/v1/o/items?sort=size", "full", "", nil, 400, "invalid", "sort"},
		"filter without value":   {"GET", "/v1/o/items?filter=state", "full", "", nil, 400, "invalid", "filter"},
		"filter unknown key":     {"GET", "/v1/o/items?filter=size:1", "full", "", nil, 400, "invalid", "filter"},
		"filter unknown value":   {"GET", "/v1/o/items?filter=state:odd", "full", "", nil, 400, "invalid", "filter"},
		"garbage cursor":         {"GET", "/v1/o/items?cursor=%00", "full", "", nil, 400, "invalid", "cursor"},
		"foreign cursor":         {"GET", "/v1/o/items?cursor=eyJtIjoxLCJrIjpbIjEiLCJhIl19", "full", "", nil, 400, "invalid", "cursor"},
		"enum in query":          {"GET", "/v1/o/items?state=odd", "full", "", nil, 400, "invalid", "state"},
		"malformed query":        {"GET", "/v1/o/items?a=%zz", "full", "", nil, 400, "invalid", ""},
		"create":                 {"POST", "/v1/o/items", "full", ok, nil, 201, "", ""},
		"no body":                {"POST", "/v1/o/items", "full", "", nil, 400, "invalid", "title"},
		"required null member":   {"POST", "/v1/o/items", "full", `{"title":"x"}`, nil, 400, "invalid", "note"},
		"null for string":        {"POST", "/v1/o/items", "full", `{"title":null,"note":null}`, nil, 400, "invalid", "title"},
		"empty title":            {"POST", "/v1/o/items", "full", `{"title":"","note":null}`, nil, 400, "invalid", "title"},
		"eleven runes":           {"POST", "/v1/o/items", "full", `{"title":"ééééééééééé","note":null}`, nil, 400, "invalid", "title"},
		"ten runes":              {"POST", "/v1/o/items", "full", `{"title":"éééééééééé","note":null}`, nil, 201, "", ""},
		"zero is present":        {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"count":0}`, nil, 400, "invalid", "count"},
		"fraction":               {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"count":1.5}`, nil, 400, "invalid", "count"},
		"huge number":            {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"count":1e400}`, nil, 400, "invalid", "count"},
		"string for number":      {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"count":"1"}`, nil, 400, "invalid", "count"},
		"too many tags": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"tags":["a","b","c"]}`, nil, 400, "invalid",
			"tags"},
		"long tag": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"tags":["a","bbbb"]}`, nil, 400, "invalid",
			"tags.1"},
		"nested": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"parts":[{"name":"ok"},{"name":""}]}`, nil,
			400, "invalid", "parts.1.name"},
		"nested unknown": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"parts":[{"name":"ok","x":1}]}`, nil, 400,
			"invalid", "parts.0.x"},
		"map value": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"labels":{"k":"12345"}}`, nil, 400, "invalid",
			"labels.k"},
		"unknown member":      {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"colour":1}`, nil, 400, "invalid", "colour"},
		"wrong case":          {"POST", "/v1/o/items", "full", `{"Title":"x","note":null}`, nil, 400, "invalid", "Title"},
		"path member in body": {"POST", "/v1/o/items", "full", `{"title":"x","note":null,"owner":"p"}`, nil, 400, "invalid", "owner"},
		"duplicate member":    {"POST", "/v1/o/items", "full", `{"title":"x","title":"y","note":null}`, nil, 400, "invalid", "title"},
		"trailing bytes":      {"POST", "/v1/o/items", "full", ok + `{}`, nil, 400, "invalid", ""},
		"cut short":           {"POST", "/v1/o/items", "full", `{"title":"x"`, nil, 400, "invalid", ""},
		"invalid UTF-8":       {"POST", "/v1/o/items", "full", "{\"title\":\"\xff\",\"note\":null}", nil, 400, "invalid", ""},
		"array":               {"POST", "/v1/o/items", "full", `[]`, nil, 400, "invalid", ""},
		"deep":                {"POST", "/v1/o/items", "full", strings.Repeat("[", 200), nil, 400, "invalid", ""},
		"too large": {"POST", "/v1/o/items", "full", `{"title":"` + strings.Repeat("x", 600) + `"}`, nil, 413,
			"too-large", ""},
		"wrong media type": {"POST", "/v1/o/items", "full", ok, []string{"Content-Type", "text/plain"}, 415,
			"unsupported-media-type", ""},
		"panic says nothing":      {"POST", "/v1/o/items", "full", `{"title":"boom","note":null}`, nil, 500, "internal", ""},
		"conflict":                {"POST", "/v1/o/items", "full", `{"title":"dup","note":null}`, nil, 409, "dup_title", ""},
		"rate limited":            {"POST", "/v1/o/items", "full", `{"title":"wait","note":null}`, nil, 429, "queue-full", ""},
		"body where none is read": {"DELETE", "/v1/o/items/1", "full", `{"x":1}`, nil, 400, "invalid", ""},
		"resume refused":          {"GET", "/v1/live", "", "", []string{"Last-Event-ID", "3"}, 400, "invalid", "Last-Event-ID"},
		"stream refusal":          {"GET", "/v1/tail", "", "", []string{"Last-Event-ID", "bad"}, 400, "invalid", "Last-Event-ID"},
	} {
		t.Run(name, func(t *testing.T) {
			res, m := call(t, handler(t), c.method, c.target, c.token, c.body, c.header...)
			if res.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %v", res.StatusCode, c.status, m)
			}
			if res.Header.Get("X-Request-Id") == "" {
				t.Error("no X-Request-Id")
			}
			if c.slug == "" {
				return
			}
			if m["type"] != "http://yard/problems/"+c.slug || m["status"] != float64(c.status) ||
				m["request_id"] != res.Header.Get("X-Request-Id") {
				t.Errorf("problem %v, want slug %s", m, c.slug)
			}
			if res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("content type %s", res.Header.Get("Content-Type"))
			}
			if e, _ := m["errors"].(map[string]any); c.field != "" && e[c.field] == nil {
				t.Errorf("errors %v do not name %s", m["errors"], c.field)
			}
			if strings.Contains(m["detail"].(string), "cause") {
				t.Errorf("the cause leaked: %v", m["detail"])
			}
		})
	}
}

func TestProblemMembers(t *testing.T) {
	h := handler(t)
	_, m := call(t, h, "POST", "/v1/o/items", "full", `{"title":"dup","note":null}`, "X-Request-Id", "mine")
	if m["reason"] != "dup_title" || m["by"] != "x" || m["request_id"] != "mine" || m["instance"] != "/v1/o/items" {
		t.Errorf("problem %v", m)
	}
	res, m := call(t, h, "POST", "/v1/o/items", "full", `{"title":"wait","note":null}`)
	if res.Header.Get("Retry-After") != "2" || m["retry_after"] != 2.0 {
		t.Errorf("Retry-After %q, %v", res.Header.Get("Retry-After"), m)
	}
	if res, _ = call(t, h, "PUT", "/v1/o/items", "full", ""); res.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow %q", res.Header.Get("Allow"))
	}
	if res, _ = call(t, h, "GET", "/v1/o/items", "", ""); res.Header.Get("WWW-Authenticate") == "" {
		t.Error("no challenge on 401")
	}
	if res, _ = call(t, h, "GET", "/nowhere", "", "", "X-Request-Id", "bad\x01id"); res.Header.Get("X-Request-Id") == "bad\x01id" {
		t.Error("an unprintable request id was adopted")
	}
}

// TestPaging walks a collection with a page size that changes on the way.
func TestPaging(t *testing.T) {
	h := handler(t)
	var seen []string
	next, size := "", 0
	for {
		target := "/v1/o/items?per_page=" + string(rune('1'+size%3))
		if next != "" {
			target += "&cursor=" + next
		}
		size++
		_, m := call(t, h, "GET", target, "full", "")
		for _, r := range m["data"].([]any) {
			seen = append(seen, r.(map[string]any)["id"].(string))
		}
		var ok bool
		if next, ok = m["next_cursor"].(string); !ok {
			break
		}
	}
	if !slices.Equal(seen, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("walked %v", seen)
	}
	_, m := call(t, h, "GET", "/v1/o/items?sort=old", "full", "")
	cursor := m["next_cursor"].(string)
	if res, _ := call(t, h, "GET", "/v1/o/items?sort=old&cursor="+cursor, "full", ""); res.StatusCode != 200 {
		t.Error("the same sort with a cursor was refused")
	}
	if res, m := call(t, h, "GET", "/v1/o/items?sort=new&cursor="+cursor, "full", ""); res.StatusCode != 400 {
		t.Errorf("another sort with a cursor: %v", m)
	}
}

func TestStream(t *testing.T) {
	w := httptest.NewRecorder()
	handler(t).ServeHTTP(w, httptest.NewRequest("GET", "/v1/tail", nil))
	want := "retry: 3000\n\nid: 7\nevent: row\ndata: {\"id\":\"x\",\"at\":\"0001-01-01T00:00:00Z\"}\n\n"
	if w.Body.String() != want || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("stream %q, %v", w.Body.String(), w.Header())
	}
}

func TestTimesOnTheWire(t *testing.T) {
	_, m := call(t, handler(t), "GET", "/v1/o/items?per_page=3", "full", "")
	for _, r := range m["data"].([]any) {
		// They are a microsecond apart.
		if at := r.(map[string]any)["at"]; at != "2023-11-14T22:13:20Z" {
			t.Errorf("a time is %v", at)
		}
	}
}
