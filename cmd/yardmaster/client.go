package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"yardmaster/internal/app"
	"yardmaster/internal/client"
)

// flags makes a flag set whose errors and help go to standard error.
func flags(name string) *flag.FlagSet {
	return flag.NewFlagSet("yardmaster "+name, flag.ContinueOnError)
}

// parse takes flags before and after the plain arguments, which it answers.
func parse(fl *flag.FlagSet, args []string) ([]string, error) {
	var plain []string
	for {
		if err := fl.Parse(args); err != nil {
			return nil, err
		}
		if fl.NArg() == 0 {
			return plain, nil
		}
		plain = append(plain, fl.Arg(0))
		args = fl.Args()[1:]
	}
}

func connect() (*client.Client, error) {
	l, err := client.LoadLogin(os.Getenv)
	if err != nil {
		return nil, err
	}
	return &client.Client{URL: l.URL, Token: l.Token}, nil
}

// ask prompts on a terminal; secret answers are not echoed.
func ask(prompt string, secret bool) (string, error) {
	if secret && term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprint(os.Stderr, prompt+": ")
		b, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(os.Stderr)
		return string(b), err
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprint(os.Stderr, prompt+": ")
	}
	s, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if s = strings.TrimRight(s, "\r\n"); s == "" && err != nil {
		return "", fmt.Errorf("%s is needed: %w", strings.ToLower(prompt), err)
	}
	return s, nil
}

func runLogin(ctx context.Context, args []string) error {
	fl := flags("login")
	address := fl.String("url", "http://127.0.0.1:8080", "address of the server")
	login := fl.String("login", "", "login or e-mail, to sign in with a password; in a browser when empty")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	server := strings.TrimSuffix(*address, "/")
	if *login == "" {
		c := &client.Client{URL: server}
		err := c.SignInByDevice(ctx, func(a client.Approval) {
			fmt.Fprintf(os.Stderr, "Open %s in a browser and see that it shows the code %s.\n", client.Inert(a.Complete), client.Inert(a.UserCode))
		})
		if err != nil {
			return err
		}
		return remember(c)
	}
	password, err := ask("Password", true)
	if err != nil {
		return err
	}
	c, err := client.SignIn(ctx, server, *login, password)
	if err != nil {
		return err
	}
	return remember(c)
}

func remember(c *client.Client) error {
	if err := (client.Login{URL: c.URL, Token: c.Token}).Save(); err != nil {
		return err
	}
	path, err := client.LoginFile()
	fmt.Printf("Signed in to %s; the token is in %s.\n", c.URL, path)
	return err
}

func runSetup(ctx context.Context, args []string) error {
	fl := flags("setup")
	address := fl.String("url", "http://127.0.0.1:8080", "address of the server")
	token := fl.String("token", os.Getenv("YARDMASTER_SETUP_TOKEN"), "setup token that the server printed (YARDMASTER_SETUP_TOKEN)")
	var o client.Owner
	fl.StringVar(&o.Login, "login", "", "your login")
	fl.StringVar(&o.Email, "email", "", "your e-mail address")
	fl.StringVar(&o.Account, "account", "", "your team's name, the owner of its repositories")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	var err error
	if o.Password, err = ask("Password", true); err != nil {
		return err
	}
	c, err := client.Setup(ctx, strings.TrimSuffix(*address, "/"), *token, o)
	if err != nil {
		return err
	}
	return remember(c)
}

type me struct {
	Account struct {
		Login string `json:"login"`
	} `json:"account"`
}

func runRepoAdd(ctx context.Context, args []string) error {
	fl := flags("repo add")
	full := fl.String("name", "", "OWNER/NAME on the server; the account and the source's own name when empty")
	plain, err := parse(fl, args)
	if err != nil {
		return err
	}
	if len(plain) != 1 {
		return errors.New("give one path or address of a git repository")
	}
	c, err := connect()
	if err != nil {
		return err
	}
	owner, name, ok := strings.Cut(*full, "/")
	if !ok {
		if *full != "" {
			return errors.New("--name has the form OWNER/NAME")
		}
		var who me
		if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &who); err != nil {
			return err
		}
		source := plain[0]
		if abs, err := filepath.Abs(source); err == nil && !strings.Contains(source, "://") {
			source = abs
		}
		owner, name = who.Account.Login, strings.ToLower(strings.TrimSuffix(filepath.Base(source), ".git"))
	}
	if err := c.AddRepo(ctx, plain[0], owner, name); err != nil {
		return err
	}
	fmt.Printf("%s/%s is on the server. Fetch what agents do from %s/git/%s/%s.git\n", owner, name, c.URL, owner, name)
	return nil
}

