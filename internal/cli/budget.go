package cli

import (
	"context"
	"net/http"
	"strconv"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// usageTables are the members of what models cost, part by part, in the order of a person.
var usageTables = map[string][]string{
	"days":    {"day", "spent_usd", "given_usd", "calls", "unpriced_calls"},
	"members": {"login", "spent_usd", "reserved_usd", "cap_usd"},
	"models":  {"name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"repos":   {"name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"kinds":   {"name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"keys":    {"id", "name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"tasks":   {"id", "name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"plans":   {"id", "name", "spent_usd", "given_usd", "sessions", "calls", "unpriced_calls"},
	"series":  {"name", "day", "spent_usd", "given_usd", "calls", "unpriced_calls"},
	"gifts":   {"id", "name", "spent_usd", "sessions", "calls", "unpriced_calls"},
}

// unknownPrice is what stands for a sum of which no part has a known price.
const unknownPrice = "–"

// plainUsage says of each part that has calls, but none with a known price, that its cost is
// not known, and of the part of what belongs to none, such as no plan, that it is of none. How
// many calls of a member have no price is not told: where some of the account have none, those
// may be all that a member without costs had.
func plainUsage(_ context.Context, _ *client.Client, usage map[string]any) {
	unpriced(usage)
	if all, ok := usage["series"].([]any); ok {
		usage["series"] = byDay(all)
	}
	if n := object.Text(usage["unpriced_calls"]); n != "" && n != "0" {
		members, _ := usage["members"].([]any)
		for _, m := range members {
			of := object.Map(m)
			if spent, err := strconv.ParseFloat(object.Text(of["spent_usd"]), 64); err == nil && spent == 0 {
				of["spent_usd"] = unknownPrice
			}
		}
	}
	given, err := strconv.ParseFloat(object.Text(usage["given_usd"]), 64)
	none := err == nil && given == 0 // no gift paid for anything: there is nothing to tell apart
	if none {
		delete(usage, "given_usd")
	}
	for name := range usageTables {
		parts, _ := usage[name].([]any)
		for _, p := range parts {
			of := object.Map(p)
			if none {
				delete(of, "given_usd")
			}
			unpriced(of)
			if unnamed, ok := of["name"]; ok && unnamed == nil {
				of["name"] = "none"
			}
		}
	}
}

// byDay has a row for each day of each part, in place of a part with its days.
func byDay(parts []any) []any {
	rows := []any{}
	for _, p := range parts {
		of := object.Map(p)
		days, _ := of["days"].([]any)
		for _, d := range days {
			day := object.Map(d)
			day["name"] = of["name"]
			rows = append(rows, day)
		}
	}
	return rows
}

func unpriced(part map[string]any) {
	calls := object.Text(part["calls"])
	if calls != "" && calls != "0" && calls == object.Text(part["unpriced_calls"]) {
		part["spent_usd"] = unknownPrice
	}
}

// plainBudget says that there is no cap where there is none, and that what was spent is not
// known where no call has a known price.
func plainBudget(ctx context.Context, c *client.Client, budget map[string]any) {
	if budget["usd"] == nil {
		budget["usd"] = "no cap"
	}
	var usage map[string]any
	if c.Call(ctx, http.MethodGet, "/v1/billing/usage", nil, &usage) != nil || usage == nil {
		return // the token may not read it
	}
	budget["calls"], budget["unpriced_calls"] = usage["calls"], usage["unpriced_calls"]
	unpriced(budget)
	delete(budget, "calls")
	delete(budget, "unpriced_calls")
}

// learnUnpriced adds to the answer how many calls of this month had no known price.
func learnUnpriced(ctx context.Context, c *client.Client, answer map[string]any) {
	var usage map[string]any
	if c.Call(ctx, http.MethodGet, "/v1/billing/usage", nil, &usage) == nil { // else the token may not read it
		answer["unpriced_calls"] = usage["unpriced_calls"]
	}
}

// capSays says what a cap does to calls without a price, besides how it is taken back.
func capSays(of act.Occasion) (done, next string) {
	if of.Answer["usd"] == nil && of.Answer["operator_usd"] == nil {
		return "", ""
	}
	had := "."
	switch n := object.Text(of.Answer["unpriced_calls"]); n {
	case "", "0":
	case "1":
		had = ": 1 call of this month had none."
	default:
		had = ": " + n + " calls of this month had none."
	}
	return of.Done("The cap of a month, in US dollars: {0}."), of.Next("Undo: yardmaster budget set {before.usd}") +
		"\nWhile there is a cap, a call of a model without a known price is refused, and its task is held" + had +
		"\nyardmaster key prices lists the prices that the account has set, yardmaster key prices set sets one."
}
