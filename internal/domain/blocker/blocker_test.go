package blocker

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	lockTask = db.Q[string](`SELECT id FROM tasks WHERE id = $1`).ForUpdate()
	countOf  = db.Q[int64](`SELECT COUNT(*) FROM audit WHERE kind = $1`)
)

type fixture struct {
	*Service
	t     *testing.T
	clock *atomic.Int64

	mu       sync.Mutex
	kept     []Value
	words    []string
	told     []string
	released bool
	asks     []FollowUp
	how      string // Resume returns it
	live     string // the id of the live run
	resumed  []string
	n        int
}

func each(t *testing.T, fn func(*testing.T, *fixture)) {
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	clock := &atomic.Int64{}
	clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	o := db.Options{Clock: func() time.Time { return time.UnixMicro(clock.Load()).UTC() }}
	dbtest.RunWith(t, o, func(t *testing.T, d *db.DB) {
		f := &fixture{t: t, clock: clock, how: Released}
		f.Service = New(Needs{DB: d, Ring: ring, BaseURL: "http://yard", Repos: others{f}, Vault: others{f}, Tasks: others{f},
			Asks: others{f}})
		FieldsRefused.On(d, func(_ *db.Tx, r Refusal) error {
			f.told = append(f.told, r.Text)
			return nil
		})
		f.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "repo", Account: "acme", Name: "web"},
				seed.Task{ID: "task", Account: "acme", Repo: "repo", Status: "held", Title: "T", Problem: "P", Branch: new("b")})
		})
		fn(t, f)
	})
}

func (f *fixture) ctx() context.Context {
	ctx := policy.With(context.Background(),
		policy.Actor{Credential: policy.PAT, CredentialID: "x", UserID: "ada", AccountID: "acme", Scopes: policy.Owner.Ceiling()})
	return db.WithAccount(ctx, "acme")
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.ctx(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// declare makes a blocker with fields "name" or "name:kind".
func (f *fixture) declare(question string, fields ...string) (blockerID string) {
	f.t.Helper()
	f.n++
	b := protocol.BlockerDeclared{ID: fmt.Sprint(f.n), Kind: MissingCredential, Question: question}
	for _, name := range fields {
		name, kind, ok := strings.Cut(name, ":")
		if !ok {
			kind = EnvSecret
		}
		b.Fields = append(b.Fields, protocol.BlockerField{Name: name, Kind: protocol.FieldKind(kind), Description: question})
	}
	for range 2 { // the second time is ignored
		f.write(func(tx *db.Tx) error { return f.Declare(tx, "repo", "task", "run", b) })
	}
	page, err := f.list(f.ctx(), listIn{PageIn: op.PageIn{PerPage: 100}})
	if err != nil {
		f.t.Fatal(err)
	}
	return page.Data[len(page.Data)-1].ID
}

func (f *fixture) put(blockerID string, values ...string) (Closed, error) {
	in := map[string]entry{}
	for i := 0; i+1 < len(values); i += 2 {
		in[values[i]] = entry{text: values[i+1]}
	}
	var out Closed
	err := f.DB.Write(f.ctx(), func(tx *db.Tx) error {
		r, err := f.lock(tx, blockerID)
		if err == nil {
			out, err = f.fillIn(tx, &r, in)
		}
		return err
	})
	return out, err
}

// TestTwoAtOnce: of two calls that fill in the same field at once, one succeeds; of
// two that fill in the last two fields at once, exactly one closes the blocker.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for range 5 {
			same := f.declare("?", "A")
			var won, lost atomic.Int64
			both := func(fn func(i int) error) {
				var wg sync.WaitGroup
				for i := range 4 {
					wg.Go(func() {
						switch err := fn(i); {
						case err == nil:
							won.Add(1)
						case fault.IsKind(err, fault.Conflict):
							lost.Add(1)
						default:
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			both(func(i int) error { _, err := f.put(same, "A", fmt.Sprint("value ", i)); return err })
			if won.Load() != 1 || lost.Load() != 3 {
				t.Fatalf("%d of four filled it in, %d were refused", won.Load(), lost.Load())
			}
			four := f.declare("?", "A", "B", "C", "D")
			var closings atomic.Int64
			both(func(i int) error {
				out, err := f.put(four, string(rune('A'+i)), "v")
				if out.State == Submitted {
					closings.Add(1)
				}
				return err
			})
			if closings.Load() != 1 {
				t.Fatalf("%d of four closed it", closings.Load())
			}
			both(func(int) error { _, err := f.answer(f.ctx(), answerIn{same, "late"}); return err })
			asked := f.declare("which?")
			won.Store(0)
			both(func(i int) error { _, err := f.answer(f.ctx(), answerIn{asked, fmt.Sprint("this ", i)}); return err })
			if won.Load() != 1 {
				t.Fatalf("%d of four answered it", won.Load())
			}
		}
	})
}

// TestFieldsThatCannotBeStored: a field that nobody could fill in is not in the form,
// and the run is told its name.
func TestFieldsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		b := f.declare("?", "A", "PATH", "A", "Bad Name:mcp_server", "good:mcp_server", strings.Repeat("x", 101)+":oauth_connection")
		spec, err := f.spec(f.ctx(), blockerIn{b})
		if err != nil || len(spec.Fields) != 2 || len(f.told) != 1 {
			t.Fatalf("form %+v, %v; told %q", spec, err, f.told)
		}
		for what, want := range map[string]bool{`"PATH": no`: true, `"Bad Name": the name of a server must be`: true,
			`x": a name must have`: true, `"A"`: false, `"good"`: false} {
			if strings.Contains(f.told[0], what) != want {
				t.Errorf("%s in %q: want %t", what, f.told[0], want)
			}
		}
		f.write(func(tx *db.Tx) error {
			return f.Declare(tx, "repo", "task", "run", protocol.BlockerDeclared{ID: "d", Kind: "decision", Question: "?",
				Fields: []protocol.BlockerField{{Name: "A", Kind: EnvSecret}}})
		})
		if len(f.told) != 2 || !strings.Contains(f.told[1], `"A": only a missing_credential`) {
			t.Errorf("told %q", f.told)
		}
		if f.declare("?", "A"); len(f.told) != 2 {
			t.Errorf("told %q of a form that is right", f.told)
		}
	})
}

