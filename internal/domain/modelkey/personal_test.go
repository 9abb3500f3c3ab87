package modelkey

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/seed"
)

// own adds a key of a person of acme.
func (f *fixture) own(person string, in object) (out BillingKey) {
	f.t.Helper()
	f.call(201, "acme/"+person, "POST", "/v1/me/keys", in, &out)
	return out
}

// order lists the ids of the candidates of a wish.
func (f *fixture) order(account string, w Wish) (ids []string) {
	f.t.Helper()
	err := f.DB.Read(f.t.Context(), func(tx *db.Tx) error {
		all, err := Candidates(tx, account, w)
		for _, c := range all {
			if _, err := f.Open(c.Key); err != nil {
				f.t.Errorf("a candidate does not open: %v", err)
			}
			ids = append(ids, c.ID)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return ids
}

// TestKeyOfAPersonPaysForThatPersonAlone: it goes before the account's for its owner's work
// in its account, and is not there for anybody else, nor for work of nobody.
func TestKeyOfAPersonPaysForThatPersonAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		shared := f.add(object{"provider": "openai", "key": "sk-openai-shared-0001", "priority": 1}).ID
		second := f.own("ann", object{"provider": "openai", "key": "sk-openai-ann-000002"}).ID
		first := f.own("ann", object{"provider": "openai", "key": "sk-openai-ann-000001", "priority": 50}).ID
		bobs := f.own("bob", object{"provider": "openai", "key": "sk-openai-bob-000001"}).ID
		for _, x := range []struct {
			account, person string
			want            []string
		}{
			{"acme", "ann", []string{first, second, shared}},
			{"acme", "bob", []string{bobs, shared}},
			{"acme", "eve", []string{shared}},
			{"acme", "", []string{shared}},
			{"rival", "ann", nil},
		} {
			if got := f.order(x.account, Wish{APIs: api(llm.Chat), Person: x.person}); !slices.Equal(got, x.want) {
				t.Errorf("%s in %s has %q, want %q", x.person, x.account, got, x.want)
			}
		}
		f.write(func(tx *db.Tx) error {
			return Note(tx, "acme", llm.Route{ID: first, Version: 1}, llm.SlugQuota)
		})
		if got := f.order("acme", Wish{APIs: api(llm.Chat), Person: "ann"}); !slices.Equal(got, []string{second, shared, first}) {
			t.Errorf("with one that is failing: %q", got)
		}
	})
}

// TestStandIns: a key of a person is used where it can stand in for the account's.
func TestStandIns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const here, there = "http://127.0.0.1:11434/v1", "http://127.0.0.1:11435/v1"
		own := map[string]string{
			f.own("ann", object{"provider": "openai", "key": "sk-openai-ann-000001"}).ID: "openai",
			f.own("ann", object{"provider": "compatible", "base_url": here}).ID:          "here",
			f.own("ann", object{"provider": "compatible", "base_url": there}).ID:         "there",
		}
		check := func(w Wish, want string) {
			t.Helper()
			w.APIs, w.Person = api(llm.Chat), "ann"
			var got []string
			for _, id := range f.order("acme", w) {
				if own[id] != "" {
					got = append(got, own[id])
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("for %+v: %q, want %s", w, got, want)
			}
		}
		check(Wish{}, "openai")
		check(Wish{Model: "m"}, "")
		check(Wish{Provider: llm.OpenAI, Model: "m"}, "openai")
		check(Wish{Provider: llm.Compatible, BaseURL: there, Model: "m"}, "there")
		f.add(object{"provider": "compatible", "base_url": here, "model": "m", "price": object{"input_usd": 0, "output_usd": 0}})
		check(Wish{Model: "m"}, "here")
		f.write(func(tx *db.Tx) error {
			keys, err := Candidates(tx, "acme", Wish{APIs: api(llm.Chat), Model: "m", Person: "ann"})
			if err != nil {
				return err
			}
			prices, err := Prices(tx, "acme", keys, llm.DefaultPrices())
			if len(keys) != 2 || !prices[0].Knows(llm.Compatible, "m") {
				t.Errorf("what stands in for a key with a price has none: %+v", keys)
			}
			return err
		})
		f.add(object{"provider": "openai", "key": "sk-openai-shared-0001", "priority": 1})
		check(Wish{Model: "m"}, "openai")
	})
}

