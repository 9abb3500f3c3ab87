package modelkey

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/llm"
)

// lister is a model server that lists two models for whoever has the right key.
type lister struct {
	*httptest.Server
	status atomic.Int64 // of its next answers, if not 0
	key    atomic.Value // the right one
	during func()       // called within an answer; nil: nothing is
}

func newLister(t *testing.T, key string) *lister {
	l := &lister{}
	l.key.Store(key)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.during != nil {
			l.during()
		}
		switch status := int(l.status.Load()); {
		case status != 0:
			w.WriteHeader(status)
		case r.Header.Get("Authorization") != "Bearer "+l.key.Load().(string):
			http.Error(w, `{"error":{"message":"wrong key `+r.Header.Get("Authorization")+`"}}`, http.StatusUnauthorized)
		case r.URL.Path != "/v1/models":
			http.NotFound(w, r)
		default:
			w.Write([]byte(`{"data":[{"id":"large"},{"id":"coder"}]}`))
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// add adds a key to the account's pool that is sent to the server.
func (l *lister) add(f *fixture, key string) BillingKey {
	f.t.Helper()
	return f.add(object{"provider": "compatible", "base_url": l.URL, "key": key, "model": "m"})
}

// TestVerify: a verification notes what the provider says of the key; what is wrong with
// the provider says nothing of it.
func TestVerify(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		far := newLister(t, secret)
		k := far.add(f, secret)
		path := "/v1/billing/keys/" + k.ID + "/verify"
		verified := func(works bool, status, wrong string) {
			t.Helper()
			var out VerifiedKey
			text := f.call(200, "acme", "POST", path, nil, &out)
			said := ""
			if out.LastError != nil {
				said = *out.LastError
			}
			if out.ID != k.ID || out.Works != works || string(out.Status) != status || said != wrong || strings.Contains(text, secret) {
				t.Errorf("verified %s", text)
			}
		}
		verified(true, OK, "")
		far.key.Store("another")
		verified(false, Failing, llm.SlugAuth)
		far.status.Store(503)
		if text := f.call(503, "acme", "POST", path, nil, nil); !strings.Contains(text, llm.SlugUnavailable) {
			t.Errorf("a provider that is down: %s", text)
		}
		far.status.Store(0)
		far.key.Store(secret)
		verified(true, OK, "")
		f.call(404, "rival", "POST", path, nil, nil)

		far.during = func() {
			far.during = nil
			f.call(200, "acme", "POST", "/v1/billing/keys/"+k.ID+"/rotate", object{"key": "local-another-000001"}, nil)
		}
		if text := f.call(409, "acme", "POST", path, nil, nil); !strings.Contains(text, "key-rotated") {
			t.Errorf("rotated meanwhile: %s", text)
		}
		f.call(200, "acme", "DELETE", "/v1/billing/keys/"+k.ID, nil, nil)
		f.call(404, "acme", "POST", path, nil, nil)
		if got := f.events(k.ID); strings.Contains(got, secret) || strings.Count(got, `"works"`) != 3 {
			t.Errorf("recorded %s", got)
		}
	})
}

// events joins the data of the events about an object.
func (f *fixture) events(id string) (all string) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		rows, err := auditData.All(tx, id)
		all = strings.Join(rows, "\n")
		return err
	})
	return all
}

