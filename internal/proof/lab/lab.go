// Package lab has what a program for trials can do beyond the product: play GitHub in the demo, and do harm to a
// throwaway server and its boxes.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/demo"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/chaos/astray"
	"yardmaster/internal/proof/github"
)

// New is the lab of a program.
func New() *machine.Lab {
	return &machine.Lab{StandIn: standIn, Chaos: harm, Inner: map[string]func([]string, func([]string) int) int{"astray": runAstray}}
}

func harm(ctx context.Context, of machine.Harm) error {
	err := chaos.Run(ctx, chaos.Options{Seed: of.Seed, Length: of.Length, Boxes: of.Boxes, Nodes: of.Nodes, Database: of.Database,
		Data: of.Data, Out: os.Stdout, Self: of.Self, Astray: app.Astray})
	if errors.Is(err, chaos.ErrFound) {
		return fmt.Errorf("%w; see above", err)
	}
	if err != nil {
		return fmt.Errorf("no ledger: %w", err)
	}
	return nil
}

// runAstray runs a command with a clock that is some seconds ahead of the machine's,
// and that standard input can change.
func runAstray(args []string, run func([]string) int) int {
	set := func(r io.Reader) {
		if err := astray.Follow(r); err != nil {
			fmt.Fprintln(os.Stderr, "yardmaster astray:", err)
			os.Exit(2)
		}
	}
	if len(args) > 0 {
		set(strings.NewReader(args[0]))
		args = args[1:]
	}
	go set(os.Stdin)
	return run(args)
}

// host is GitHub as the tests play it, with what the demo has there.
type host struct {
	*github.Server
	app         *github.App
	person, org *github.Account
	repo        *github.Repo
	issue       *github.Issue
}

func standIn() (demo.Host, error) {
	peer, err := github.Start(github.Options{Enterprise: "3.19.0"})
	if err != nil {
		return nil, err
	}
	return &host{Server: peer}, nil
}

func (h *host) URL() string { return h.Web }

func (h *host) Register(hook, secret string, permissions map[string]string, events []string) demo.App {
	h.app = h.NewApp(github.NewApp{Name: "Yardmaster", HookURL: hook, Secret: secret, Permissions: permissions, Events: events})
	return demo.App{ID: h.app.ID, Slug: h.app.Slug, PEM: h.app.PEM()}
}

func (h *host) Put(organisation, repo, person string, files map[string]string) {
	h.org, h.person = h.Org(organisation), h.Person(person)
	h.person.Join(h.org, "admin", false)
	h.repo = h.Repo(organisation+"/"+repo, github.NewRepo{Private: true, Files: files})
}

func (h *host) Install() { h.app.Install(h.org, h.repo) }

func (h *host) OpenIssue(title, body, label string) int {
	h.issue = h.repo.OpenIssue(h.person, title, body)
	h.issue.Label(h.person, label)
	return h.issue.Number
}

func (h *host) Folder() string { return h.repo.Dir() }

func (h *host) Check(sha, name, result string) { h.repo.Check(h.ActionsApp(), sha, name, result) }

func (h *host) Closed() bool { return h.issue.State().State == "closed" }

func (h *host) Comments() (all []string) {
	for _, c := range h.issue.Comments() {
		all = append(all, c.Body)
	}
	return all
}