type page[T any] struct {
	Data []T `json:"data"`
}

// table prints rows under a header. What stands in them may be a stranger's.
func table(header string, rows [][]string) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	for _, r := range rows {
		for i, cell := range r {
			r[i] = client.Inert(cell)
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

func runRepoList(ctx context.Context, _ []string) error {
	c, err := connect()
	if err != nil {
		return err
	}
	var p page[struct {
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
		Enabled       bool   `json:"enabled"`
	}]
	if err := c.Call(ctx, http.MethodGet, "/v1/repos?per_page=100", nil, &p); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range p.Data {
		rows = append(rows, []string{r.FullName, r.DefaultBranch, strconv.FormatBool(r.Enabled)})
	}
	table("REPOSITORY\tBRANCH\tENABLED", rows)
	return nil
}

func runKeyAdd(ctx context.Context, args []string) error {
	fl := flags("key add")
	provider := fl.String("provider", "", "anthropic, openai, google, openrouter, compatible or scripted")
	label := fl.String("label", "", "a name for people; the provider's when empty")
	base := fl.String("base-url", "", "address of a compatible endpoint")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	in := map[string]any{"provider": *provider, "label": *label}
	if *label == "" {
		in["label"] = *provider
	}
	if *base != "" {
		in["base_url"] = *base
	}
	if *provider != "scripted" {
		if in["key"], err = ask("Key", true); err != nil {
			return err
		}
	}
	var out struct {
		ID     string `json:"id"`
		Masked string `json:"masked"`
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/billing/keys", in, &out); err != nil {
		return err
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintf("Added key %s %s", out.ID, out.Masked)))
	return nil
}

// runCall calls a capability by its id: the arguments travel where the row
// says. A value that is JSON is sent as such, anything else as text.
func runCall(ctx context.Context, args []string) error {
	if len(args) == 0 {
		for _, o := range app.Ops() {
			fmt.Printf("%-34s %-6s %s\n", o.ID, o.Method, o.Path)
		}
		return nil
	}
	c, err := connect()
	if err != nil {
		return err
	}
	for _, o := range app.Ops() {
		if o.ID != args[0] {
			continue
		}
		path, query, body := o.Path, url.Values{}, map[string]any{}
		where := o.Input()
		for _, a := range args[1:] {
			name, value, ok := strings.Cut(a, "=")
			if !ok {
				return fmt.Errorf("%q has not the form name=value", a)
			}
			switch where[name] {
			case "path":
				path = strings.NewReplacer("{"+name+"}", url.PathEscape(value), "{"+name+"...}", value).Replace(path)
			case "query":
				query.Add(name, value)
			case "body":
				var v any
				if json.Unmarshal([]byte(value), &v) != nil {
					v = value
				}
				body[name] = v
			default:
				return fmt.Errorf("%s has no input %q", o.ID, name)
			}
		}
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		if o.IsStream() {
			return c.Stream(ctx, path, "", func(f client.Frame) error {
				fmt.Println(client.Escape(fmt.Sprintf("%s %s %s", f.ID, f.Event, f.Data)))
				return nil
			})
		}
		var in any
		if len(body) > 0 {
			in = body
		}
		var out json.RawMessage
		if err := c.Call(ctx, o.Method, path, in, &out); err != nil {
			return err
		}
		var v any
		if json.Unmarshal(out, &v) == nil {
			out, _ = json.MarshalIndent(v, "", "  ")
		}
		fmt.Println(client.Escape(string(out)))
		return nil
	}
	return fmt.Errorf("there is no capability %q; `yardmaster call` lists them", args[0])
}
