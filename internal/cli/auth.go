package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func authCommands() []tree.Command {
	return []tree.Command{
		{Words: "auth login", Summary: "sign in and remember a token", Define: defineLogin,
			More: "A context is a server and an account under a name: --context NAME makes one besides those there are.",
			Examples: []string{"yardmaster auth login --url https://yard.example.com",
				"yardmaster auth login --context work --url https://yard.example.com", "yardmaster auth login --login ada < password.txt"}},
		{Words: "auth status", Answers: "account.me", Summary: "who you are, where, and what you may do", Define: defineAuthStatus,
			Examples: []string{"yardmaster auth status", "yardmaster auth status --json scopes --jq '.scopes[]'"}},
		{Words: "auth list", Summary: "the contexts: servers and accounts by name", Define: tree.Answers(runAuthList),
			Members: []string{"context", "used", "account", "token", "server"}},
		{Words: "auth use", Args: "NAME", Summary: "make a context the one that is used", Define: tree.Nothing(runAuthUse),
			Values: map[string]tree.Values{"NAME": tree.ContextNames}, Examples: []string{"yardmaster auth use work"}},
		{Words: "auth token", Summary: "print the token", Define: tree.Nothing(runAuthToken),
			Examples: []string{`curl -H "Authorization: Bearer $(yardmaster auth token)" http://127.0.0.1:8080/v1/me`}},
		{Words: "auth logout", Summary: "forget the token, and revoke it at the server", Define: defineLogout,
			Examples: []string{"yardmaster auth logout", "yardmaster auth logout --context work"}},
		{Words: "auth git", Summary: "have git sign in to the server with your login", Define: tree.Nothing(runAuthGit)},
	}
}

func defineAuthStatus(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		l, err := signin.Login()
		if err != nil {
			return err
		}
		c := &client.Client{URL: l.URL, Token: l.Token}
		return o.Show(ctx, func() ([]byte, error) { return c.Fetch(ctx, http.MethodGet, "/v1/me", nil) },
			func(w io.Writer, b []byte) error {
				var me signin.Identity
				if err := json.Unmarshal(b, &me); err != nil {
					return err
				}
				var facts []terminal.Fact
				say := func(label, text string) {
					if text != "" {
						facts = append(facts, terminal.Fact{Label: label, Value: terminal.Cell{Text: text}})
					}
				}
				say("server", l.URL)
				if me.User != nil {
					say("signed in as", strings.TrimSpace(me.User.Login+" "+me.User.Email))
				}
				say("account", me.Account.Login)
				say("context", l.Name)
				if os.Getenv("YARDMASTER_TOKEN") != "" && signin.Context == "" {
					say("token", "from YARDMASTER_TOKEN")
				} else if path, err := client.LoginFile(); err == nil {
					if l.Keyring {
						path = "the system's keyring"
					}
					say("token", "in "+path)
				}
				if me.Credential.ExpiresAt != nil {
					say("token ends", terminal.When(time.Now(), *me.Credential.ExpiresAt))
				}
				say("may", strings.Join(me.Scopes, ", "))
				return screen.Out().Facts(w, facts)
			})
	}
}

