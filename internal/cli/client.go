package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	flag "github.com/spf13/pflag"
	"golang.org/x/term"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// loginFlags are those of login and auth login.
type loginFlags struct{ address, login, account string }

func defineLogin(fl *flag.FlagSet) tree.Action {
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
	server, err := signin.ServerWhich(ctx, of.address)
	if err != nil {
		return err
	}
	if of.login != "" {
		password, err := signin.Ask(ctx, "Password", true)
		if err != nil {
			return err
		}
		c, err := client.SignIn(ctx, server, of.login, password, of.account)
		if err != nil {
			return err
		}
		return signin.Remember(ctx, c)
	}
	c := &client.Client{URL: server}
	err = c.SignInByDevice(ctx, func(a client.Approval) {
		fmt.Fprintf(os.Stderr, "Open %s in a browser and see that it shows the code %s.\n", client.Inert(a.Complete),
			client.Inert(a.UserCode))
	})
	if err != nil {
		return err
	}
	return signin.Remember(ctx, c)
}

func defineSetup(fl *flag.FlagSet) tree.Action {
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
	return signin.ServerWhich(ctx, address)
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
			if *of.value, err = signin.Ask(ctx, of.text, false); err != nil {
				return err
			}
		}
	}
	unseen := func(prompt string) (string, error) { return signin.Ask(ctx, prompt, true) }
	if o.Password, err = signin.Choose(term.IsTerminal(int(os.Stdin.Fd())), unseen); err != nil {
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
	if err := signin.Remember(ctx, c); err != nil {
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
