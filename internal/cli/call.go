package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// defineCall calls a capability by its id, and sends the arguments where the row says.
func defineCall(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		if len(plain) == 0 {
			return listOps("")
		}
		one := capability.All()[plain[0]]
		if one == nil {
			return listOps(strings.Join(plain, " "))
		}
		var inputs []capability.Given
		for _, word := range plain[1:] {
			in, err := capability.ParseGiven(word)
			if err != nil {
				return err
			}
			inputs = append(inputs, in)
		}
		path, body, err := capability.Assemble(one, inputs)
		if err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		if one.IsStream() {
			return c.Stream(ctx, path, "", func(f client.Frame) error {
				fmt.Println(client.Escape(strings.TrimLeft(fmt.Sprintf("%s %s %s", f.ID, f.Event, f.Data), " ")))
				return nil
			})
		}
		out, err := fetchTelling(ctx, c, one, path, body, inputs)
		if err != nil {
			return err
		}
		if len(out) == 0 && o.ForPrograms() {
			return nil
		}
		return o.Print(os.Stdout, out)
	}
}

// largeInput is the size of the inputs of a call, in bytes, from which it is shown on a
// terminal how much of them is sent.
const largeInput = 1 << 20

// fetchTelling makes a call, and shows on a terminal how far it is if it sends much.
func fetchTelling(ctx context.Context, c *client.Client, o *app.Op, path string, body any, inputs []capability.Given) ([]byte, error) {
	n := 0
	for _, in := range inputs {
		n += len(in.Text)
	}
	if s := terminal.Of(os.Stderr, os.Getenv); n >= largeInput && s.Live {
		p := s.NewProgress(os.Stderr, "Sending "+o.ID)
		defer p.Stop()
		c.Steps = p
	}
	return c.Fetch(ctx, o.Method, path, body)
}

// listOps lists the capabilities whose ids contain part.
func listOps(part string) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	n := 0
	for _, o := range app.Ops() {
		if strings.Contains(o.ID, part) {
			n++
			fmt.Fprintf(t, "%s\t%s\t%s\n", o.ID, o.Method, o.Path)
		}
	}
	t.Flush()
	if n == 0 {
		first, _, _ := strings.Cut(part, " ")
		if text := capability.Meant(first, "", object.Sorted(capability.All())); text != "" {
			return exit.Misused("there is no capability %q%s", first, text)
		}
		return exit.Misused("there is no capability %q; `yardmaster call` lists them", first)
	}
	return nil
}

// helpOfCall describes the capability that is called, if it is one.
func helpOfCall(c *cobra.Command) bool {
	if c.CommandPath() != "yardmaster call" {
		return false
	}
	id := c.Flags().Arg(0)
	if o := capability.One(id); o != nil {
		_ = describeOp(o)
		return true
	}
	if id != "" {
		fmt.Fprintf(c.ErrOrStderr(), "yardmaster call: there is no capability %q%s\n\n", id, capability.Meant(id, "", object.Sorted(capability.All())))
	}
	return false
}

// describeOp prints the description and the inputs of a capability.
func describeOp(o *app.Op) error {
	fmt.Printf("%s: %s\n%s %s", o.ID, o.Summary, o.Method, o.Path)
	if names := o.Rule.Names(); len(names) > 0 {
		fmt.Printf("   needs %s", strings.Join(names, " and "))
	}
	fmt.Println()
	if o.Doc != "" {
		fmt.Println(o.Doc)
	}
	inputs := o.Inputs()
	if len(inputs) > 0 {
		fmt.Println()
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, in := range inputs {
		needed := ""
		if in.Required {
			needed = "required"
		}
		fmt.Fprintf(t, "  %s=\t%s\t%s\t%s\n", in.Name, in.Kind, needed, in.Doc)
	}
	return t.Flush()
}

func capabilities(context.Context, []string, string) (all []string) {
	for _, id := range object.Sorted(capability.All()) {
		all = append(all, id+"\t"+capability.All()[id].Summary)
	}
	return all
}
