package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	flag "github.com/spf13/pflag"
	"golang.org/x/term"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// login is the login that the command line uses. It fails with client.ErrNoLogin if there
// is no token; the answer has the address even so.
func login() (client.Login, error) {
	return client.LoadLogin(os.Getenv, contextFlag, client.SystemKeyring(os.Getenv))
}

// server is the address and the name of the login, without its token: the keyring is not
// asked. The address is "" if the stored logins cannot be read.
func server() (address, name string) {
	l, _ := client.LoadLogin(os.Getenv, contextFlag, nil)
	return l.URL, l.Name
}

func connect() (*client.Client, error) {
	l, err := login()
	if err != nil {
		return nil, err
	}
	return &client.Client{URL: l.URL, Token: l.Token}, nil
}

// waits says what calls wait for, once where several wait for the same.
func waits(w io.Writer) func(string) {
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last {
			last = text
			fmt.Fprintf(w, "yardmaster: %s.\n", client.Inert(text))
		}
	}
}

// serverAt is the address of a flag, or else of the login.
func serverAt(address string) (string, error) {
	if address == "" {
		l, err := login()
		if l.URL == "" {
			return "", err
		}
		return l.URL, nil // even without a token
	}
	server, err := client.Address(address)
	if err != nil {
		return "", exit.Misuse("--url: " + err.Error())
	}
	return server, nil
}

