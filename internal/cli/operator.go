package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// operatorScopes are what an operator token may do unless --scopes says otherwise.
const operatorScopes = "admin:accounts,admin:grants"

// defineOperatorToken prints an operator token, alone on standard output, and keeps it
// nowhere: it is for the calls of an hour.
func defineOperatorToken(fl *flag.FlagSet) tree.Action {
	address := fl.String("url", "", "address of the server; that of the last login, or http://127.0.0.1:8080, when empty")
	login := fl.String("login", "", "login or e-mail of the operator, whose password is read from standard input")
	name := fl.String("name", "command line", "what the token is for, in the list of tokens")
	scopes := fl.String("scopes", operatorScopes, "what the token may do, with commas between: `SCOPES`")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		server, err := signin.ServerAt(*address)
		if err != nil {
			return err
		}
		return operatorToken(ctx, o, server, *login, *name, *scopes)
	}
}

func operatorToken(ctx context.Context, o *output.Flags, server, login, name, scopes string) error {
	if login == "" {
		return exit.Misuse("give --login, of the operator")
	}
	wanted := strings.FieldsFunc(scopes, func(r rune) bool { return r == ',' || r == ' ' })
	if len(wanted) == 0 {
		return exit.Misuse("give --scopes, at least one")
	}
	password, err := signin.Ask(ctx, "Password", true)
	if err != nil {
		return err
	}
	token, err := client.OperatorToken(ctx, server, login, password, name, wanted)
	if err != nil {
		return err
	}
	if o.ForPrograms() {
		if err := o.Print(os.Stdout, token.Answer); err != nil {
			return err
		}
	} else {
		fmt.Println(client.Inert(token.Token))
	}
	fmt.Fprintf(os.Stderr, "It may %s at %s until %s, and is stored nowhere.\n", client.Inert(strings.Join(token.Scopes, ", ")), server,
		token.Expires.Local().Format(time.DateTime))
	return nil
}
