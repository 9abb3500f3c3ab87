package main

import "testing"

// Who sets a cap is told that it holds work without a price, as the dashboard tells it.
func TestACapHoldsWhatHasNoPrice(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/billing/spend-cap": `{"usd": null, "operator_usd": null}`,
		"PUT /v1/billing/spend-cap": `{"usd": 250, "operator_usd": null}`,
		"GET /v1/billing/usage":     `{"calls": 9, "unpriced_calls": 7}`})
	p := f.person(t)
	p.holds("budget set 250", 0, "in US dollars: 250.", "Undo: yardmaster budget set null",
		"a call of a model without a known price is refused, and its task is held: 7 calls of this month had none.")
	f.answers["GET /v1/billing/usage"] = `{"calls": null, "unpriced_calls": null}`
	p.holds("budget set 250", 0, "and its task is held.", "!of this month")
	f.answers["PUT /v1/billing/spend-cap"] = `{"usd": null, "operator_usd": 100}`
	p.holds("budget set null", 0, "in US dollars: none.", "and its task is held.")
	f.answers["PUT /v1/billing/spend-cap"] = `{"usd": null, "operator_usd": null}`
	p.holds("budget set null", 0, "in US dollars: none.", "!is held")
}

// What a member has cost is not known where calls without a price may be all that they had.
func TestCostOfAMember(t *testing.T) {
	t.Parallel()
	for unpriced, want := range map[string]string{"2": "–", "0": "0.00"} {
		usage := map[string]any{"calls": 9.0, "unpriced_calls": unpriced, "spent_usd": "1.50", "members": []any{
			map[string]any{"login": "ada", "spent_usd": "1.50"}, map[string]any{"login": "bob", "spent_usd": "0.00"},
		}}
		plainUsage(t.Context(), nil, usage)
		members, _ := usage["members"].([]any)
		if ada, bob := mapOf(members[0])["spent_usd"], mapOf(members[1])["spent_usd"]; ada != "1.50" || bob != want {
			t.Errorf("with %s calls without a price: %v and %v", unpriced, ada, bob)
		}
	}
}
