package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// settingCommands are about how the account, and what agents are told, is set.
func settingCommands() []tree.Command {
	return []tree.Command{
		{Words: "account settings", Answers: "account.floors_get", Summary: "the time zone, and what policy files are held to; a flag changes one", Define: defineAccountSettings,
			Examples: []string{"yardmaster account settings", "yardmaster account settings --zone Europe/Berlin",
				"yardmaster account settings --task-usd 5 --protected-paths go.mod,.github/"}},
		{Words: "account quota", Answers: "account.quota", Summary: "what the account may store and change, and what it has",
			Define: defineAccountQuota, Examples: []string{"yardmaster account quota"}},
		{Words: "prompt view", Answers: "system_prompt.get", Summary: "what you have agents told; that of the account, a repository or a template with a flag",
			Define: definePromptView, Examples: []string{"yardmaster prompt view", "yardmaster prompt view --repo acme/web"}},
		{Words: "prompt set", Answers: "system_prompt.set", Args: "[TEXT]…", Summary: "set it; an empty one with --clear",
			Define:   definePromptSet,
			Examples: []string{"yardmaster prompt set --file prompt.md", "yardmaster prompt set --account Write tests first."}},
	}
}

func defineAccountSettings(fl *flag.FlagSet) tree.Action {
	set := capability.One("account.floors_set")
	wanted, floors := map[string]*string{}, []string{} // all are replaced at once
	for _, in := range set.Inputs() {
		wanted[in.Name] = fl.String(strings.ReplaceAll(in.Name, "_", "-"), "", in.Doc+"; null: nothing is asked")
		floors = append(floors, in.Name)
	}
	zone := fl.String("zone", "", "`ZONE` of the account, such as Europe/Berlin")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		var was map[string]any
		if err := c.Call(ctx, http.MethodGet, "/v1/account/floors", nil, &was); err != nil {
			return err
		}
		var of struct {
			Zone string `json:"zone"`
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/account/zone", nil, &of); err != nil {
			return err
		}
		undo, in := "", map[string]any{}
		for _, name := range floors {
			in[name] = was[name]
			flagName := strings.ReplaceAll(name, "_", "-")
			if !fl.Changed(flagName) {
				continue
			}
			if in[name], err = (capability.Given{Name: name, Text: *wanted[name]}).Value(set.Kinds()[name]); err != nil {
				return err
			}
			if *wanted[name] == "null" {
				in[name] = nil
			}
			before := strings.ReplaceAll(object.Text(was[name]), ", ", ",")
			if on, is := was[name].(bool); is {
				before = strconv.FormatBool(on)
			}
			undo += " --" + flagName + " " + client.Word(cmp.Or(before, "null"))
		}
		if undo != "" {
			for name, v := range in {
				if v == nil {
					delete(in, name)
				}
			}
			was = nil // a field that is not in the answer is not as it was
			if err := c.Call(ctx, http.MethodPut, "/v1/account/floors", in, &was); err != nil {
				return err
			}
		}
		if fl.Changed("zone") {
			undo += " --zone " + client.Word(of.Zone)
			if err := c.Call(ctx, http.MethodPut, "/v1/account/zone", map[string]any{"zone": *zone}, &of); err != nil {
				return err
			}
		}
		was["zone"] = of.Zone
		b, err := object.Encode(was)
		if err != nil {
			return err
		}
		if err := o.Show(ctx, func() ([]byte, error) { return b, nil },
			noun.WithNames(ctx, c, (&noun.Noun{Name: "settings"}).View)); err != nil {
			return err
		}
		if undo != "" && !o.ForPrograms() {
			screen.Afterword("Undo: yardmaster account settings" + undo)
		}
		return nil
	}
}

// defineAccountQuota shows what an account may have and has.
func defineAccountQuota(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		return o.Show(ctx, func() (b []byte, err error) {
			var q map[string]any
			if err = c.Call(ctx, http.MethodGet, "/v1/account/quota", nil, &q); err == nil {
				b, err = object.Encode(q)
			}
			return b, err
		}, noun.WithNames(ctx, c, (&noun.Noun{Name: "quota"}).View))
	}
}

// promptFlags say whose prompt is meant; none: that of the person.
type promptFlags struct {
	account        bool
	repo, template string
}