// TestOwnKeys: a person keeps their own keys, which nobody else sees or changes, whoever
// may write billing included.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		far := newLister(t, secret)
		k := f.own("ann", object{"provider": "compatible", "base_url": far.URL, "key": secret, "kind": "subscription", "capacity": 4})
		if k.Priority != 100 || *k.Capacity != 4 || k.Kind != Subscription || k.Label != "compatible" || len(f.adopted) != 0 {
			t.Errorf("added %+v, adopted %q", k, f.adopted)
		}
		path := "/v1/me/keys/" + k.ID
		change := func(status int, who, method, path string, in object) (out BillingKey) {
			t.Helper()
			if text := f.call(status, who, method, path, in, nil); status == 200 {
				if err := json.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		if out := change(200, "acme/ann", "PATCH", path+"/capacity", object{"capacity": nil}); out.Capacity != nil {
			t.Errorf("cleared: %+v", out)
		}
		if out := change(200, "acme/ann", "PATCH", path+"/priority", object{"priority": 0}); out.Priority != 0 {
			t.Errorf("placed: %+v", out)
		}
		if out := change(200, "acme/ann", "PATCH", path+"/kind", object{"kind": Metered}); out.Kind != Metered {
			t.Errorf("set: %+v", out)
		}
		var v VerifiedKey
		if f.call(200, "acme/ann", "POST", path+"/verify", nil, &v); !v.Works || v.Status != OK {
			t.Errorf("verified %+v", v)
		}
		out := change(200, "acme/ann", "POST", path+"/rotate", object{"key": "local-another-000001"})
		if out.ID != k.ID || out.Masked != "…0001" {
			t.Errorf("rotated %+v", out)
		}
		for _, x := range []struct {
			path string
			in   object
		}{
			{"/capacity", object{"capacity": 0}}, {"/capacity", object{"capacity": 257}}, {"/capacity", object{}},
			{"/priority", object{"priority": -1}}, {"/priority", object{"priority": 10001}}, {"/kind", object{"kind": "free"}},
		} {
			change(400, "acme/ann", "PATCH", path+x.path, x.in)
		}
		for _, who := range []string{"acme/bob", "rival/ann"} {
			change(404, who, "PATCH", path+"/priority", object{"priority": 1})
			change(404, who, "POST", path+"/rotate", object{"key": "local-another-000002"})
			change(404, who, "POST", path+"/verify", nil)
			change(404, who, "DELETE", path, nil)
		}
		for method, of := range map[string]string{"DELETE": "", "POST": "/verify", "GET": "/models", "PUT": "/price"} {
			var in object
			if method == "PUT" {
				in = object{"price": nil}
			}
			change(404, "acme/ann", method, "/v1/billing/keys/"+k.ID+of, in)
		}
		change(403, "acme", "PATCH", path+"/priority", object{"priority": 1})
		var page op.Page[BillingKey]
		for who, want := range map[string]int{"acme/ann": 1, "acme/bob": 0, "rival/ann": 0} {
			if f.call(200, who, "GET", "/v1/me/keys", nil, &page); len(page.Data) != want {
				t.Errorf("%s has %+v", who, page.Data)
			}
		}
		if f.call(200, "acme/ann", "GET", "/v1/billing/keys", nil, &page); len(page.Data) != 0 {
			t.Errorf("the account has %+v", page.Data)
		}
		f.call(400, "acme/ann", "POST", "/v1/me/keys", object{"provider": "compatible", "base_url": "http://10.0.0.1", "key": secret}, nil)
		var gone DeletedKey
		for _, want := range []bool{true, false} {
			if f.call(200, "acme/ann", "DELETE", path, nil, &gone); gone.Deleted != want {
				t.Errorf("deleted %+v", gone)
			}
		}
		if got := f.events(k.ID); strings.Contains(got, secret) || strings.Contains(got, "local-another") {
			t.Errorf("recorded %s", got)
		}
	})
}

// TestSealedForItsOwner: a rotation of the master key knows what each key is sealed for,
// and a person's opens for nobody else.
func TestSealedForItsOwner(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.add(object{"provider": "openai", "key": secret})
		f.own("ann", object{"provider": "openai", "key": secret})
		f.write(func(tx *db.Tx) error {
			rows, err := Sealed.List(tx, "", 10)
			if len(rows) != 2 || rows[0].Account == rows[1].Account {
				t.Errorf("listed %+v", rows)
			}
			for i, r := range rows {
				if plain, err := f.Ring.Unseal(Sealed.Purpose(r), r.Sealed); err != nil || string(plain) != secret {
					t.Errorf("of %s: %v", r.Account, err)
				}
				if _, err := f.Ring.Unseal(Sealed.Purpose(rows[1-i]), r.Sealed); err == nil {
					t.Errorf("of %s: it opens for another", r.Account)
				}
			}
			return err
		})
	})
}

// TestKeysOfThoseWhoLeave: a person who is no member any more has no keys there.
func TestKeysOfThoseWhoLeave(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "ann"}, seed.Member{Account: "acme", User: "ann"})
		})
		wish := Wish{APIs: api(llm.Chat), Person: "ann"}
		in := object{"provider": "openai", "key": "sk-openai-ann-000001"}
		stays := f.own("ann", in).ID
		var goes BillingKey
		f.call(201, "rival/ann", "POST", "/v1/me/keys", in, &goes)
		f.write(func(tx *db.Tx) error { return RightsChanged(tx, "ann") })
		if here, there := f.order("acme", wish), f.order("rival", wish); !slices.Equal(here, []string{stays}) || len(there) != 0 {
			t.Errorf("left with %q and %q", here, there)
		}
		if !strings.Contains(f.events(goes.ID), "openai") {
			t.Errorf("nothing is recorded of its end")
		}
	})
}