func TestNothingLandsByHalves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		b := f.declare("?", "A", "B", "PATH", "A", "login:oauth_connection", "bad name!:mcp_server")
		spec, err := f.spec(f.ctx(), blockerIn{b})
		if err != nil || len(spec.Fields) != 3 || spec.Fields[2].Submittable {
			t.Fatalf("form %+v, %v", spec, err)
		}
		if _, err := f.put(b, "A", "fine", "B", "refused"); !fault.IsKind(err, fault.Unprocessable) ||
			strings.Contains(fmt.Sprint(err, fault.From(err).Fields), "refused\"") {
			t.Error(err)
		}
		if spec, _ = f.spec(f.ctx(), blockerIn{b}); spec.Fields[0].Landed {
			t.Error("a field landed though the request failed")
		}
		if _, err := f.put(b, "login", "x"); !fault.IsKind(err, fault.Unprocessable) {
			t.Error(err)
		}
		out, err := f.put(b, "A", "1", "B", "2")
		if err != nil || out.State != Open {
			t.Errorf("with a connection to make it is %+v, %v", out, err)
		}
	})
}

func TestWhatIsToldAndWhatIsNot(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		first, second := f.declare("Which key?", "KEY"), f.declare("Which colour?")
		if _, err := f.put(first, "KEY", "the-very-secret"); err != nil {
			t.Fatal(err)
		}
		if f.words[0] != "" {
			t.Errorf("told %q though more is waited for", f.words[0])
		}
		if _, err := f.answer(f.ctx(), answerIn{second, "Blue."}); err != nil {
			t.Fatal(err)
		}
		word := f.words[1]
		for _, want := range []string{"Which key?", "KEY", "Which colour?", "Blue.", "/-/env"} {
			if !strings.Contains(word, want) {
				t.Errorf("%q is not in %q", want, word)
			}
		}
		if strings.Contains(word, "very-secret") {
			t.Errorf("a value is in %q", word)
		}
		f.write(func(tx *db.Tx) error {
			ok, err := Cleared(tx, "task", "run")
			if !ok {
				t.Error("all is answered, and not cleared")
			}
			if ok, _ := Cleared(tx, "task", "another run"); ok {
				t.Error("cleared for a run that never asked")
			}
			return err
		})
		third := f.declare("And now?")
		f.how = ""
		out, err := f.answer(f.ctx(), answerIn{third, "Now it is over."})
		if err != nil || out.Kind != Filed || *out.AskID != "ask" || !strings.Contains(f.asks[0].Body, "Now it is over.") {
			t.Errorf("%+v, %v, %+v", out, err, f.asks)
		}
		fourth := f.declare("?", "A")
		f.write(func(tx *db.Tx) error { return Expire(tx, "task") })
		if _, err := f.put(fourth, "A", "x"); !fault.IsKind(err, fault.Conflict) {
			t.Error("an expired blocker takes values:", err)
		}
		f.write(func(tx *db.Tx) error {
			for kind, want := range map[string]int64{"blocker.declared": 4, "blocker.answered": 2, "blocker.submitted": 1,
				"blocker.expired": 1} {
				if n, err := countOf.One(tx, kind); err != nil || n != want {
					t.Errorf("%d audit rows %s, want %d, %v", n, kind, want, err)
				}
			}
			return nil
		})
	})
}