// TestRotate: a key keeps its id and place and has another secret; what a call says that
// is under way with the old one does not count for the new one.
func TestRotate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		k := f.add(object{"provider": "openai", "key": "sk-openai-first-00001", "priority": 7, "kind": "subscription"})
		note := func(version int64, slug string) {
			f.write(func(tx *db.Tx) error { return Note(tx, "acme", llm.Route{ID: k.ID, Version: version}, slug) })
		}
		note(1, llm.SlugAuth)
		path := "/v1/billing/keys/" + k.ID + "/rotate"
		var out BillingKey
		text := f.call(200, "acme", "POST", path, object{"key": " sk-openai-second-0002 "}, &out)
		if out.ID != k.ID || out.Masked != "…0002" || out.Status != Unverified || out.LastError != nil || out.Priority != 7 ||
			out.Kind != Subscription || strings.Contains(text, "second") {
			t.Errorf("rotated: %s", text)
		}
		note(1, llm.SlugQuota)
		if got, _ := f.pick("acme", Wish{APIs: api(llm.Chat)}); got.Key != "sk-openai-second-0002" {
			t.Errorf("calls have %v", got)
		}
		var page op.Page[BillingKey]
		if f.call(200, "acme", "GET", "/v1/billing/keys", nil, &page); page.Data[0].Status != Unverified {
			t.Errorf("an old call changed it: %+v", page.Data[0])
		}
		note(2, "")
		if f.call(200, "acme", "GET", "/v1/billing/keys", nil, &page); page.Data[0].Status != OK {
			t.Errorf("a new call did not: %+v", page.Data[0])
		}
		for _, bad := range []string{"", "  ", "sk with spaces"} {
			f.call(400, "acme", "POST", path, object{"key": bad}, nil)
		}
		f.call(404, "rival", "POST", path, object{"key": "sk-openai-third-00003"}, nil)
		scripted := f.add(object{"provider": "scripted"})
		f.call(400, "acme", "POST", "/v1/billing/keys/"+scripted.ID+"/rotate", object{"key": "sk-openai-third-00003"}, nil)
		if got := f.events(k.ID); strings.Contains(got, "sk-") || strings.Contains(got, "0002") {
			t.Errorf("recorded %s", got)
		}
	})
}

// TestKind: how a key is paid for is set; the same again records nothing.
func TestKind(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		k := f.add(object{"provider": "openai", "key": "sk-openai-first-00001"})
		path := "/v1/billing/keys/" + k.ID + "/kind"
		for range 2 {
			var out BillingKey
			if f.call(200, "acme", "PATCH", path, object{"kind": Subscription}, &out); out.Kind != Subscription {
				t.Errorf("set to %+v", out)
			}
		}
		if got := f.events(k.ID); strings.Count(got, `"kind"`) != 1 {
			t.Errorf("recorded %s", got)
		}
		f.call(400, "acme", "PATCH", path, object{"kind": "free"}, nil)
		f.call(404, "rival", "PATCH", path, object{"kind": Metered}, nil)
	})
}

// TestModelsOfAProvider: the models are asked for with the key of the body, which leaves
// no trace, or with one of the pool, and never at an address of the own network.
func TestModelsOfAProvider(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		far := newLister(t, secret)
		ask := func(status int, in object) string {
			t.Helper()
			return f.call(status, "acme", "POST", "/v1/billing/providers/models", in, nil)
		}
		in := object{"provider": "compatible", "base_url": far.URL + "/", "key": secret}
		var out ProviderModels
		f.call(200, "acme", "POST", "/v1/billing/providers/models", in, &out)
		if !slices.Equal(out.Models, []string{"coder", "large"}) || out.Provider != llm.Compatible {
			t.Errorf("listed %+v", out)
		}
		in["key"] = "wrong-0123456789abcdef"
		if text := ask(422, in); !strings.Contains(text, llm.SlugAuth) || strings.Contains(text, "wrong-0123456789abcdef") {
			t.Errorf("a wrong key: %s", text)
		}
		far.status.Store(500)
		if text := ask(503, in); !strings.Contains(text, llm.SlugUnavailable) {
			t.Errorf("a provider that is down: %s", text)
		}
		far.status.Store(0)
		ask(400, object{"provider": "compatible", "base_url": "http://10.0.0.1/v1", "key": secret})
		ask(400, object{"provider": "openai"})
		ask(400, object{"provider": "openai", "key": secret, "base_url": far.URL})
		var page op.Page[BillingKey]
		if f.call(200, "acme", "GET", "/v1/billing/keys", nil, &page); len(page.Data) != 0 {
			t.Errorf("it was kept: %+v", page.Data)
		}
		for _, o := range f.Ops() {
			if strings.HasSuffix(o.ID, ".provider_models") && o.Keyed() {
				t.Errorf("%s keeps a digest of the key for retries", o.ID)
			}
		}

		k := far.add(f, secret)
		f.call(200, "acme", "GET", "/v1/billing/keys/"+k.ID+"/models", nil, &out)
		if !slices.Equal(out.Models, []string{"coder", "large"}) {
			t.Errorf("of the pool: %+v", out)
		}
		f.call(404, "rival", "GET", "/v1/billing/keys/"+k.ID+"/models", nil, nil)
	})
}
