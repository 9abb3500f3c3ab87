package act

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/client"
)

// nothingThere is the error of a deletion that found nothing to delete, or only what had ended
// before. The server answers it without a complaint, because it may be asked again.
func (a Act) nothingThere(b []byte, plain []string, was any) error {
	if capability.One(a.Op).Method != http.MethodDelete || len(plain) == 0 {
		return nil
	}
	v, _ := object.Decode(b)
	row := object.Map(v)
	what, _, _ := strings.Cut(a.Words, " ")
	name := plain[0]
	if a.Thing != "" {
		what, name = a.Thing, strings.Join(plain, " ")
	}
	is := func(status string) error {
		return fmt.Errorf("the %s %s is %s: nothing has changed", what, client.Inert(name), client.Inert(status))
	}
	if object.Map(was)["revoked"] == true {
		return is("revoked")
	}
	for _, done := range []string{"deleted", "disconnected", "removed", "revoked"} {
		if row[done] == false {
			if status := object.Text(row["status"]); status != "" {
				return is(status)
			}
			return exit.NotFound(fmt.Sprintf("there is no %s %q%s", what, name, a.Place))
		}
	}
	return nil
}

// retold are the flags that say where an object is, as they follow a command.
func retold(fl *flag.FlagSet, repo string) (words string) {
	if repo != "" {
		words += " --repo " + client.Word(repo)
	}
	for _, name := range []string{"repo", "environment"} {
		if f := fl.Lookup(name); f != nil && f.Changed && (name != "repo" || repo == "") {
			words += " --" + name + " " + client.Word(f.Value.String())
		}
	}
	return words
}

// Say prints what has happened, and how it is undone or what comes next. was is what was
// asked before.
func (a Act) Say(ctx context.Context, c *client.Client, b []byte, plain []string, was any) error {
	answer, _ := object.Decode(b) // none is no object
	row, ok := answer.(map[string]any)
	if !ok {
		row = map[string]any{}
	}
	if was != nil {
		row["before"] = was
	}
	if ok && a.Made != nil {
		id := a.Made.ID(row)
		if id == "" { // where more than one object was made
			id = object.Text(row[a.Made.Name+"_id"])
		}
		if id != "" {
			a.Made.Seen(id)
		}
		plain = append([]string{id}, plain...)
	}
	if a.Learn != nil {
		a.Learn(ctx, c, row)
	}
	of := Occasion{object.Map(was), row, a.flags, plain}
	done, next := "", ""
	if a.Says != nil {
		done, next = a.Says(of)
	}
	switch done = cmp.Or(done, of.Done(a.Done)); {
	case done != "":
		fmt.Println(done)
	case len(b) > 0:
		n := a.Of
		if n == nil || capability.One(a.Op).Method != http.MethodGet {
			n = &noun.Noun{Name: a.Words, Hidden: a.Hidden}
		}
		if a.Tables != nil {
			named := *n
			named.Tables, n = a.Tables, &named
		}
		if a.Plainly != nil {
			a.Plainly(ctx, c, row)
			changed, err := object.InOrder(b, row)
			if err != nil {
				return err
			}
			b = changed
		}
		show := noun.WithNames(ctx, c, a.people(n))
		if capability.One(a.Op).Method != http.MethodGet {
			if err := show(os.Stdout, b); err != nil {
				return err
			}
			break
		}
		var text strings.Builder
		if err := show(&text, b); err != nil {
			return err
		}
		if err := screen.Paged(text.String()); err != nil {
			return err
		}
	}
	if next = cmp.Or(next, of.Next(a.Next)); next != "" {
		screen.Afterword(next)
	}
	return nil
}

// people writes the answer as rows if it is a list, else as an object of a noun.
func (a Act) people(n *noun.Noun) func(io.Writer, []byte) error {
	return func(w io.Writer, b []byte) error {
		v, _ := object.Decode(b) // what is no object is shown as it is
		if a.Shows != nil && object.Map(v) != nil {
			return a.Shows(w, object.Map(v))
		}
		rows, list := object.Map(v)["data"].([]any)
		switch {
		case !list || capability.One(a.Op).Method != http.MethodGet:
			return n.View(w, b)
		case len(rows) == 0:
			_, err := fmt.Fprintln(w, "There are none.")
			return err
		}
		if err := noun.Objects(w, screen.Out(), rows, a.Tables["data"], time.Now()); err != nil {
			return err
		}
		if object.Map(v)["next_cursor"] != nil {
			fmt.Fprintln(os.Stderr, "There are more: --cursor and next_cursor of -o json fetch them.")
		}
		return nil
	}
}
