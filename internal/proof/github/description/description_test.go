package description_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
)

// exchanges records a real exchange and a real delivery of a peer.
func exchanges(t *testing.T) (github.Exchange, func(change func(map[string]any)) error) {
	t.Helper()
	var one github.Exchange
	var body []byte
	var header http.Header
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(sink.Close)
	s, err := github.Start(github.Options{
		Watch: func(e github.Exchange) { one = e },
		WatchDelivery: func(event, _ string, h http.Header, text []byte) {
			if event == "issues" {
				body, header = text, h
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r := s.Repo("acme/shop", github.NewRepo{Files: map[string]string{"a": "b\n"}})
	app := s.NewApp(github.NewApp{
		Name: "app", HookURL: sink.URL, Permissions: map[string]string{"issues": "read"}, Events: []string{"issues"},
	})
	app.Install(s.Org("acme"))
	r.OpenIssue(s.Person("ann"), "An issue", "")
	got, err := http.Get(s.API + "/repos/acme/shop/issues?state=all")
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusOK || body == nil {
		t.Fatalf("the peer answered %d and delivered %q", got.StatusCode, body)
	}
	judge := load(t)
	return one, func(change func(map[string]any)) error {
		var payload map[string]any
		if err := json.Unmarshal(body, &payload); err != nil {
			t.Fatal(err)
		}
		change(payload)
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		return judge.Delivery("issues", "opened", header, text)
	}
}

func load(t *testing.T) *description.Judge {
	t.Helper()
	judge, err := description.Load(description.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	return judge
}

// TestJudgeOfExchanges holds that the judge refuses what GitHub does not describe.
func TestJudgeOfExchanges(t *testing.T) {
	t.Parallel()
	good, _ := exchanges(t)
	judge := load(t)
	if err := judge.Exchange(good); err != nil {
		t.Fatalf("the real exchange is refused: %v", err)
	}
	for name, change := range map[string]struct {
		how  func(*github.Exchange)
		want string
	}{
		"an operation that is not described": {func(e *github.Exchange) {
			e.Operation = "GET /repos/{owner}/{repo}/moods"
		}, "no such operation"},
		"an operation that is not known": {func(e *github.Exchange) { e.Operation = "" }, "no such operation"},
		"a parameter that is not described": {func(e *github.Exchange) {
			e.Request = httptest.NewRequest(http.MethodGet, "/repos/acme/shop/issues?states=all", nil)
		}, "no parameter states"},
		"a parameter with a wrong value": {func(e *github.Exchange) {
			e.Request = httptest.NewRequest(http.MethodGet, "/repos/acme/shop/issues?state=ajar", nil)
		}, "parameter state"},
		"a member that is missing":       {func(e *github.Exchange) { e.Answer = without(t, e.Answer, "number") }, "number"},
		"a member of another type":       {func(e *github.Exchange) { e.Answer = with(t, e.Answer, "title", 5) }, "/0/title"},
		"a null that is not allowed":     {func(e *github.Exchange) { e.Answer = with(t, e.Answer, "created_at", nil) }, "/0/created_at"},
		"a status that is not described": {func(e *github.Exchange) { e.Status = http.StatusTeapot }, "status is not supported"},
	} {
		bad := good
		change.how(&bad)
		if err := judge.Exchange(bad); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: the judge says %v", name, err)
		}
	}
}

func first(t *testing.T, text []byte, change func(map[string]any)) []byte {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	change(list[0])
	out, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func without(t *testing.T, text []byte, name string) []byte {
	t.Helper()
	return first(t, text, func(o map[string]any) { delete(o, name) })
}

func with(t *testing.T, text []byte, name string, value any) []byte {
	t.Helper()
	return first(t, text, func(o map[string]any) { o[name] = value })
}

// TestJudgeOfDeliveries holds the same for deliveries.
func TestJudgeOfDeliveries(t *testing.T) {
	t.Parallel()
	_, deliver := exchanges(t)
	if err := deliver(func(map[string]any) {}); err != nil {
		t.Fatalf("the real delivery is refused: %v", err)
	}
	for name, change := range map[string]func(map[string]any){
		"no sender":        func(p map[string]any) { delete(p, "sender") },
		"another action":   func(p map[string]any) { p["action"] = "closed" },
		"an issue of text": func(p map[string]any) { p["issue"] = "1" },
		"no reactions":     func(p map[string]any) { delete(p["issue"].(map[string]any), "reactions") },
	} {
		if err := deliver(change); err == nil {
			t.Errorf("%s: the judge says nothing", name)
		}
	}
	if err := load(t).Delivery("moods", "changed", http.Header{}, []byte("{}")); err == nil {
		t.Error("a delivery that is not described passes")
	}
}

// TestJudgeOfQueries holds queries against GitHub's GraphQL schema.
func TestJudgeOfQueries(t *testing.T) {
	t.Parallel()
	judge := load(t)
	ask := func(query string, answers ...string) error {
		body, err := json.Marshal(map[string]string{"query": query})
		if err != nil {
			t.Fatal(err)
		}
		answer := `{"data": {"viewer": {"login": "ann", "databaseId": 5, "createdAt": "2026-01-02T03:04:05Z"}}}`
		if len(answers) > 0 {
			answer = answers[0]
		}
		return judge.Exchange(github.Exchange{Operation: "POST /graphql", Body: body, Status: http.StatusOK, Answer: []byte(answer)})
	}
	if err := ask(`query { viewer { login } }`); err != nil {
		t.Errorf("a good query is refused: %v", err)
	}
	for _, bad := range []string{
		`{"data": {"viewer": null}}`, `{"data": {}}`, `{"data": {"viewer": {"login": 5}}}`,
		`{"data": {"viewer": {"login": null}}}`, `{"data": {"viewer": []}}`,
	} {
		if ask(`query { viewer { login } }`, bad) == nil {
			t.Errorf("the answer %s passes", bad)
		}
	}
	for _, bad := range []string{`query { viewer { mood } }`, `mutation { resolveReviewThread(input: {thread: "x"}) { clientMutationId } }`, `query {`} {
		if ask(bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}
