package modelkey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	auditData = db.Q[string](`SELECT data FROM audit WHERE object = $1 ORDER BY id`)
)

type fixture struct {
	*Service
	t       *testing.T
	http    http.Handler
	adopted []string
}

// names leads every name to one public address.
type names struct{}

func (names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

// guard lets this machine and every name be named.
func guard() *dial.Guard {
	g := dial.NewGuard(nil).WithLoopback()
	g.Names = names{}
	return g
}

type object = map[string]any

// Adopt implements Templates: it notes its calls.
func (f *fixture) Adopt(_ *db.Tx, _ string, _ llm.Provider, baseURL, model string) ([]string, error) {
	f.adopted = append(f.adopted, baseURL+" "+model)
	return []string{"default"}, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *fixture)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ring, err := seal.Parse(strings.Repeat("0f", 32))
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{t: t}
		f.Service = New(Needs{DB: d, Ring: ring, Hub: event.NewHub(), Guard: guard(), Templates: f})
		f.write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			err := seed.Add(tx, seed.Account{ID: "rival"})
			return err
		})
		f.http = rest.Handler(rest.Config{AccountHeader: "X-Caller", Pipeline: &op.Pipeline{
			Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
				account, user, _ := strings.Cut(p.Account, "/")
				return policy.Actor{Credential: policy.PAT, AccountID: account, UserID: user,
					Scopes: policy.Scopes(policy.ReadBilling, policy.WriteBilling, policy.SelfKeys)}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, f.Ops())
		fn(t, f)
	})
}

func (f *fixture) write(fn func(*db.Tx) error) {
	f.t.Helper()
	if err := f.DB.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// call sends a request as an account, or a person in one, ACCOUNT/USER; into may be nil.
func (f *fixture) call(status int, account, method, path string, in, into any) string {
	f.t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			f.t.Fatal(err)
		}
	}
	req := httptest.NewRequest(method, path, &body)
	req.Header.Set("X-Caller", account)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	f.http.ServeHTTP(rec, req)
	if rec.Code != status {
		f.t.Fatalf("%s %s %v: %d, want %d; %s", method, path, in, rec.Code, status, rec.Body)
	}
	if into != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			f.t.Fatal(err)
		}
	}
	return rec.Body.String()
}

func (f *fixture) add(in object) (out BillingKey) {
	f.t.Helper()
	f.call(201, "acme", "POST", "/v1/billing/keys", in, &out)
	return out
}

func (f *fixture) pick(account string, w Wish) (route llm.Route, ok bool) {
	f.t.Helper()
	err := f.DB.Read(f.t.Context(), func(tx *db.Tx) error {
		keys, err := Candidates(tx, account, w)
		if err != nil || len(keys) == 0 {
			return err
		}
		ok = true
		route, err = f.Open(keys[0].Key)
		route.ID, route.Version = "", 0
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return route, ok
}

// api is a wish for one wire form.
func api(a llm.API) []llm.API { return []llm.API{a} }

const secret = "sk-ant-0123456789abcdefWXYZ"

func TestKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		k := f.add(object{"provider": "anthropic", "label": "team", "key": secret, "capacity": 4})
		if k.Masked != "…WXYZ" || k.Kind != Metered || k.Priority != 100 || *k.Capacity != 4 || k.Status != Unverified || k.BaseURL != nil {
			t.Errorf("added %+v", k)
		}
		if short := f.add(object{"provider": "openai", "key": "sk-short", "priority": 200}); short.Masked != "…" ||
			short.Label != "openai" {
			t.Errorf("a short key shows as %+v", short)
		}
		f.add(object{"provider": "scripted", "priority": 0, "kind": "subscription"})

		var page op.Page[BillingKey]
		var order []string
		path := "/v1/billing/keys?per_page=2"
		for {
			text := f.call(200, "acme", "GET", path, nil, &page)
			if strings.Contains(text, secret) || strings.Contains(text, "sk-short") || strings.Contains(text, "v2.") {
				t.Errorf("the list shows a secret: %s", text)
			}
			for _, k := range page.Data {
				order = append(order, string(k.Provider))
			}
			if page.NextCursor == nil {
				break
			}
			path = "/v1/billing/keys?per_page=2&cursor=" + *page.NextCursor
		}
		if !slices.Equal(order, []string{"scripted", "anthropic", "openai"}) {
			t.Errorf("listed %v", order)
		}
		f.call(200, "rival", "GET", "/v1/billing/keys", nil, &page)
		if len(page.Data) != 0 {
			t.Errorf("the rival sees %+v", page.Data)
		}

		f.call(404, "rival", "DELETE", "/v1/billing/keys/"+k.ID, nil, nil)
		f.call(404, "acme", "DELETE", "/v1/billing/keys/"+id.New(), nil, nil)
		f.call(404, "acme", "DELETE", "/v1/billing/keys/nonsense", nil, nil)
		for _, want := range []bool{true, false} {
			var gone DeletedKey
			f.call(200, "acme", "DELETE", "/v1/billing/keys/"+k.ID, nil, &gone)
			if gone.Deleted != want {
				t.Errorf("deleted %v, want %v", gone.Deleted, want)
			}
		}
		if route, ok := f.pick("acme", Wish{Provider: llm.Anthropic, APIs: api(llm.Messages)}); ok {
			t.Errorf("a deleted key is picked: %v", route)
		}
		f.write(func(tx *db.Tx) error {
			rows, err := auditData.All(tx, k.ID)
			if len(rows) != 2 || strings.Contains(strings.Join(rows, ""), secret) {
				t.Errorf("audited %v", rows)
			}
			return err
		})
	})
}

