package cli

import (
	"context"
	"strings"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// priceCommands are about what models cost the account: what it has set of them.
func priceCommands() []tree.Command {
	return append([]tree.Command{
		noun.Price().NamedList("key prices", "what models cost the account, where it has set that"),
	}, act.Commands(
		act.Act{Words: "key prices set", Args: "PROVIDER MODEL",
			Summary: "set what a model costs the account, in US dollars for a million tokens; MODEL '*' is every model of the provider",
			Op:      "billing.price_set", Plain: []string{"provider", "model"}, More: "It goes before a key's price and the server's table.",
			Done: "{0} {1} costs that from now on.", Next: "Undo: yardmaster key prices delete {0} {1}",
			Earlier: priceBefore, Says: func(o act.Occasion) (string, string) {
				if o.Before == nil {
					return "", ""
				}
				return o.Done("{0} {1} costs that from now on, in the place of the price before."), "Undo: " + priceAgain(o.Before)
			},
			Examples: []string{"yardmaster key prices set openai gpt-5 --input-usd 1.25 --output-usd 10",
				"yardmaster key prices set compatible '*' --input-usd 0 --output-usd 0"}},
		act.Act{Words: "key prices delete", Args: "PROVIDER MODEL", Summary: "forget what a model costs the account: the key's price or the server's table decides again",
			Op: "billing.price_delete", Plain: []string{"provider", "model"}, Thing: "price of",
			Done: "It costs what the key or the server's table says from now on.", Next: "yardmaster key prices set {0} {1} sets another.",
			Earlier: priceBefore, Says: func(o act.Occasion) (string, string) {
				if o.Before == nil {
					return "", ""
				}
				return "", "Undo: " + priceAgain(o.Before)
			},
			Examples: []string{"yardmaster key prices delete openai gpt-5"}},
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
func keyPriceSays(o act.Occasion) (done, next string) {
	done = o.Done("Calls over {id} cost {1} from now on.")
	if o.Plain[1] == "null" {
		done = o.Done("Calls over {id} cost what the price tables say from now on.")
	}
	if o.Before == nil {
		return done, o.Next("yardmaster key view {id} shows the price of the key.")
	}
	price := "null"
	if o.Before["price"] != nil {
		if b, err := object.Encode(o.Before["price"]); err == nil {
			price = string(b)
		}
	}
	return done, o.Next("Undo: yardmaster key price {id} ") + client.Word(price)
}
