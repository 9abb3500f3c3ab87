// Package signin knows which server and account a command talks to, asks people for what proves it, and
// remembers it.
package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/client"
)

// Context is the value of --context.
var Context string

// Login is the login that the command line uses. It fails with client.ErrNoLogin if there
// is no token; the answer has the address even so.
func Login() (client.Login, error) {
	return client.LoadLogin(os.Getenv, Context, client.SystemKeyring(os.Getenv))
}

// Server is the address and the name of the login, without its token: the keyring is not
// asked. The address is "" if the stored logins cannot be read.
func Server() (address, name string) {
	l, _ := client.LoadLogin(os.Getenv, Context, nil)
	return l.URL, l.Name
}

// Connect is a client with the login that the command line uses. It fails as Login does.
func Connect() (*client.Client, error) {
	l, err := Login()
	if err != nil {
		return nil, err
	}
	return &client.Client{URL: l.URL, Token: l.Token}, nil
}

// ServerAt is the address of a flag, or else of the login.
func ServerAt(address string) (string, error) {
	if address == "" {
		l, err := Login()
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

// named is the context that the person names, by flag or else by variable; "" if by neither.
func named() string { return cmp.Or(Context, os.Getenv("YARDMASTER_CONTEXT")) }

// serverOf is ServerAt for somebody who signs in, maybe into a context that is new.
func serverOf(address string) (string, error) {
	context := named()
	if address != "" || context == "" {
		return ServerAt(address)
	}
	all, err := client.ReadLogins()
	if err != nil {
		return "", err
	}
	of, known := all.Get(context)
	if known && (Context != "" || os.Getenv("YARDMASTER_URL") == "") { // which comes before the variable of the context
		return of.URL, nil
	}
	if len(all.Logins) == 0 && os.Getenv("YARDMASTER_URL") == "" {
		return "", exit.Misused("give --url, the address of the server: there is no context %q yet, nor any other", context)
	}
	inUse := func(name string) string { // without the variable, which names the new one
		if name == "YARDMASTER_CONTEXT" {
			return ""
		}
		return os.Getenv(name)
	}
	l, err := client.LoadLogin(inUse, "", nil) // even without a token
	if l.URL == "" {
		return "", err
	}
	if known {
		return l.URL, nil
	}
	fmt.Fprintf(os.Stderr, "The context %s is new: you sign in to %s.\n", client.Inert(context), client.Inert(l.URL))
	return l.URL, nil
}

// ServerWhich is serverOf for somebody who begins at a server: one on this machine that the
// last login is of, and that does not run any more, such as that of a demo, is left.
func ServerWhich(ctx context.Context, address string) (string, error) {
	server, err := serverOf(address)
	if err != nil || address != "" || named() != "" || os.Getenv("YARDMASTER_URL") != "" || server == client.DefaultURL {
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

// Remember stores the login of a client as a context, which is used from then on.
func Remember(ctx context.Context, c *client.Client) error {
	all, err := client.ReadLogins()
	if err != nil {
		return err
	}
	of := client.Login{Name: named(), URL: c.URL, Token: c.Token}
	if of.Name == "" {
		of.Name = all.NameFor(c.URL)
	}
	var me Identity
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err == nil {
		of.Account = me.Account.Login
	}
	if was := all.Logins[of.Name].Account; named() == "" && was != "" && of.Account != "" && was != of.Account {
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

// Forget forgets the logins at a server that has ended for good.
func Forget(address string) error {
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

// Identity has the members of who is calling that the command line uses.
type Identity struct {
	Scopes []string `json:"scopes"`
	User   *struct {
		Login string `json:"login"`
		Email string `json:"email"`
	} `json:"user"`
	Account struct {
		Login string `json:"login"`
	} `json:"account"`
	Credential struct {
		Kind      string     `json:"kind"`
		ID        string     `json:"id"`
		ExpiresAt *time.Time `json:"expires_iso"`
	} `json:"credential"`
}

// Telling says what calls wait for, once where several wait for the same.
func Telling(w io.Writer) func(string) {
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