func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for _, x := range []struct {
			in    object
			field string
		}{
			{object{"provider": "anthropic"}, "key"},
			{object{"provider": "anthropic", "key": " "}, "key"},
			{object{"provider": "anthropic", "key": "two words"}, "key"},
			{object{"provider": "scripted", "key": secret}, "key"},
			{object{"provider": "acme", "key": secret}, "provider"},
			{object{"provider": "compatible", "key": secret}, "base_url"},
			{object{"provider": "openai", "key": secret, "base_url": "https://models.test"}, "base_url"},
			{object{"provider": "compatible", "base_url": "http://models.test/v1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "http://10.0.0.1/v1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://u:p@models.test"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://models.test?key=1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "file:///etc"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://169.254.169.254/v1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://[::ffff:169.254.169.254]/v1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://[fe80::1%25eth0]/v1"}, "base_url"},
			{object{"provider": "compatible", "base_url": "https://[fd00:ec2::254]/v1"}, "base_url"},
			{object{"provider": "openai", "key": secret, "model": "gpt-5"}, "model"},
			{object{"provider": "bedrock", "key": secret}, "key"},
			{object{"provider": "bedrock", "key": "evil.test/:id:" + secret}, "key"},
			{object{"provider": "azure", "key": secret}, "base_url"},
			{object{"provider": "azure", "key": secret, "base_url": "https://1.1.1.1"}, "model"},
			{object{"provider": "compatible", "base_url": "http://127.0.0.1:1/v1"}, "model"},
			{object{"provider": "openai", "key": secret, "capacity": 0}, "capacity"},
			{object{"provider": "openai", "key": secret, "capacity": 257}, "capacity"},
			{object{"provider": "openai", "key": secret, "priority": 10001}, "priority"},
			{object{"provider": "openai", "key": secret, "kind": "free"}, "kind"},
		} {
			var p op.Problem
			text := f.call(400, "acme", "POST", "/v1/billing/keys", x.in, &p)
			if p.Errors[x.field] == nil || strings.Contains(text, secret) {
				t.Errorf("%v is refused with %s, want a word about %s", x.in, text, x.field)
			}
		}
		f.PlainHTTP = true
		f.add(object{"provider": "compatible", "base_url": "http://models.test/v1", "model": "m"})
		f.Guard = dial.NewGuard(nil)
		for _, address := range []string{"http://127.0.0.1/v1", "https://127.0.0.1/v1", "https://[::1]/v1", "https://10.0.0.1"} {
			text := f.call(400, "acme", "POST", "/v1/billing/keys",
				object{"provider": "compatible", "key": secret, "base_url": address}, nil)
			if !strings.Contains(text, dial.Unreachable) {
				t.Errorf("%s: %s", address, text)
			}
		}
	})
}

