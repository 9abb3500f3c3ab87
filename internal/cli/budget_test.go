package cli

import (
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
)

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

// A price that is set, changed or taken away comes back with the command that is printed.
func TestPricesComeBack(t *testing.T) {
	t.Parallel()
	at := "/v1/billing/keys/" + someID
	f := newFake(t, map[string]string{
		"GET /v1/billing/keys":      `{"data": [{"id": "` + someID + `", "price": {"input_usd": 0.2, "output_usd": 0.8}}]}`,
		"PUT " + at + "/price":      `{"id": "` + someID + `"}`,
		"GET /v1/billing/prices":    `{"data": [{"provider": "openai", "model": "gpt-5", "input_usd": 1.25, "output_usd": 10, "cache_read_usd": 0}]}`,
		"PUT /v1/billing/prices":    `{"provider": "openai", "model": "gpt-5"}`,
		"DELETE /v1/billing/prices": `{"deleted": true}`,
	})
	p := f.person(t)
	again := "Undo: yardmaster key prices set openai gpt-5 --input-usd 1.25 --output-usd 10 --cache-read-usd 0\n"
	p.holds("key price "+someID+" null", 0, "cost what the price tables say from now on.",
		"Undo: yardmaster key price "+someID+` '{"input_usd":0.2,"output_usd":0.8}'`, "!cost none")
	p.holds("key prices set openai gpt-5 --input-usd 2 --output-usd 3", 0, "in the place of the price before", again)
	p.holds("key prices delete openai gpt-5", 0, again)
	p.holds("key prices set openai gpt-6 --input-usd 2 --output-usd 3", 0, "Undo: yardmaster key prices delete openai gpt-6")
	if !f.was("PUT /v1/billing/prices", `"input_usd":2`, `"model":"gpt-6"`) || !f.was("DELETE /v1/billing/prices?model=gpt-5&provider=openai") {
		t.Errorf("%q", f.calls)
	}
	f.answers["DELETE /v1/billing/prices"] = `{"deleted": false}`
	p.holds("key prices delete openai gpt-7", exit.CodeNotFound, `there is no price of "openai gpt-7"`)
	f.answers["GET /v1/billing/keys"] = `{"data": [{"id": "` + someID + `"}]}`
	p.holds("key price "+someID+` '{"input_usd":1,"output_usd":2}'`, 0, `cost {"input_usd":1,"output_usd":2} from now on.`,
		"Undo: yardmaster key price "+someID+" null")
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
		if ada, bob := object.Map(members[0])["spent_usd"], object.Map(members[1])["spent_usd"]; ada != "1.50" || bob != want {
			t.Errorf("with %s calls without a price: %v and %v", unpriced, ada, bob)
		}
	}
}
