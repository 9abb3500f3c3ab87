package kb

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// runs knows one run, of the repository web.
type runs struct{}

func (runs) OfRepo(_ *db.Tx, runID, repoID string) (bool, error) {
	return runID == "run-1" && repoID == "web", nil
}

// wiki is a server with the repository web of acme and shop of rival.
type wiki struct {
	t    *testing.T
	d    *db.DB
	send func(caller, method, path, body string) *httptest.ResponseRecorder
}

// onBoth runs fn on both databases. A caller is "account" for a person of it, or "account
// machine" for a token without one.
func onBoth(t *testing.T, fn func(t *testing.T, w wiki)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			for _, row := range []seed.Row{
				seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.Repo{ID: "web", Account: "acme"},
				seed.Repo{ID: "shop", Account: "rival"},
			} {
				if err := seed.Add(tx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		kernel := duetest.New(d, event.NewHub())
		s := New(Needs{DB: d, Due: kernel, Logger: slog.New(slog.DiscardHandler), Hosts: &codehost.Hosts{}, Runs: runs{},
			Model: &model{}, Tasks: &tasks{}})
		h := rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				account, machine := strings.CutSuffix(p.Account, " machine")
				a := policy.Actor{
					Credential: policy.PAT, CredentialID: "t", AccountID: account, Scopes: policy.Scopes(policy.ReadKB, policy.WriteKB),
				}
				if !machine {
					a.UserID = "ada"
				}
				return a, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context {
				return policy.With(db.WithAccount(ctx, a.AccountID), a)
			},
		}}, s.Ops())
		fn(t, wiki{t: t, d: d, send: func(caller, method, path, body string) *httptest.ResponseRecorder {
			req := httptest.NewRequest(method, path, strings.NewReader(body))
			req.Header.Set("X-Caller", caller)
			if body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			return rec
		}})
	})
}

// want sends a request and holds the status of its answer, which it reads into out.
func (w wiki) want(status int, caller, method, path, body string, out any) {
	w.t.Helper()
	rec := w.send(caller, method, path, body)
	if rec.Code != status {
		w.t.Fatalf("%s %s %.200s: %d, want %d; %.500s", method, path, body, rec.Code, status, rec.Body)
	}
	if out != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
			w.t.Fatal(err)
		}
	}
}

// put is the body of a request with a page.
func put(body string, more ...any) string {
	m := map[string]any{"body": body}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

const overview = "/v1/kb/web/pages/overview"

// Agents replace what agents wrote, and nothing of what a person did.
func TestTextOfPeopleStays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		const by = "acme machine"
		w.want(201, by, "PUT", overview, put("# Web\n\nAn agent wrote this.\n\nAnd this."), nil)
		w.want(200, "acme", "PUT", overview, put("# Web\n\nAn agent wrote this.\n\nNever  deploy\non Fridays."), nil)
		var p struct {
			Type       string
			Paragraphs []string
		}
		w.want(409, by, "PUT", overview, put("# Web\n\nAll new."), &p)
		if !strings.HasSuffix(p.Type, "/text-of-people") || !slices.Equal(p.Paragraphs, []string{"Never deploy on Fridays."}) {
			t.Errorf("%+v", p)
		}
		run := map[string]any{"run_id": "run-1"}
		w.want(409, "acme", "PUT", overview, put("# Web\n\nAll new.", "provenance", run), &p) // a person's token, a run's words
		w.want(409, by, "DELETE", overview, "", nil)
		// It may stand elsewhere, broken otherwise, with another text around it.
		w.want(200, by, "PUT", overview, put("Never deploy on Fridays.\n\n# Web\n\nAll new."), nil)
		w.want(200, "acme", "PUT", overview, put("All new.\n\nNever deploy on Fridays.", "provenance", run), nil)
		w.want(409, by, "PUT", overview, put("All new."), nil)
		// A person takes it out, and then it is gone for good.
		w.want(200, "acme", "PUT", overview, put("All new."), nil)
		w.want(200, by, "PUT", overview, put("Newer."), nil)
		w.want(200, by, "DELETE", overview, "", nil)
	})
}

// Pages of another account are unknown, whatever is done with them.
func TestPagesOfOthersAreUnknown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		w.want(201, "acme", "PUT", overview, put("ours"), nil)
		for _, x := range []struct{ method, path, body string }{
			{"GET", "pages", ""}, {"GET", "pages/overview", ""}, {"GET", "search?q=ours", ""}, {"PUT", "pages/overview", put("theirs")},
			{"DELETE", "pages/overview", ""}, {"GET", "versions/overview", ""}, {"GET", "diff/overview", ""},
			{"POST", "restore/overview", `{"version":1}`},
		} {
			foreign := w.send("rival", x.method, "/v1/kb/web/"+x.path, x.body)
			unknown := w.send("rival", x.method, "/v1/kb/none/"+x.path, x.body)
			a := strings.ReplaceAll(foreign.Body.String(), "/kb/web/", "/kb/none/")
			if foreign.Code != 404 || cutID(a) != cutID(unknown.Body.String()) {
				t.Errorf("%s %s: %d\n%s\n%s", x.method, x.path, foreign.Code, a, unknown.Body)
			}
		}
		var p Page
		w.want(200, "acme", "GET", overview, "", &p)
		if p.Body != "ours" || p.Version != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func cutID(s string) string {
	before, _, _ := strings.Cut(s, `"request_id"`)
	return before
}