// TestModelOfAnEndpoint: an endpoint of the account's own is asked for its model,
// with the key, before the key is stored.
func TestModelOfAnEndpoint(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		lists := ""
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+secret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			io.WriteString(w, lists)
		}))
		defer far.Close()
		in := object{"provider": "compatible", "base_url": far.URL, "key": secret}
		for list, want := range map[string]string{
			`{"data":[]}`:                           "is required: the endpoint lists no model",
			`{"data":[{"id":"b"},{"id":"a"}]}`:      "is required: the endpoint has a, b",
			`nonsense`:                              "could not be asked",
			`{"object":"list","data":[{"id":"q"}]}`: "",
		} {
			lists = list
			if want != "" {
				var p op.Problem
				f.call(400, "acme", "POST", "/v1/billing/keys", in, &p)
				if said := p.Errors["model"]; len(said) != 1 || !strings.Contains(said[0], want) || strings.Contains(said[0], secret) {
					t.Errorf("%s: refused with %v", list, p.Errors)
				}
				continue
			}
			var out AddedKey
			f.call(201, "acme", "POST", "/v1/billing/keys", in, &out)
			if out.Model == nil || *out.Model != "q" || !slices.Equal(out.Templates, []string{"default"}) ||
				!slices.Equal(f.adopted, []string{far.URL + " q"}) {
				t.Errorf("added %+v, adopted %v", out, f.adopted)
			}
		}
		in["model"] = "named" // then nobody is asked
		far.Close()
		var out AddedKey
		if f.call(201, "acme", "POST", "/v1/billing/keys", in, &out); *out.Model != "named" {
			t.Errorf("added %+v", out)
		}
		var page op.Page[BillingKey]
		if f.call(200, "acme", "GET", "/v1/billing/keys", nil, &page); len(page.Data) != 2 {
			t.Errorf("what was refused was kept: %+v", page.Data)
		}
	})
}

func TestFirstCandidate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.add(object{"provider": "openai", "key": "sk-openai-second-0001"})
		f.add(object{"provider": "openai", "key": "sk-openai-third-00001"})
		f.add(object{"provider": "anthropic", "key": secret, "priority": 5})
		f.add(object{"provider": "compatible", "base_url": "http://127.0.0.1:11434/v1/", "priority": 300, "model": "m"})
		for _, x := range []struct {
			wish Wish
			want llm.Route
		}{
			{Wish{APIs: api(llm.Messages)}, llm.Route{Provider: llm.Anthropic, Key: secret}},
			{Wish{APIs: api(llm.Chat)}, llm.Route{Provider: llm.OpenAI, Key: "sk-openai-second-0001"}},
			{Wish{APIs: api(llm.Responses), Provider: llm.OpenAI}, llm.Route{Provider: llm.OpenAI, Key: "sk-openai-second-0001"}},
			{Wish{APIs: api(llm.Chat), Provider: llm.Compatible, BaseURL: "http://127.0.0.1:11434/v1"},
				llm.Route{Provider: llm.Compatible, BaseURL: "http://127.0.0.1:11434/v1"}},
			{Wish{APIs: api(llm.Chat), Provider: llm.Compatible, BaseURL: "http://evil.test/v1"}, llm.Route{}},
			{Wish{APIs: api(llm.Messages), Provider: llm.OpenAI}, llm.Route{}},
			{Wish{APIs: api(llm.Chat), Provider: llm.Scripted}, llm.Route{}},
		} {
			got, ok := f.pick("acme", x.wish)
			if got != x.want || ok != (x.want != llm.Route{}) {
				t.Errorf("%+v picks %v, want %v", x.wish, got, x.want)
			}
		}
		if got, ok := f.pick("rival", Wish{APIs: api(llm.Chat)}); ok {
			t.Errorf("the rival gets %v", got)
		}
	})
}

func TestNote(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		k := f.add(object{"provider": "anthropic", "key": secret})
		for _, x := range []struct{ slug, want string }{
			{llm.SlugUnavailable, Unverified}, {"", OK}, {llm.SlugAuth, Failing}, {llm.SlugRateLimit, Failing}, {"", OK},
		} {
			f.write(func(tx *db.Tx) error { return Note(tx, "acme", llm.Route{ID: k.ID, Version: 1}, x.slug) })
			var page op.Page[BillingKey]
			f.call(200, "acme", "GET", "/v1/billing/keys", nil, &page)
			if got := page.Data[0]; string(got.Status) != x.want || (got.LastError != nil) != (x.want == Failing) ||
				(got.LastVerifiedAt == nil) != (x.want == Unverified) {
				t.Errorf("after %q: %+v, want %s", x.slug, got, x.want)
			}
		}
	})
}

