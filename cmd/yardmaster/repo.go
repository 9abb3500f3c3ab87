package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"yardmaster/internal/client"
)

func runRepoAdd(ctx context.Context, args []string) error {
	fl := flags("repo add")
	full := fl.String("name", "", "`OWNER/NAME` on the server; your account and the source's own name when empty")
	plain, err := parse(fl, args, "PATH|URL")
	if err != nil {
		return err
	}
	owner, name, ok := strings.Cut(*full, "/")
	if *full != "" && (!ok || owner == "" || !plainName(name)) {
		return misuse{"--name has the form OWNER/NAME, of letters, digits, dots, hyphens and underscores"}
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var me struct {
		Account struct {
			Login string `json:"login"`
		} `json:"account"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return err
	}
	if *full == "" {
		owner, name = me.Account.Login, nameOf(plain[0])
	}
	if owner != me.Account.Login {
		return fmt.Errorf("you are signed in to the account %s, and can add no repository of %s: --name %s/%s", me.Account.Login,
			owner, me.Account.Login, name)
	}
	if !plainName(name) {
		return misused("give it a name: --name %s/NAME", owner)
	}
	if err := c.AddRepo(ctx, plain[0], owner, name); err != nil {
		return err
	}
	fmt.Printf("%s/%s is on the server. Fetch what agents do from %s/git/%s/%s.git\n", owner, name, c.URL, owner, name)
	return nil
}

var unplain = regexp.MustCompile(`[^a-z0-9._-]+`)

// nameOf is the repository name that follows from a source.
func nameOf(source string) string {
	if abs, err := filepath.Abs(source); err == nil && !strings.Contains(source, ":") {
		source = abs
	}
	name := strings.ToLower(strings.TrimSuffix(strings.TrimRight(source, "/"), ".git"))
	if at := strings.LastIndexAny(name, "/:"); at >= 0 {
		name = name[at+1:]
	}
	return strings.Trim(unplain.ReplaceAllString(name, "-"), "-")
}

// plainName tells whether the git host accepts the name.
func plainName(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, ".") != "" && len(name) <= 100 && !unplain.MatchString(strings.ToLower(name))
}

func runRepoList(ctx context.Context, args []string) error {
	if _, err := parse(flags("repo list"), args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var rows [][]string
	type repository struct {
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
		Enabled       bool   `json:"enabled"`
	}
	err = client.Each(ctx, c, "/v1/repos?per_page=100", func(r repository) error {
		rows = append(rows, []string{r.FullName, r.DefaultBranch, strconv.FormatBool(r.Enabled)})
		return nil
	})
	if err != nil {
		return err
	}
	table("REPOSITORY\tBRANCH\tENABLED", rows, "yardmaster repo add PATH")
	return nil
}