func (p *promptFlags) add(fl *flag.FlagSet) {
	fl.BoolVar(&p.account, "account", false, "that of the account")
	fl.StringVar(&p.repo, "repo", "", "`OWNER/NAME`: that of the repository")
	fl.StringVar(&p.template, "template", "", "`NAME`: that of the template")
}

// path is where the prompt is read and written, and the flags that mean it.
func (p *promptFlags) path(ctx context.Context) (path, flags string, err error) {
	n := 0
	for _, is := range []bool{p.account, p.repo != "", p.template != ""} {
		if is {
			n++
		}
	}
	switch {
	case n > 1:
		return "", "", exit.Misuse("give one of --account, --repo and --template")
	case p.account:
		return "/v1/system-prompts/account", " --account", nil
	case p.repo != "":
		return "/v1/system-prompts/repo?ref=" + url.QueryEscape(repoID(ctx, p.repo)), " --repo " + client.Word(p.repo), nil
	case p.template != "":
		return "/v1/system-prompts/template?ref=" + url.QueryEscape(p.template), " --template " + client.Word(p.template), nil
	}
	return "/v1/me/system-prompt", "", nil
}

func definePromptView(fl *flag.FlagSet) tree.Action {
	var of promptFlags
	of.add(fl)
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		path, flags, err := of.path(ctx)
		if err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		return o.Show(ctx, func() ([]byte, error) { return c.Fetch(ctx, http.MethodGet, path, nil) }, func(w io.Writer, b []byte) error {
			v, _ := object.Decode(b)
			text := object.Text(object.Map(v)["prompt"])
			if text == "" {
				text = "There is none: yardmaster prompt set" + flags + " sets it."
			}
			_, err := fmt.Fprintln(w, client.InertLines(text))
			return err
		})
	}
}

func definePromptSet(fl *flag.FlagSet) tree.Action {
	var of promptFlags
	of.add(fl)
	var t act.Texts
	t.Add(fl)
	clearIt := fl.Bool("clear", false, "have agents told nothing more")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		path, flags, err := of.path(ctx)
		if err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		var was struct {
			Prompt *string `json:"prompt"`
		}
		if err := c.Call(ctx, http.MethodGet, path, nil, &was); err != nil {
			return err
		}
		text := ""
		if !*clearIt {
			if text, err = t.Read(ctx, plain, "what agents are to be told"); err != nil {
				return err
			}
		}
		method, in := http.MethodPut, any(map[string]any{"prompt": text})
		if *clearIt && flags == "" { // one's own is deleted; the others are set to nothing
			method, in = http.MethodDelete, nil
		}
		b, err := c.Fetch(ctx, method, path, in)
		if err != nil {
			return err
		}
		draft.Accepted(ctx)
		if o.ForPrograms() {
			return o.Print(os.Stdout, b)
		}
		if *clearIt {
			fmt.Println("Agents are told it no more from their next run on.")
		} else {
			fmt.Println("Agents are told it from their next run on.")
		}
		switch {
		case *clearIt && (was.Prompt == nil || *was.Prompt == ""):
			screen.Afterword("There was none: yardmaster prompt set" + flags + " sets one.")
		case was.Prompt == nil || *was.Prompt == "":
			screen.Afterword("Undo: yardmaster prompt set" + flags + " --clear")
		case strings.Contains(strings.TrimSpace(*was.Prompt), "\n"):
			screen.Afterword("It was, for yardmaster prompt set" + flags + " --file FILE:\n" + client.InertLines(*was.Prompt))
		default:
			screen.Afterword("Undo: yardmaster prompt set" + flags + " " + client.Word(strings.TrimSpace(*was.Prompt)))
		}
		return nil
	}
}

// preference is what a person is told of a kind of notification.
type preference struct {
	Kind     string         `json:"kind"`
	Doc      string         `json:"doc"`
	Channels map[string]any `json:"channels"`
}

