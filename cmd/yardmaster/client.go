package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"yardmaster/internal/client"
)

func connect() (*client.Client, error) {
	l, err := client.LoadLogin(os.Getenv)
	if err != nil {
		return nil, err
	}
	return &client.Client{URL: l.URL, Token: l.Token}, nil
}

// serverAt is the address of a flag, or else of the login.
func serverAt(address string) (string, error) {
	if address == "" {
		l, err := client.LoadLogin(os.Getenv)
		if l.URL == "" {
			return "", err
		}
		return l.URL, nil // even without a token
	}
	server, err := client.Address(address)
	if err != nil {
		return "", misuse{"--url: " + err.Error()}
	}
	return server, nil
}

// ask prompts on a terminal, without echo if secret. It ends with ctx, although
// reading a terminal cannot be cancelled.
func ask(ctx context.Context, prompt string, secret bool) (string, error) {
	terminal := int(os.Stdin.Fd())
	before, err := term.GetState(terminal)
	if err == nil {
		fmt.Fprint(os.Stderr, prompt+": ")
	}
	onTerminal := err == nil
	type answer struct {
		text string
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		if secret && onTerminal {
			b, err := term.ReadPassword(terminal)
			given <- answer{string(b), err}
			return
		}
		text, err := bufio.NewReader(os.Stdin).ReadString('\n')
		given <- answer{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case a := <-given:
		if secret && onTerminal {
			fmt.Fprintln(os.Stderr)
			return a.text, a.err
		}
		if a.text == "" && a.err != nil {
			return "", misused("%s is read from standard input, which is empty", strings.ToLower(prompt))
		}
		return a.text, nil
	case <-ctx.Done():
		if onTerminal {
			_ = term.Restore(terminal, before) // turns the echo on again
			fmt.Fprintln(os.Stderr)
		}
		return "", ctx.Err()
	}
}

// leastPassword is the least number of characters that the server accepts.
const leastPassword = 10

// choose asks for a new password, twice if twice is set: where a person types it
// unseen.
func choose(twice bool, ask func(prompt string) (string, error)) (string, error) {
	password, err := ask(fmt.Sprintf("Password, at least %d characters", leastPassword))
	if err != nil {
		return "", err
	}
	if utf8.RuneCountInString(password) < leastPassword {
		return "", misused("the password has fewer than %d characters", leastPassword)
	}
	if !twice {
		return password, nil
	}
	again, err := ask("The same again")
	if err == nil && again != password {
		err = misuse{"the two passwords are not the same"}
	}
	return password, err
}

func runLogin(ctx context.Context, args []string) error {
	fl := flags("login")
	address := fl.String("url", "", "address of the server; that of the last login, or http://127.0.0.1:8080, when empty")
	login := fl.String("login", "", "login or e-mail, to sign in with a password; in a browser when empty")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	server, err := serverAt(*address)
	if err != nil {
		return err
	}
	if *login == "" {
		c := &client.Client{URL: server}
		err := c.SignInByDevice(ctx, func(a client.Approval) {
			fmt.Fprintf(os.Stderr, "Open %s in a browser and see that it shows the code %s.\n", client.Inert(a.Complete),
				client.Inert(a.UserCode))
		})
		if err != nil {
			return err
		}
		return remember(c)
	}
	password, err := ask(ctx, "Password", true)
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
	address := fl.String("url", "", "address of the server; that of the last login, or http://127.0.0.1:8080, when empty")
	token := fl.String("token", os.Getenv("YARDMASTER_SETUP_TOKEN"),
		"`TOKEN` at the end of the address that the server printed (YARDMASTER_SETUP_TOKEN)")
	var o client.Owner
	fl.StringVar(&o.Login, "login", "", "your login")
	fl.StringVar(&o.Email, "email", "", "your e-mail address")
	fl.StringVar(&o.Account, "account", "", "your team's name, the owner of its repositories")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	server, err := serverAt(*address)
	if err != nil {
		return err
	}
	if *token == "" {
		return misuse{"give --token, the end of the address that the server printed"}
	}
	for _, of := range []struct {
		value      *string
		name, text string
	}{{&o.Login, "login", "Your login"}, {&o.Email, "email", "Your e-mail address"}, {&o.Account, "account", "Your team's name"}} {
		switch {
		case *of.value != "":
		case !term.IsTerminal(int(os.Stdin.Fd())):
			return misuse{"give --" + of.name}
		default:
			if *of.value, err = ask(ctx, of.text, false); err != nil {
				return err
			}
		}
	}
	unseen := func(prompt string) (string, error) { return ask(ctx, prompt, true) }
	if o.Password, err = choose(term.IsTerminal(int(os.Stdin.Fd())), unseen); err != nil {
		return err
	}
	c, err := client.Setup(ctx, server, *token, o)
	if err != nil {
		return unopened(err, server)
	}
	return remember(c)
}

// unopened names the server that was asked, if it does not accept the setup token.
func unopened(err error, server string) error {
	var refusal *client.Problem
	if errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		return fmt.Errorf("%s, which was asked, takes no such token: it was set up before, or the token is of another server; --url names another", server)
	}
	return err
}

type page[T any] struct {
	Data []T `json:"data"`
}

// table prints rows under a header, cut to the width of the terminal and without
// control characters, since strangers may have written the cells. For no rows it
// prints first, the command that makes the first row.
func table(header string, rows [][]string, first string) {
	lines(header, rows)
	if len(rows) == 0 {
		fmt.Fprintf(os.Stderr, "There are none yet: %s\n", first)
	}
}

// lines prints the rows of a table under its header.
func lines(header string, rows [][]string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	for _, r := range rows {
		for i, cell := range r {
			r[i] = client.Inert(cell)
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
	most := width()
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, " \n")
		if r := []rune(line); most > 1 && len(r) > most {
			line = string(r[:most-1]) + "…"
		}
		fmt.Println(line)
	}
}

func runKeyAdd(ctx context.Context, args []string) error {
	fl := flags("key add")
	provider := fl.String("provider", "", "`NAME`: anthropic, openai, google, openrouter, compatible or scripted")
	label := fl.String("label", "", "a name for people; the provider's when empty")
	base := fl.String("base-url", "", "address of a compatible endpoint")
	model := fl.String("model", "", "model of a compatible endpoint; when empty, the endpoint is asked, and must have exactly one")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	if *provider == "" {
		return misuse{"give --provider: anthropic, openai, google, openrouter, compatible or scripted"}
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
	if *model != "" {
		in["model"] = *model
	}
	if *provider != "scripted" {
		if in["key"], err = ask(ctx, "Key", true); err != nil {
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
	if err := c.Call(ctx, http.MethodPost, "/v1/billing/keys", in, &out); err != nil {
		return err
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintf("Added key %s %s", out.ID, out.Masked)))
	if *provider == "scripted" {
		fmt.Println("It is a script and no model: it does what the file says that `yardmaster serve --scenario FILE` names. A server without --scenario changes nothing, and its tasks end completed with nothing done.")
	}
	switch {
	case out.Model == nil:
	case len(out.Templates) > 0:
		fmt.Printf("The model is %s, in the templates %s.\n", client.Inert(*out.Model), strings.Join(out.Templates, ", "))
	default: // the templates name models of their own, or use a key of higher priority
		fmt.Printf("The model is %s, but no template uses it yet. One that does:\n  yardmaster call template.set name=NAME provider=compatible base_url=%s model=%s\n",
			client.Inert(*out.Model), client.Inert(out.BaseURL), client.Inert(*out.Model))
	}
	return nil
}
