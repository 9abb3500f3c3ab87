package modelkey

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/seed"
)

// TestPreferenceHasNoSayWhereATemplateHas holds what a preference may change of a wish.
func TestPreferenceHasNoSayWhereATemplateHas(t *testing.T) {
	t.Parallel()
	liked := Pref{llm.Anthropic, "best"}
	for name, x := range map[string]struct {
		pref Pref
		in   Wish
		want Wish
		says bool
	}{
		"a template that leaves all open": {liked, Wish{Person: "ann"}, Wish{Person: "ann", Provider: llm.Anthropic, Model: "best"}, true},
		"the same provider": {liked, Wish{Person: "ann", Provider: llm.Anthropic},
			Wish{Person: "ann", Provider: llm.Anthropic, Model: "best"}, true},
		"no model": {Pref{Provider: llm.OpenAI}, Wish{Person: "ann"}, Wish{Person: "ann", Provider: llm.OpenAI}, true},
		"the template's address": {Pref{llm.Compatible, "m"}, Wish{Person: "ann", Provider: llm.Compatible, BaseURL: "http://a/v1"},
			Wish{Person: "ann", Provider: llm.Compatible, BaseURL: "http://a/v1", Model: "m"}, true},
		"another provider":  {liked, Wish{Person: "ann", Provider: llm.OpenAI}, Wish{Person: "ann", Provider: llm.OpenAI}, false},
		"a model":           {liked, Wish{Person: "ann", Model: "m"}, Wish{Person: "ann", Model: "m"}, false},
		"work of several":   {liked, Wish{}, Wish{}, false},
		"nothing is liked":  {Pref{}, Wish{Person: "ann"}, Wish{Person: "ann"}, false},
		"a model of nobody": {Pref{Model: "m"}, Wish{Person: "ann"}, Wish{Person: "ann"}, false},
	} {
		got, says := x.pref.Of(x.in)
		if got.Provider != x.want.Provider || got.Model != x.want.Model || got.BaseURL != x.want.BaseURL || says != x.says {
			t.Errorf("%s: %+v, %v", name, got, says)
		}
	}
}

// TestPreference: it is of a person in one account, is usable by a key that this person may
// use, and is recorded once.
func TestPreference(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error { return seed.Add(tx, seed.User{ID: "ann"}, seed.User{ID: "bob"}) })
		get := func(who string) (out LLMPref) {
			t.Helper()
			f.call(200, who, "GET", "/v1/me/llm-pref", nil, &out)
			return out
		}
		// What ann asked for may go over another key then than those that rest.
		wakes := func(what string, do func()) {
			t.Helper()
			news := f.Hub.Watch(event.QueueTopic("acme"))
			do()
			select {
			case <-news:
			default:
				t.Errorf("the queue is not looked at again when it is %s", what)
			}
		}
		like := object{"provider": "anthropic", "model": "best"}
		wakes("set", func() { f.call(200, "acme/ann", "PUT", "/v1/me/llm-pref", like, nil) })
		if out := get("acme/ann"); out.Provider == nil || *out.Provider != llm.Anthropic || *out.Model != "best" || out.Usable {
			t.Errorf("without a key: %+v", out)
		}
		for _, who := range []string{"acme/bob", "rival/ann"} {
			if out := get(who); out.Provider != nil || out.Model != nil || out.UpdatedAt != nil {
				t.Errorf("%s has %+v", who, out)
			}
		}
		f.own("bob", object{"provider": "anthropic", "key": "sk-ant-bob-00000001"})
		if get("acme/ann").Usable {
			t.Error("usable over somebody else's key")
		}
		f.add(object{"provider": "anthropic", "key": "sk-ant-shared-00001"})
		if !get("acme/ann").Usable {
			t.Error("not usable over the account's key")
		}
		recorded := f.events("ann")
		f.call(200, "acme/ann", "PUT", "/v1/me/llm-pref", like, nil)
		if again := f.events("ann"); again != recorded {
			t.Errorf("the same once more is recorded: %s", again)
		}
		var c ClearedPref
		wakes("cleared", func() { f.call(200, "acme/ann", "DELETE", "/v1/me/llm-pref", nil, &c) })
		if !c.Cleared || get("acme/ann").Provider != nil {
			t.Errorf("cleared: %+v", c)
		}
	})
}

// TestPreferenceEndsWithMembership: whoever leaves an account has none there any more.
func TestPreferenceEndsWithMembership(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "ann"}, seed.Member{Account: "acme", User: "ann"})
		})
		for _, who := range []string{"acme/ann", "rival/ann"} {
			f.call(200, who, "PUT", "/v1/me/llm-pref", object{"provider": "openai"}, nil)
		}
		f.write(func(tx *db.Tx) error { return PrefRightsChanged(tx, "ann") })
		f.write(func(tx *db.Tx) error {
			here, err := PrefOf(tx, "acme", "ann")
			if err != nil {
				return err
			}
			there, err := PrefOf(tx, "rival", "ann")
			if here.Provider != llm.OpenAI || there.Provider != "" {
				t.Errorf("left with %+v and %+v", here, there)
			}
			return err
		})
	})
}
