package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// switches are those of a repository that a flag of repo settings turns: all but enabled, which has commands of its
// own, and canary, which the server acts on nowhere.
var switches = []string{"ai_first", "donations_enabled", "public_stats_enabled"}

// canary is a switch that the API keeps for clients, and that nobody is shown.
const canary = "canary_enabled"

func defineRepoSettings(fl *flag.FlagSet) tree.Action {
	wanted := map[string]*string{}
	for _, in := range capability.One("project.update").Inputs() {
		if slices.Contains(switches, in.Name) {
			name := strings.ReplaceAll(in.Name, "_", "-")
			wanted[in.Name] = fl.String(name, "", in.Doc)
			fl.Lookup(name).NoOptDefVal = "true"
		}
	}
	branch := fl.String("default-branch", "", "the `BRANCH` that work begins from and is merged into; one of the repository")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		in := map[string]any{}
		for name, text := range wanted {
			flagName := strings.ReplaceAll(name, "_", "-")
			if !fl.Changed(flagName) {
				continue
			}
			on, err := strconv.ParseBool(*text)
			if err != nil {
				return exit.Misused("--%s takes true or false, not %q", flagName, *text)
			}
			in[name] = on
		}
		if *branch != "" {
			in["default_branch"] = *branch
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		owner, repo, _ := strings.Cut(plain[0], "/")
		path := "/v1/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(repo)
		b, err := c.Fetch(ctx, http.MethodGet, path+"/settings", nil)
		if err != nil {
			return err
		}
		undo := ""
		if len(in) > 0 {
			v, _ := object.Decode(b)
			undo = turnedBack(object.Map(v), in)
			if err := c.Call(ctx, http.MethodPatch, path, in, nil); err != nil {
				return err
			}
			if b, err = c.Fetch(ctx, http.MethodGet, path+"/settings", nil); err != nil {
				return err
			}
		}
		if err := o.Show(ctx, func() ([]byte, error) { return b, nil }, noun.WithNames(ctx, c, writeRepoSettings)); err != nil {
			return err
		}
		if undo != "" && !o.ForPrograms() {
			screen.Afterword("Undo: yardmaster repo settings " + client.Word(plain[0]) + undo)
		}
		return nil
	}
}

// turnedBack are the flags that turn switches, and the default branch, to what they were.
func turnedBack(was map[string]any, in map[string]any) (undo string) {
	all, _ := was["switches"].([]any)
	for _, s := range all {
		of := object.Map(s)
		if _, turned := in[object.Text(of["name"])]; turned {
			undo += " --" + strings.ReplaceAll(object.Text(of["name"]), "_", "-") + "=" + strconv.FormatBool(of["on"] == true)
		}
	}
	if _, chosen := in["default_branch"]; chosen {
		undo += " --default-branch " + client.Word(object.Text(was["default_branch"]))
	}
	return undo
}

// writeRepoSettings leaves out the switch that switches nothing.
func writeRepoSettings(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	row := object.Map(v)
	if all, some := row["switches"].([]any); some && err == nil {
		row["switches"] = slices.DeleteFunc(all, func(s any) bool { return object.Map(s)["name"] == canary })
		if b, err = object.InOrder(b, row); err != nil {
			return err
		}
	}
	return noun.Called("repo").View(w, b)
}
