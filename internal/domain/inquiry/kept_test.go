package inquiry

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/repo"
)

// write writes files of acme/web, and removes others.
func (y *yard) write(files map[string][]byte, remove ...string) {
	y.t.Helper()
	p := codehost.Person{Name: "a", Email: "a@example.com"}
	sha, err := y.host.WriteFiles(y.t.Context(), codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}, codehost.WriteOptions{
		Branch: "main", Parent: y.head, Files: files, Remove: remove, Title: "More", Author: p, Committer: p,
	})
	if err != nil {
		y.t.Fatal(err)
	}
	y.head = sha
}

// kept are the last answers of who about acme/web.
func (y *yard) kept(who, query string) (p op.Page[KeptAnswer]) {
	y.t.Helper()
	req := httptest.NewRequest("GET", "/v1/repos/acme/web/answers"+query, nil)
	req.Header.Set("X-Caller", who)
	rec := y.serve(req)
	if rec.Code != 200 {
		y.t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		y.t.Fatal(err)
	}
	return p
}

// An answer is kept for who asked; its citation moves with its text, and is stale when that is
// edited or gone.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			const serve = "def serve(port):\n    # answers requests of the harbour until it is closed\n    return listen(port)\n"
			files := map[string]string{"config.py": "port = 8080\nhost = 1\nname = 2\n", "serve.py": serve}
			y := newYard(t, dbtest.Open(t, dbtest.DSN(t, e), db.Options{}), files, nil)
			y.model.say = always(`{"claims":[{"text":"` + "`port` is 8080." + `","citations":["config.py:1"]},
				{"text":"` + "`serve` answers requests of the harbour until it is closed." + `","citations":["serve.py:1-3"]}]}`)
			if a := y.ask("Which port does serve take?"); len(a.Citations) != 2 {
				t.Fatalf("%+v", a)
			}
			y.model.say = always(`{"claims":[]}`)
			y.ask("Which port is refused?")
			look := func(want string, stale bool) {
				t.Helper()
				p := y.kept("acme ada", "")
				if len(p.Data) != 1 {
					t.Fatalf("%d answers", len(p.Data))
				}
				a := p.Data[0]
				var got []string
				for _, n := range a.Now {
					at := "-"
					if n.Cite != nil {
						at = *n.Cite
					}
					got = append(got, string(n.State+" ")+at)
				}
				if strings.Join(got, ", ") != want || a.Stale != stale || a.Head == nil || *a.Head != y.head ||
					a.Question != "Which port does serve take?" || a.Answer.Citations[0].Text != "port = 8080" {
					t.Errorf("got %v of %+v, want %s", got, a, want)
				}
			}
			look("same config.py:1, same serve.py:1-3", false)
			y.write(map[string][]byte{"config.py": []byte("# Settings\n\nport = 8080\nhost = 1\nname = 2\n")})
			look("moved config.py:3, same serve.py:1-3", false)
			y.write(map[string][]byte{"src/run.py": []byte("import os\n\n" + serve)}, "serve.py")
			look("moved config.py:3, moved src/run.py:3-5", false)
			y.write(map[string][]byte{"config.py": []byte("# Settings\n\nport = 9090\nhost = 1\nname = 2\n")})
			look("stale -, moved src/run.py:3-5", true)
			y.write(map[string][]byte{"c.py": []byte(serve)}) // the file with its text is the renamed one
			look("stale -, moved c.py:1-3", true)
			y.write(nil, "src/run.py", "c.py")
			look("stale -, stale -", true)
			for _, other := range []string{"acme eve", "rival ada"} {
				req := httptest.NewRequest("GET", "/v1/repos/acme/web/answers", nil)
				req.Header.Set("X-Caller", other)
				if rec := y.serve(req); strings.Contains(rec.Body.String(), "8080") {
					t.Errorf("%s sees %s", other, rec.Body)
				}
			}
			y.forget(t)
		})
	}
}

// forget holds that the last 50 answers are kept, and pages go through them.
func (y *yard) forget(t *testing.T) {
	t.Helper()
	for range 51 {
		ctx := db.WithAccount(t.Context(), "acme")
		if err := y.svc.keepAnswer(ctx, repo.Ref{ID: "web"}, "person ada", "Which?", &evidence{}, Answer{}); err != nil {
			t.Fatal(err)
		}
	}
	n, query := 0, "?per_page=20"
	for {
		p := y.kept("acme ada", query)
		n += len(p.Data)
		if p.NextCursor == nil {
			break
		}
		query = "?per_page=20&cursor=" + *p.NextCursor
	}
	if n != 50 {
		t.Errorf("%d answers are kept", n)
	}
}
