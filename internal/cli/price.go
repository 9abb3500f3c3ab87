package cli

import (
	"context"
	"strings"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// priceCommands are about what models cost the account: what it has set of them.
func priceCommands() []tree.Command {
	return append([]tree.Command{
		noun.Price().NamedList("key prices", "what models cost the account, where it has set that"),
	}, commandsOf(
		act{words: "key prices set", args: "PROVIDER MODEL",
			summary: "set what a model costs the account, in US dollars for a million tokens; MODEL '*' is every model of the provider",
			op:      "billing.price_set", plain: []string{"provider", "model"}, more: "It goes before a key's price and the server's table.",
			done: "{0} {1} costs that from now on.", next: "Undo: yardmaster key prices delete {0} {1}",
			earlier: priceBefore, says: func(o occasion) (string, string) {
				if o.before == nil {
					return "", ""
				}
				return o.done("{0} {1} costs that from now on, in the place of the price before."), "Undo: " + priceAgain(o.before)
			},
			examples: []string{"yardmaster key prices set openai gpt-5 --input-usd 1.25 --output-usd 10",
				"yardmaster key prices set compatible '*' --input-usd 0 --output-usd 0"}},
		act{words: "key prices delete", args: "PROVIDER MODEL", summary: "forget what a model costs the account: the key's price or the server's table decides again",
			op: "billing.price_delete", plain: []string{"provider", "model"}, thing: "price of",
			done: "It costs what the key or the server's table says from now on.", next: "yardmaster key prices set {0} {1} sets another.",
			earlier: priceBefore, says: func(o occasion) (string, string) {
				if o.before == nil {
					return "", ""
				}
				return "", "Undo: " + priceAgain(o.before)
			},
			examples: []string{"yardmaster key prices delete openai gpt-5"}},
	)...)
}

// priceBefore is what a model costs the account; nil if that is not set.
func priceBefore(ctx context.Context, c *client.Client, plain []string) any {
	rows, _, err := noun.Price().Rows(ctx, c, nil, noun.Everything)
	if err != nil {
		return nil
	}
	for _, r := range rows {
		v, _ := object.Decode(r)
		if row := object.Map(v); row["provider"] == plain[0] && row["model"] == plain[1] {
			return row
		}
	}
	return nil
}

// priceAgain is the command that sets a price as it was.
func priceAgain(was map[string]any) string {
	words := "yardmaster key prices set " + client.Word(object.Text(was["provider"])) + " " + client.Word(object.Text(was["model"]))
	for _, name := range []string{"input_usd", "output_usd", "cache_read_usd", "cache_write_usd"} {
		if was[name] != nil {
			words += " --" + strings.ReplaceAll(name, "_", "-") + " " + client.Word(object.Text(was[name]))
		}
	}
	return words
}

// keyPriceSays says what calls over a key cost, and how the price before comes back.
func keyPriceSays(o occasion) (done, next string) {
	done = o.done("Calls over {id} cost {1} from now on.")
	if o.plain[1] == "null" {
		done = o.done("Calls over {id} cost what the price tables say from now on.")
	}
	if o.before == nil {
		return done, o.next("yardmaster key view {id} shows the price of the key.")
	}
	price := "null"
	if o.before["price"] != nil {
		if b, err := object.Encode(o.before["price"]); err == nil {
			price = string(b)
		}
	}
	return done, o.next("Undo: yardmaster key price {id} ") + client.Word(price)
}