// Of writers who have read one version, one is first and the others are told. None is lost of
// those who have not, and the lists are those of what is there.
func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		w.want(201, "acme", "PUT", overview, put("begin"), nil)
		var all sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		for i := range 8 {
			all.Go(func() {
				rec := w.send("acme", "PUT", overview, put(fmt.Sprintf("writer%d", i), "if_version", 1))
				mu.Lock()
				defer mu.Unlock()
				codes[rec.Code]++
			})
			all.Go(func() {
				w.send("acme", "PUT", fmt.Sprintf("/v1/kb/web/pages/p%d", i%3), put(fmt.Sprintf("common word%d", i)))
			})
		}
		all.Wait()
		if codes[200] != 1 || codes[409] != 7 {
			t.Errorf("%v", codes)
		}
		var p Page
		w.want(200, "acme", "GET", overview, "", &p)
		for i := range 8 {
			var hits op.Page[Hit]
			w.want(200, "acme", "GET", fmt.Sprintf("/v1/kb/web/search?q=writer%d&limit=25", i), "", &hits)
			found := slices.ContainsFunc(hits.Data, func(h Hit) bool { return h.Score > 0.7 })
			if found != strings.HasSuffix(p.Body, fmt.Sprint(i)) {
				t.Errorf("writer%d is found: %v; the page is %q", i, found, p.Body)
			}
		}
		var hits op.Page[Hit]
		w.want(200, "acme", "GET", "/v1/kb/web/search?q=common", "", &hits)
		if len(hits.Data) != 3 {
			t.Errorf("%+v", hits)
		}
	})
}

// A page may be as large as a page may be, and no larger; twenty versions are kept.
func TestLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		body := strings.Repeat("é", mostBody/2)
		w.want(201, "acme", "PUT", overview, put(body), nil)
		var p op.Problem
		w.want(400, "acme", "PUT", overview, put(body+"x"), &p)
		if p.Errors["body"] == nil {
			t.Errorf("%+v", p)
		}
		escaped := `{"body":"` + strings.Repeat(`\u0041`, mostBody) + `"}`
		w.want(200, "acme", "PUT", overview, escaped, nil)
		for i := range 22 {
			w.want(200, "acme", "PUT", overview, put(fmt.Sprint("version ", i)), nil)
		}
		var all op.Page[Version]
		w.want(200, "acme", "GET", "/v1/kb/web/versions/overview?per_page=100", "", &all)
		if len(all.Data) != mostVersions || all.Data[0].Version != 24 || all.Data[19].Version != 5 {
			t.Errorf("%d versions, %+v", len(all.Data), all.Data[0])
		}
		if err := w.d.Write(t.Context(), func(tx *db.Tx) error {
			index, err := hold(tx, "web")
			if err == nil {
				_, err = moveIndex.Exec(tx, moveIndexArgs{"web", mostPages, index.NextOrd})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		w.want(422, "acme", "PUT", "/v1/kb/web/pages/more", put("x"), &p)
		if !strings.HasSuffix(p.Type, "/too-many-pages") {
			t.Errorf("%+v", p)
		}
		w.want(200, "acme", "PUT", overview, put("one that there is"), nil)
	})
}

// What is written as a link leads to a page or a file, or nowhere.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		body string
		want []string // text, and the pages that it may mean
	}{
		{"[a](b)", []string{"b: guides/b b"}},
		{"[a](../b.md#top)", []string{"../b.md#top: b.md b"}},
		{"[a](/b) ![i](b.png)", []string{"/b: b", "b.png: guides/b.png b.png"}},
		{"[[b/c|text]] [[ -f x ]]", []string{"/b/c: b/c"}},
		{"[a](<b>) and [c](d \"title\")", []string{"b: guides/b b", "d: guides/d d"}},
		{"[x]: y\n[^1]: a note", []string{"y: guides/y y"}},
		{"[a](main.go:42)", []string{"main.go:42: guides/main.go main.go"}},
		{"[a](https://x/y) [b](#c) [d](mailto:x@y) [e](HTTP://z)", nil},
		{"[a](javascript:x) [b](//host/x) [c](data:text/html,x)", []string{"javascript:x: ", "//host/x: ", "data:text/html,x: "}},
		{"`[a](b)` ``[`](c)`` [d](e", []string{"e: guides/e e"}},
		{"```go\n[a](b)\n```\n~~~\n[c](d)\n~~~", nil},
		{"[a](../../../etc/passwd)", []string{"../../../etc/passwd: etc/passwd"}},
		{"[a](%62)", []string{"%62: guides/b b"}},
	} {
		var got []string
		for _, r := range references("guides/build", x.body) {
			got = append(got, r.text+": "+strings.Join(r.pages, " "))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s\nwant %q\ngot  %q", x.body, x.want, got)
		}
	}
}

// An address of a page is written in one way, but for a slash in its slug.
func TestAddressesOfPages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		w.want(201, "acme", "PUT", "/v1/kb/web/pages/a/b", put("x"), nil)
		for path, status := range map[string]int{
			"a/b": 200, "a%2Fb": 200, "%61/b": 200, "a//b": 404, "a/b/": 404, "a/./b": 404, "a/../a/b": 404, "a": 404, "": 404, "A/b": 404,
			"a%2F%2Fb": 404, "a/b%00": 404,
		} {
			if rec := w.send("acme", "GET", "/v1/kb/web/pages/"+path, ""); rec.Code != status {
				t.Errorf("%s: %d, want %d", path, rec.Code, status)
			}
		}
		for path, status := range map[string]int{"": 405, "/": 400, "/a%2Fc": 201, "/a//d": 404, "/..": 404, "/-a": 400, "/a/.b": 400} {
			if rec := w.send("acme", "PUT", "/v1/kb/web/pages"+path, put("x")); rec.Code != status {
				t.Errorf("PUT %s: %d, want %d: %s", path, rec.Code, status, rec.Body)
			}
		}
	})
}
