package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/join"
	"yardmaster/internal/domain/logsink"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/push"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/domain/webhook"
)

// destinations are the addresses that people have named, by the domain that connects to them, and what
// judges each.
var destinations = []struct {
	what, who string
	of        func(*db.Tx) ([]string, error)
	guard     func(*App) *dial.Guard
}{
	{"models", "keys of models", modelkey.Addresses, (*App).modelGuard},
	{"webhooks", "webhooks", webhook.Addresses, (*App).guard},
	{"messages of browsers", "subscriptions", push.Addresses, (*App).guard},
	{"calls of models, logged", "log sinks", logsink.Addresses, (*App).modelGuard},
	{"sign-in", "SSO of accounts", sso.Addresses, (*App).guard},
	{"code", "code hosts that were set up", connection.Addresses, (*App).hostGuard},
	{"issues", "connections to Linear", tracker.Addresses, (*App).guard},
	{"machines over SSH", "boxes that are added", join.Addresses, (*App).guard},
}

// Egress writes where the server that c configures connects to: what its settings name, and what
// people have named by now, with whether the server goes there. It connects to nothing but its
// database, and asks name servers. The server may run.
func Egress(ctx context.Context, c *config.Config, out io.Writer) (err error) {
	if _, err := exists(c); err != nil {
		return err
	}
	d, err := db.Open(ctx, c.Database, db.Options{AsIs: true})
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	a := &App{cfg: c, base: cmp.Or(c.BaseURL, "http://"+c.Listen)}
	people := make([][]string, len(destinations))
	var others []string
	if err := d.Read(ctx, func(tx *db.Tx) (err error) {
		for i, n := range destinations {
			if people[i], err = n.of(tx); err != nil {
				return err
			}
		}
		others, err = nodes.Addresses(tx)
		return err
	}); err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ADDRESS\tFOR\tNAMED BY\tREACHED")
	for _, o := range a.outside() {
		fmt.Fprintf(t, "%s\t%s\tthe setting %s\tyes\n", o.Address, o.For, o.Setting)
	}
	for _, at := range others {
		fmt.Fprintf(t, "%s\tother nodes\tthe nodes themselves\tyes\n", at)
	}
	for i, n := range destinations {
		g := n.guard(a)
		for _, at := range people[i] {
			reached := "yes"
			if g.Host(ctx, host(at)) != "" {
				reached = "no"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", at, n.what, n.who, reached)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	more := "People may name more: any address of the public network."
	if c.AirGapped == "on" {
		more = "air-gapped is on: what people name more is reached only in the networks below."
	}
	fmt.Fprintf(out, "\n%s\nNetworks that are open besides (allow-networks): %s\n"+
		"Name servers are asked, as this machine is set up. Boxes connect for themselves: to this server, and to what policies list.\n",
		more, cmp.Or(c.Reachable.String(), "none"))
	return nil
}

// outside are the services that the settings name, with those of GitHub.
func (a *App) outside() []config.Outside {
	all := a.cfg.Outside()
	if a.cfg.GitHub() {
		at := addresses(a.cfg.GitHubURL)
		all = append(all, config.Outside{Address: at.Web, For: "code and sign-in", Setting: "github-url"},
			config.Outside{Address: at.API, For: "code and sign-in", Setting: "github-url"})
	}
	return all
}

// host is the name of the machine in an address, or the whole of what is one already.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return address
}