// TestSealedForOneAccount: a sealed key that ends up in another account's row
// does not open there.
func TestSealedForOneAccount(t *testing.T) {
	t.Parallel()
	ring, err := seal.Parse(strings.Repeat("0f", 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Needs: Needs{Ring: ring}}
	sealed := ring.Seal(purpose("acme"), []byte(secret))
	if r, err := s.Open(Key{Provider: llm.Anthropic, owner: "acme", sealed: sealed}); err != nil || r.Key != secret {
		t.Errorf("opened %v, %v", r, err)
	}
	if _, err := s.Open(Key{Provider: llm.Anthropic, owner: "rival", sealed: sealed}); err == nil {
		t.Error("it opens for another account")
	}
}

// TestFailingKeysComeLast: a failing key is used where no other fits, until it works
// again.
func TestFailingKeysComeLast(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		first := f.add(object{"provider": "openai", "key": "sk-openai-first-00001", "priority": 1})
		second := f.add(object{"provider": "openai", "key": "sk-openai-second-0001", "priority": 2})
		note := func(id, slug string) {
			f.write(func(tx *db.Tx) error { return Note(tx, "acme", llm.Route{ID: id, Version: 1}, slug) })
		}
		picks := func(want string) {
			t.Helper()
			if got, _ := f.pick("acme", Wish{APIs: api(llm.Chat)}); got.Key != want {
				t.Errorf("picks %s, want %s", got.Key, want)
			}
		}
		picks("sk-openai-first-00001")
		note(first.ID, llm.SlugQuota)
		picks("sk-openai-second-0001")
		note(second.ID, llm.SlugAuth)
		picks("sk-openai-first-00001")
		note(second.ID, "")
		picks("sk-openai-second-0001")
		note(first.ID, "")
		picks("sk-openai-first-00001")
	})
}

// TestPrices: an account's price of a model goes before its price of a key, and that
// before the server's table; 0 is a price.
func TestPrices(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		k := f.add(object{"provider": "compatible", "base_url": "http://127.0.0.1:11434/v1", "model": "m"})
		cost := func(want string) {
			t.Helper()
			f.write(func(tx *db.Tx) error {
				keys, err := Candidates(tx, "acme", Wish{APIs: api(llm.Chat)})
				if err != nil {
					return err
				}
				all, err := Prices(tx, "acme", keys, llm.DefaultPrices())
				if err != nil {
					return err
				}
				p := all[0]
				got := "none"
				if c := p.Cost(llm.Compatible, "qwen", "", llm.Tokens{InputTokens: 1000, OutputTokens: 1_000_000}); c != nil {
					got = fmt.Sprint(*c)
				}
				known, err := Priced(tx, "acme", k.ID, llm.Compatible, "qwen", llm.DefaultPrices())
				if got != want || known != (want != "none") {
					t.Errorf("it costs %s, known %v; want %s", got, known, want)
				}
				return err
			})
		}
		cost("none")
		f.call(200, "acme", "PUT", "/v1/billing/keys/"+k.ID+"/price", object{"price": object{"input_usd": 0, "output_usd": 0}}, nil)
		cost("0")
		f.call(200, "acme", "PUT", "/v1/billing/prices",
			object{"provider": "compatible", "model": "qwen", "input_usd": 1, "output_usd": 2.5}, nil)
		cost("2501000")
		f.call(200, "rival", "PUT", "/v1/billing/prices",
			object{"provider": "compatible", "model": "qwen", "input_usd": 7, "output_usd": 7}, nil)
		cost("2501000")
		f.call(200, "acme", "DELETE", "/v1/billing/prices?provider=compatible&model=qwen", nil, nil)
		cost("0")
		f.call(200, "acme", "PUT", "/v1/billing/keys/"+k.ID+"/price", object{"price": nil}, nil)
		cost("none")
	})
}