// ask prompts on a terminal, without echo if secret. It ends with ctx, although
// reading a terminal cannot be cancelled.
func ask(ctx context.Context, prompt string, secret bool) (string, error) {
	in := int(os.Stdin.Fd())
	before, err := term.GetState(in)
	onTerminal := err == nil
	if onTerminal && secret {
		// ReadPassword would turn the echo off only after the prompt has asked.
		if err := terminal.Mute(in); err != nil {
			return "", err
		}
		defer func() { _ = term.Restore(in, before) }()
	}
	if onTerminal {
		fmt.Fprint(os.Stderr, prompt+": ")
	}
	type answer struct {
		text string
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		if secret && onTerminal {
			b, err := term.ReadPassword(in)
			given <- answer{string(b), err}
			return
		}
		text, err := bufio.NewReader(os.Stdin).ReadString('\n')
		given <- answer{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case a := <-given:
		if secret && onTerminal {
			_ = term.Restore(in, before)
			fmt.Fprintln(os.Stderr)
			return a.text, a.err
		}
		if a.text == "" && a.err != nil {
			return "", exit.Misused("%s is read from standard input, which is empty", strings.ToLower(prompt))
		}
		return a.text, nil
	case <-ctx.Done():
		if onTerminal {
			_ = term.Restore(in, before) // turns the echo on again
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
		return "", exit.Misused("the password has fewer than %d characters", leastPassword)
	}
	if !twice {
		return password, nil
	}
	again, err := ask("The same again")
	if err == nil && again != password {
		err = exit.Misuse("the two passwords are not the same")
	}
	return password, err
}

// loginFlags are those of login and auth login.
type loginFlags struct{ address, login, account string }

func defineLogin(fl *flag.FlagSet) action {
	var of loginFlags
	fl.StringVar(&of.address, "url", "", "address of the server; that of the last login, or http://127.0.0.1:8080, when empty")
	fl.StringVar(&of.login, "login", "", "login or e-mail, to sign in with a password; in a browser when empty")
	fl.StringVar(&of.account, "account", "", "with --login, `ACCOUNT` that the token is for; your active one when empty")
	return func(ctx context.Context, _ []string) error {
		if of.account != "" && of.login == "" {
			return exit.Misused("--account goes with --login: in a browser you choose the account there")
		}
		return of.run(ctx)
	}
}

func (of loginFlags) run(ctx context.Context) error {
	server, err := serverWhich(ctx, of.address)
	if err != nil {
		return err
	}
	if of.login != "" {
		password, err := ask(ctx, "Password", true)
		if err != nil {
			return err
		}
		c, err := client.SignIn(ctx, server, of.login, password, of.account)
		if err != nil {
			return err
		}
		return remember(ctx, c)
	}
	c := &client.Client{URL: server}
	err = c.SignInByDevice(ctx, func(a client.Approval) {
		fmt.Fprintf(os.Stderr, "Open %s in a browser and see that it shows the code %s.\n", client.Inert(a.Complete),
			client.Inert(a.UserCode))
	})
	if err != nil {
		return err
	}
	return remember(ctx, c)
}

// serverOf is serverAt for somebody who signs in, maybe into a context that is new.
func serverOf(address string) (string, error) {
	if address != "" || contextFlag == "" {
		return serverAt(address)
	}
	all, err := client.ReadLogins()
	if err != nil {
		return "", err
	}
	if of, known := all.Get(contextFlag); known {
		return of.URL, nil
	}
	if len(all.Logins) == 0 && os.Getenv("YARDMASTER_URL") == "" {
		return "", exit.Misused("give --url, the address of the server: there is no context %q yet, nor any other", contextFlag)
	}
	l, err := client.LoadLogin(os.Getenv, "", nil) // that of the context in use, even without a token
	if l.URL == "" {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "The context %s is new: you sign in to %s.\n", client.Inert(contextFlag), client.Inert(l.URL))
	return l.URL, nil
}

// remember stores the login of a client as a context, which is used from then on.
func remember(ctx context.Context, c *client.Client) error {
	all, err := client.ReadLogins()
	if err != nil {
		return err
	}
	of := client.Login{Name: contextFlag, URL: c.URL, Token: c.Token}
	if of.Name == "" {
		of.Name = all.NameFor(c.URL)
	}
	var me identity
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err == nil {
		of.Account = me.Account.Login
	}
	if was := all.Logins[of.Name].Account; contextFlag == "" && was != "" && of.Account != "" && was != of.Account {
		of.Name = of.Account // another account at the same server takes nothing's place
	}
	if err := all.Put(of, client.SystemKeyring(os.Getenv)); err != nil {
		return err
	}
	path, err := client.LoginFile()
	where := path
	if all.Logins[of.Name].Keyring {
		where = "the system's keyring"
	}
	fmt.Printf("Signed in to %s; the token is in %s.\n", c.URL, where)
	if len(all.Logins) > 1 {
		fmt.Printf("The context is %s; `yardmaster auth use NAME` changes it.\n", of.Name)
	}
	return err
}

func defineSetup(fl *flag.FlagSet) action {
	address := fl.String("url", "", "address of the server; that of the last login, or http://127.0.0.1:8080, when empty")
	token := fl.String("token", os.Getenv("YARDMASTER_SETUP_TOKEN"),
		"`ADDRESS` that the server printed, or the token at its end (YARDMASTER_SETUP_TOKEN)")
	var o client.Owner
	fl.StringVar(&o.Login, "login", "", "your login")
	fl.StringVar(&o.Email, "email", "", "your e-mail address")
	fl.StringVar(&o.Account, "account", "", "your team's name, the owner of its repositories")
	return func(ctx context.Context, _ []string) error {
		server, err := setupAddress(ctx, *address, token)
		if err != nil {
			return err
		}
		return setUp(ctx, server, token, o)
	}
}

// setupAddress is the server that is to be set up, and leaves of the token what stands at
// the end of the address that the server printed.
func setupAddress(ctx context.Context, address string, token *string) (string, error) {
	if at := strings.LastIndex(*token, "/setup/"); at > 0 {
		server, err := client.Address((*token)[:at])
		if err != nil {
			return "", exit.Misuse("--token: " + err.Error())
		}
		*token = strings.TrimRight((*token)[at+len("/setup/"):], "/")
		if address == "" {
			return server, nil
		}
	}
	return serverWhich(ctx, address)
}

// serverWhich is serverOf for somebody who begins at a server: one on this machine that the
// last login is of, and that does not run any more, such as that of a demo, is left.
func serverWhich(ctx context.Context, address string) (string, error) {
	server, err := serverOf(address)
	if err != nil || address != "" || contextFlag != "" || os.Getenv("YARDMASTER_URL") != "" || server == client.DefaultURL {
		return server, err
	}
	u, err := url.Parse(server)
	if err != nil || net.ParseIP(u.Hostname()) == nil || !net.ParseIP(u.Hostname()).IsLoopback() {
		return server, err
	}
	err = (&client.Client{URL: server}).Call(ctx, http.MethodGet, "/healthz", nil, nil)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return server, nil
	}
	fmt.Fprintf(os.Stderr, "%s, the server of your last login, does not run any more: this is about %s.\n", client.Inert(server),
		client.DefaultURL)
	return client.DefaultURL, nil
}

func setUp(ctx context.Context, server string, token *string, o client.Owner) (err error) {
	if *token == "" {
		return exit.Misuse("give --token, the address that the server printed")
	}
	if err := client.SetupOpen(ctx, server, *token); err != nil { // before anything is asked
		return unopened(err, server)
	}
	for _, of := range []struct {
		value      *string
		name, text string
	}{{&o.Login, "login", "Your login"}, {&o.Email, "email", "Your e-mail address"}, {&o.Account, "account", "Your team's name"}} {
		switch {
		case *of.value != "":
		case !term.IsTerminal(int(os.Stdin.Fd())):
			return exit.Misuse("give --" + of.name)
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
	signIn := fmt.Sprintf("the server is set up, and you are its owner: `%s` signs you in", client.SignInCommand("", server))
	c, err := client.Setup(ctx, server, *token, o)
	if err != nil {
		var refusal *client.Problem
		if again := client.SetupOpen(ctx, server, *token); errors.As(again, &refusal) && refusal.Status == http.StatusNotFound {
			return fmt.Errorf("%w; %s", err, signIn) // what failed came after
		}
		return unopened(err, server)
	}
	if err := remember(ctx, c); err != nil {
		return fmt.Errorf("%w; %s", err, signIn)
	}
	fmt.Println("Next: yardmaster key add --provider NAME, yardmaster repo add PATH, and yardmaster box join on a machine for agents.")
	return nil
}

// unopened names the server that was asked, if it does not accept the setup token.
func unopened(err error, server string) error {
	var refusal *client.Problem
	if errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		return fmt.Errorf("%s, which was asked, takes no such token: it was set up before, or the token is of another server; --url names another",
			server)
	}
	return err
}

// forgetServer forgets the logins at a server that has ended for good.
func forgetServer(address string) error {
	all, err := client.ReadLogins()
	if err != nil {
		return err
	}
	for _, name := range all.Names() {
		if of, _ := all.Get(name); of.URL == address {
			err = errors.Join(err, all.Remove(name, client.SystemKeyring(os.Getenv)))
		}
	}
	return err
}

// rowsOf are the rows of a list.
type rowsOf[T any] struct {
	Data []T `json:"data"`
}