// TestServersAreTold: a run that asked for a server is told its address, and how to
// call it.
func TestServersAreTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		b := f.declare("Where are the tickets?", "tracker:mcp_server")
		value := jsontext.Value(`{"url": "https://Tracker.example.com:443/mcp?team=a", "transport": "sse", "token": "the-very-secret"}`)
		out, err := f.submit(f.ctx(), submitIn{b, map[string]jsontext.Value{"mcp:tracker": value}})
		if err != nil || len(out.Stanzas) != 1 || len(f.words) != 1 || f.kept[0].Host != "tracker.example.com" {
			t.Fatalf("%+v, %v; told %q; kept %+v", out, err, f.words, f.kept)
		}
		want := "The MCP server tracker (transport sse) is https://Tracker.example.com:443/mcp?team=a. " +
			"You reach it at $YARDMASTER_SECRETS_URL/tracker.example.com/mcp?team=a, without a credential: its token is added on the way.\n"
		if !strings.Contains(f.words[0], want) || strings.Contains(f.words[0], "very-secret") {
			t.Errorf("told %q", f.words[0])
		}
	})
}

// TestAnswerOutlivesAWithdrawal: an answer reaches the run although the last open
// blocker of the run is withdrawn.
func TestAnswerOutlivesAWithdrawal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		first, second := f.declare("Which colour?"), f.declare("Which key?")
		if _, err := f.answer(f.ctx(), answerIn{first, "Blue."}); err != nil {
			t.Fatal(err)
		}
		out, err := f.withdraw(f.ctx(), blockerIn{second})
		if err != nil || out.Kind != Released || !strings.Contains(f.words[1], "Blue.") || !strings.Contains(f.words[1], "withdrawn") ||
			!f.released {
			t.Errorf("%+v %v, told %q", out, err, f.words)
		}
	})
}

func TestPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		hostile := `"><script>alert(1)</script>{{.}}<img src=x onerror=alert(1)>` + "\u202etxt"
		b := f.declare(hostile, "KEY", "OLD", "URL:service_url", "tracker:mcp_server", hostile+":oauth_connection")
		page, err := f.list(f.ctx(), listIn{PageIn: op.PageIn{PerPage: 100}})
		if err != nil || page.Data[0].FixURL == nil {
			t.Fatal(page, err)
		}
		token := strings.TrimPrefix(*page.Data[0].FixURL, "http://yard/blocker-fix/")
		h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{BaseURL: "http://yard"}}, f.Ops())
		send := func(method, token, body string) *httptest.ResponseRecorder {
			req := httptest.NewRequest(method, "/blocker-fix/"+token, strings.NewReader(body))
			req.Header.Set("Accept", "text/html")
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			return w
		}
		w := send("GET", token, "")
		text := w.Body.String()
		if w.Code != 200 || strings.Contains(text, "<script") || strings.Contains(text, "<img") ||
			strings.Contains(text, "onerror=alert(1)>") {
			t.Errorf("%d %s", w.Code, text)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			t.Error(csp)
		}
		if strings.Count(text, "yours replaces it") != 1 {
			t.Error("the page does not say what is replaced")
		}
		form := url.Values{"fields.KEY": {"line 1\r\nline 2"}, "fields.OLD": {""}, "fields.URL": {" "},
			"fields.mcp:tracker.url":       {"https://mcp.example.com/x?a=b"},
			"fields.mcp:tracker.transport": {"sse"}, "fields.mcp:tracker.token": {"the-token-of-it"}}
		w = send("POST", token, form.Encode())
		if text = w.Body.String(); w.Code != 200 || !strings.Contains(text, "token_ref: MCP_TRACKER_TOKEN") ||
			strings.Contains(text, "the-token-of-it") || strings.Contains(text, "line 2") {
			t.Errorf("%d %s", w.Code, text)
		}
		slices.SortFunc(f.kept, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
		if want := []Value{{RepoID: "repo", Name: "KEY", Value: "line 1\nline 2"},
			{Name: "MCP_TRACKER_TOKEN", Value: "the-token-of-it", Host: "mcp.example.com"}}; !slices.Equal(f.kept, want) {
			t.Errorf("kept %+v", f.kept)
		}
		for _, c := range []struct {
			token, body string
			status      int
		}{
			{token, "fields.KEY=again", 409}, {token, "fields.NOPE=x", 422}, {token, "fields.URL=nowhere", 422}, {token, "", 400},
			{token, "fields.KEY=", 400},
			{"x" + token, "fields.OLD=x", 400}, {"eyJhbGciOiJub25lIn0.e30.", "fields.OLD=x", 400},
			{token, "fields.OLD=" + strings.Repeat("x", 1<<20), 413},
			{f.Ring.SignLink("action", seal.Link{Subject: b, Account: "acme", Expires: time.Now().Add(time.Hour)}), "fields.OLD=x", 400},
			{f.Ring.SignLink(linkPurpose, seal.Link{Subject: b, Account: "rival", Expires: time.Now().Add(1e6 * time.Hour)}),
				"fields.OLD=x", 410},
			{f.Ring.SignLink(linkPurpose, seal.Link{Subject: id.New(), Account: "acme", Expires: time.Now().Add(1e6 * time.Hour)}),
				"fields.OLD=x", 410},
		} {
			if w := send("POST", c.token, c.body); w.Code != c.status {
				t.Errorf("POST %.20s %.30s: %d, want %d: %s", c.token, c.body, w.Code, c.status, w.Body)
			}
		}
		f.clock.Add(time.Hour.Microseconds())
		for method, body := range map[string]string{"GET": "", "POST": "fields.OLD=x"} {
			if w := send(method, token, body); w.Code != http.StatusGone {
				t.Errorf("%s after an hour: %d", method, w.Code)
			}
		}
		if _, ok, err := f.FixLink(context.Background(), token); ok || err != nil {
			t.Error("an expired link is a credential:", err)
		}
	})
}

// TestLists: a page of blockers is read by an index, from its first row.
func TestLists(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"state = 'open' AND (created_at, id) >": "SEARCH blockers USING INDEX blockers_state (account_id=? AND state=? AND (created_at,id)>(?,?))\n",
		"state = $2 AND (created_at, id) <":     "SEARCH blockers USING INDEX blockers_state (account_id=? AND state=? AND (created_at,id)<(?,?))\n",
		"(created_at, id) < ($2, $3)":           "SEARCH blockers USING INDEX blockers_all (account_id=? AND (created_at,id)<(?,?))\n",
	} {
		if got := dbtest.Plan(t, "FROM blockers WHERE account_id = $1 AND "+part); got != want {
			t.Errorf("%s: %s", part, got)
		}
	}
}

// TestAnswersAreNoOracle holds that an answer which quotes a value of the vault is refused to
// those who may have secrets, and taken without the value from everybody else, who get the
// answer that any other text gets.
func TestAnswersAreNoOracle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		asked := []string{f.declare("One?"), f.declare("Two?"), f.declare("Three?")}
		member := policy.Actor{Credential: policy.PAT, CredentialID: "y", UserID: "ada", AccountID: "acme", Scopes: policy.Member.Ceiling()}
		as := db.WithAccount(policy.With(context.Background(), member), "acme")
		if _, err := f.answer(f.ctx(), answerIn{asked[0], "It is quoted."}); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("who may have secrets is told: %v", err)
		}
		right, err := f.answer(as, answerIn{asked[1], "It is quoted."})
		wrong, failed := f.answer(as, answerIn{asked[2], "It is guessed."})
		right.BlockerID, wrong.BlockerID = "", ""
		if err != nil || failed != nil || right.State != wrong.State || right.Kind != wrong.Kind {
			t.Errorf("a right guess: %+v, %v; a wrong one: %+v, %v", right, err, wrong, failed)
		}
		f.write(func(tx *db.Tx) error {
			w, err := Said(tx, f.Ring, "task", "run")
			if strings.Contains(w.Text, "quoted") || !strings.Contains(w.Text, masked) || len(w.Answers) != 2 ||
				!strings.HasPrefix(w.Answers[0], "a person answers: ") {
				t.Errorf("what agents read is %q, and what people see %q", w.Text, w.Answers)
			}
			return err
		})
	})
}
