package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func keyCommands() []tree.Command {
	key := noun.Called("key")
	return append(append([]tree.Command{
		{Words: "key add", Answers: "billing.key_add", Summary: "add a model key (read from standard input)", Define: defineKeyAdd,
			Examples: []string{"yardmaster key add --provider anthropic < key.txt"},
			Values:   map[string]tree.Values{"provider": tree.Fixed(providers()...)}},
		key.ListCommand("the account's model keys, masked"),
		key.ViewCommand("one model key"),
	}, act.Commands(
		act.Act{Words: "key delete", Args: "ID", Summary: "take a key out of the pool and forget it", Op: "billing.key_delete", Of: key,
			Done: "The key {id} is forgotten.", Next: "yardmaster key add puts one in its place.",
			Examples: []string{"yardmaster key delete @last"}},
		act.Act{Words: "key price", Args: "ID PRICE",
			Summary: "set what any model costs that is called over a key; null leaves it to the price tables", Op: "billing.key_price_set",
			Of: key, Plain: []string{"price"}, Done: "Calls over {id} cost {1} from now on.",
			Next:    "yardmaster key view {id} shows the price of the key.",
			Earlier: rowBefore("key"), Says: keyPriceSays,
			Examples: []string{`yardmaster key price @last '{"input_usd": 0.2, "output_usd": 0.8}'`}},
	)...), slices.Concat(upkeepCommands(key), priceCommands(), ownKeyCommands(), preferenceCommands())...)
}

// providers are the model providers that the server knows.
func providers() []string { return app.ModelProviders() }

// eitherOf names several as people do: a, b or c.
func eitherOf(all []string) string {
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

func defineKeyAdd(fl *flag.FlagSet) tree.Action {
	provider := fl.String("provider", "", "`NAME`: "+eitherOf(providers()))
	label := fl.String("label", "", "a name for people; the provider's when empty")
	base := fl.String("base-url", "", "address of a compatible endpoint, or of azure")
	model := fl.String("model", "", "model of a compatible endpoint; when empty, the endpoint is asked, and must have exactly one; deployment of azure")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		return addModelKey(ctx, o, *provider, *label, *base, *model)
	}
}

// keyPrompt asks for a key in the form that the provider has.
func keyPrompt(provider string) string {
	if provider == "bedrock" {
		return "Key (REGION:ACCESS_KEY_ID:SECRET_ACCESS_KEY)"
	}
	return "Key"
}

func addModelKey(ctx context.Context, o *output.Flags, provider, label, base, model string) error {
	if provider == "" {
		return exit.Misuse("give --provider: " + eitherOf(providers()))
	}
	if all := providers(); !slices.Contains(all, provider) { // before the key is asked for
		return exit.Misused("--provider takes one of %s, not %q", strings.Join(all, ", "), provider)
	}
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	in := map[string]any{"provider": provider, "label": label}
	if label == "" {
		in["label"] = provider
	}
	if base != "" {
		in["base_url"] = base
	}
	if model != "" {
		in["model"] = model
	}
	if provider != "scripted" {
		// A key is typed once: not for a server that is gone, or for a login that is over.
		err := c.Call(ctx, http.MethodGet, "/v1/me", nil, nil)
		if code := exit.Code(err); err != nil && code != exit.CodeNotFound && code != exit.CodeRefused {
			return err
		}
		if in["key"], err = signin.Ask(ctx, keyPrompt(provider), true); err != nil {
			return err
		}
	}
	var out struct {
		ID        string   `json:"id"`
		Masked    string   `json:"masked"`
		Model     *string  `json:"model"`
		BaseURL   string   `json:"base_url"`
		Templates []string `json:"templates"`
	}
	if done, err := o.Answered(ctx, c, http.MethodPost, "/v1/billing/keys", in, &out); done || err != nil {
		return err
	}
	fmt.Println(client.Inert(fmt.Sprintf("Added key %s %s", out.ID, out.Masked)))
	if provider == "scripted" {
		fmt.Println("It is a script and no model: it does what the file says that `yardmaster serve --scenario FILE` names. A server without --scenario changes nothing, and its tasks end completed with nothing done.")
	}
	defer screen.Afterword("Undo: yardmaster key delete " + client.Word(out.ID))
	switch {
	case out.Model == nil:
	case len(out.Templates) > 0:
		screen.Say("The model is %s, in the templates %s.\n", *out.Model, strings.Join(out.Templates, ", "))
	default: // the templates name models of their own, or use a key of higher priority
		screen.Say("The model is %s, but no template uses it yet. One that does:\n  yardmaster template set NAME --provider %s --base-url %s --model %s\n",
			*out.Model, provider, client.Word(out.BaseURL), client.Word(*out.Model))
	}
	return nil
}