func runAuthList(_ context.Context, _ []string, o *output.Flags) error {
	all, err := client.ReadLogins()
	if err != nil {
		return err
	}
	type context struct {
		Context string `json:"context"`
		Used    bool   `json:"used"`
		Account string `json:"account"`
		Token   string `json:"token"` // where it is
		Server  string `json:"server"`
	}
	_, current := signin.Server()
	known := []context{}
	var rows [][]string
	for _, name := range all.Names() {
		l, _ := all.Get(name)
		used, where := "", "file"
		if name == current {
			used = "*"
		}
		if l.Keyring {
			where = "keyring"
		}
		known = append(known, context{name, used != "", l.Account, where, l.URL})
		rows = append(rows, []string{used, name, l.Account, where, l.URL})
	}
	if o.ForPrograms() {
		b, err := object.Encode(known)
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	screen.Lines("USED\tCONTEXT\tACCOUNT\tTOKEN\tSERVER", rows)
	if len(rows) == 0 {
		fmt.Fprintln(os.Stderr, "There are none yet: "+client.SignInCommand("", ""))
	}
	return nil
}

func runAuthUse(_ context.Context, plain []string) error {
	all, err := client.ReadLogins()
	if err != nil {
		return err
	}
	l, known := all.Get(plain[0])
	if !known {
		return &client.UnknownContext{Name: plain[0], Known: all.Names()}
	}
	before := all.Current
	if err := all.Use(plain[0]); err != nil {
		return err
	}
	fmt.Printf("%s at %s is used from now on.\n", client.Inert(strings.TrimSpace(plain[0]+" "+l.Account)), l.URL)
	if before != "" && before != plain[0] {
		fmt.Printf("Undo: yardmaster auth use %s\n", client.Inert(before))
	}
	return nil
}

func runAuthToken(context.Context, []string) error {
	l, err := signin.Login()
	if err != nil {
		return err
	}
	fmt.Println(client.Inert(l.Token))
	return nil
}

func defineLogout(fl *flag.FlagSet) tree.Action {
	keep := fl.Bool("keep", false, "leave the token good at the server")
	return func(ctx context.Context, _ []string) error {
		all, err := client.ReadLogins()
		if err != nil {
			return err
		}
		name := cmp.Or(signin.Context, os.Getenv("YARDMASTER_CONTEXT"), all.Current)
		l, known := all.Get(name)
		if !known {
			if name == "" {
				return exit.Misuse("no context is in use: there is nothing to forget")
			}
			return &client.UnknownContext{Name: name, Known: all.Names()}
		}
		ring := client.SystemKeyring(os.Getenv)
		if full, err := client.LoadLogin(os.Getenv, name, ring); err == nil && !*keep {
			if err := revoke(ctx, full); err != nil {
				fmt.Fprintf(os.Stderr,
					"The token could not be revoked at the server, where it may be good still: %s\n", client.Escape(err.Error()))
			}
		}
		if err := all.Remove(name, ring); err != nil {
			return err
		}
		fmt.Printf("The token for %s is forgotten; `%s` gets another.\n", l.URL, client.SignInCommand(name, l.URL))
		return nil
	}
}

// revoke ends a personal access token at its server.
func revoke(ctx context.Context, l client.Login) error {
	c := &client.Client{URL: l.URL, Token: l.Token}
	var me signin.Identity
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return err
	}
	if me.Credential.Kind != "pat" {
		return errors.New("it is no personal access token")
	}
	return c.Call(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(me.Credential.ID), nil, nil)
}

// runAuthGit has git ask this program for the password of the server's repositories.
func runAuthGit(ctx context.Context, _ []string) error {
	l, err := signin.Login()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	helper := "!'" + strings.ReplaceAll(self, "'", `'\''`) + "' git-credential"
	key := "credential." + l.URL + ".helper"
	if _, err := client.Git(ctx, ".", "", "", "config", "--global", "--replace-all", key, helper); err != nil {
		return err
	}
	fmt.Printf("git signs in to %s with your login.\nUndo: git config --global --unset-all %s\n", l.URL, key)
	return nil
}

// runGitCredential is a credential helper of git (gitcredentials(7)): it answers get for
// the server alone, and ignores all else.
func runGitCredential(_ context.Context, plain []string) error {
	if len(plain) == 0 || plain[0] != "get" {
		return nil
	}
	asked := map[string]string{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() && in.Text() != "" {
		name, value, _ := strings.Cut(in.Text(), "=")
		asked[name] = value
	}
	named := func(address string) bool {
		server, err := url.Parse(address)
		return err == nil && asked["protocol"] == server.Scheme && asked["host"] == server.Host && server.Host != ""
	}
	l, err := signin.Login()
	if !named(l.URL) || err != nil {
		all, err := client.ReadLogins()
		if err != nil {
			return err
		}
		l = client.Login{}
		for _, name := range all.Names() {
			if of, _ := all.Get(name); named(of.URL) {
				if l, err = client.LoadLogin(os.Getenv, name, client.SystemKeyring(os.Getenv)); err != nil {
					return err
				}
				break
			}
		}
	}
	if l.Token != "" {
		fmt.Printf("username=token\npassword=%s\n", client.Inert(l.Token))
	}
	return nil
}