func defineNotificationSettings(fl *flag.FlagSet) tree.Action {
	quiet := fl.String("quiet", "", "`HOURS` in which only what is urgent comes, such as \"22:00-07:00 Europe/Berlin\"; none with off")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		matrix, undo := map[string]map[string]bool{}, ""
		for _, word := range plain {
			name, value, _ := strings.Cut(word, "=")
			kind, channel, both := strings.Cut(name, ".")
			if !both || value != "on" && value != "off" {
				return exit.Misused("%q has not the form KIND.CHANNEL=on or KIND.CHANNEL=off", word)
			}
			if matrix[kind] == nil {
				matrix[kind] = map[string]bool{}
			}
			matrix[kind][channel] = value == "on"
			undo += " " + client.Word(name) + map[string]string{"on": "=off", "off": "=on"}[value]
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		const path = "/v1/me/notification-preferences"
		b, err := c.Fetch(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		in := map[string]any{}
		if len(matrix) > 0 {
			in["matrix"] = matrix
		}
		if fl.Changed("quiet") {
			v, _ := object.Decode(b)
			undo += " --quiet " + client.Word(cmp.Or(object.Text(object.Map(v)["quiet"]), "off"))
			if in["quiet"] = *quiet; *quiet == "off" {
				in["quiet"] = ""
			}
		}
		if len(in) > 0 {
			if b, err = c.Fetch(ctx, http.MethodPut, path, in); err != nil {
				return err
			}
		}
		if err := o.Show(ctx, func() ([]byte, error) { return b, nil }, writePreferences); err != nil {
			return err
		}
		if undo != "" && !o.ForPrograms() {
			screen.Afterword("Undo: yardmaster notification settings" + undo)
		}
		return nil
	}
}

func writePreferences(w io.Writer, b []byte) error {
	var all struct {
		Data    []preference `json:"data"`
		Quiet   *string      `json:"quiet"`
		Refused *time.Time   `json:"email_refused_at"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	var channels []string
	for _, p := range all.Data {
		for _, name := range object.Sorted(p.Channels) {
			if !slices.Contains(channels, name) {
				channels = append(channels, name)
			}
		}
	}
	columns := []terminal.Column{{Head: "KIND"}}
	for _, name := range channels {
		columns = append(columns, terminal.Column{Head: strings.ToUpper(name)})
	}
	columns = append(columns, terminal.Column{Head: "WHICH IS", Flex: true})
	var cells [][]terminal.Cell
	for _, p := range all.Data {
		line := []terminal.Cell{{Text: p.Kind}}
		for _, name := range channels {
			text := object.Text(p.Channels[name])
			switch p.Channels[name] {
			case true:
				text = "on"
			case false:
				text = "off"
			}
			line = append(line, terminal.Cell{Text: text})
		}
		cells = append(cells, append(line, terminal.Cell{Text: p.Doc}))
	}
	if err := screen.Out().Table(w, columns, cells); err != nil {
		return err
	}
	if all.Quiet != nil && *all.Quiet != "" {
		fmt.Fprintf(w, "Quiet hours: %s\n", client.Inert(*all.Quiet))
	}
	if all.Refused != nil {
		fmt.Fprintf(w, "Mails are not sent: your address has refused one, %s.\n", terminal.When(time.Now(), *all.Refused))
	}
	return nil
}

// defineRepoPolicy shows the policy in force, or checks a file.
func defineRepoPolicy(fl *flag.FlagSet) tree.Action {
	shows := act.Act{Words: "repo policy", Op: "project.policy_get", Of: noun.Called("repo")}
	inForce := shows.Define(fl)
	file := fl.StringP("file", "F", "", "check the policy `FILE`, - for standard input, and store nothing")
	return func(ctx context.Context, plain []string) error {
		if *file == "" {
			return inForce(ctx, plain)
		}
		text, err := exit.OfFile(terminal.Read(*file))
		if err != nil {
			return err
		}
		owner, repo, _ := strings.Cut(plain[0], "/")
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		b, err := c.Fetch(ctx, http.MethodPost, "/v1/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(repo)+"/policy/validate",
			map[string]any{"yml": string(text)})
		if err != nil {
			return err
		}
		var out struct {
			OK      bool     `json:"ok"`
			Errors  []string `json:"errors"`
			Clamped []struct{ Field, Asked, Given, Floor string }
		}
		if err := json.Unmarshal(b, &out); err != nil {
			return err
		}
		o := &output.Flags{}
		if o.From(fl); o.ForPrograms() {
			err = o.Print(os.Stdout, b)
		} else {
			for _, line := range out.Errors {
				fmt.Println(client.Inert(line))
			}
			for _, f := range out.Clamped {
				screen.Say("%s: %s was asked for, %s is given, because of %s\n", f.Field, f.Asked, f.Given, f.Floor)
			}
			if out.OK {
				fmt.Println("It is a good policy file. Nothing is stored: commit it as .svc/policy.yml.")
			}
		}
		if err == nil && !out.OK {
			err = errors.New("it is no good policy file: a repository with it has the defaults")
		}
		return err
	}
}
