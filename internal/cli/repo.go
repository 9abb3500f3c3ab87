package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/lazy"
	"yardmaster/internal/terminal"
)

func defineRepoAdd(fl *flag.FlagSet) tree.Action {
	full := fl.String("name", "", "`OWNER/NAME` on the server; your account and the source's own name when empty")
	remote := fl.String("remote", "yardmaster", "`NAME` of the git remote that the folder gets; none when empty")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		return addRepo(ctx, o, plain[0], *full, *remote)
	}
}

func addRepo(ctx context.Context, o *output.Flags, source, full, remote string) error {
	owner, name, ok := strings.Cut(full, "/")
	if full != "" && (!ok || owner == "" || !plainName(name)) {
		return exit.Misuse("--name has the form OWNER/NAME, of letters, digits, dots, hyphens and underscores")
	}
	if _, err := os.Stat(source); err != nil && !strings.Contains(source, ":") {
		return exit.Misused("there is no folder %s", source)
	}
	c, err := signin.Connect()
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
	if full == "" {
		owner, name = me.Account.Login, nameOf(source)
	}
	if owner != me.Account.Login {
		return fmt.Errorf("you are signed in to the account %s, and can add no repository of %s: --name %s/%s", me.Account.Login,
			owner, me.Account.Login, name)
	}
	if !plainName(name) {
		return exit.Misused("give it a name: --name %s/NAME", owner)
	}
	p := terminal.Of(os.Stderr, os.Getenv).NewProgress(os.Stderr, "") // AddRepo names the steps
	c.Steps = p
	var lacks []string
	c.Remark = func(text string) { lacks = append(lacks, text) }
	err = c.AddRepo(ctx, source, owner, name)
	p.Stop()
	if err != nil {
		return err
	}
	address := fmt.Sprintf("%s/git/%s/%s.git", c.URL, owner, name)
	if o.ForPrograms() {
		for _, text := range lacks {
			fmt.Fprintln(os.Stderr, client.Inert(text))
		}
		if remote != "" {
			_ = addRemote(ctx, source, remote, address) // a source that is no folder gets none
		}
		b, err := c.Fetch(ctx, http.MethodGet, "/v1/repos/"+owner+"/"+name, nil)
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	fmt.Printf("%s/%s is on the server. Fetch what agents do from %s\n", owner, name, address)
	for _, text := range lacks {
		screen.Say("%s\n", text)
	}
	remarks(ctx, c, owner+"/"+name, source)
	screen.Afterword(fmt.Sprintf("Take it out of use with: yardmaster repo remove %s/%s", owner, name))
	if remote == "" || addRemote(ctx, source, remote, address) != nil {
		return nil
	}
	fmt.Printf("That is the remote %s here: git fetch %s; `git remote remove %s` takes it away, and `yardmaster auth git` has git sign in there.\n",
		remote, remote, remote)
	return nil
}

// remarks says what somebody who added a repository would find out too late: that a file
// which looks like the policy file is none, or that another branch is the default.
func remarks(ctx context.Context, c *client.Client, full, source string) {
	var now struct {
		DefaultBranch string `json:"default_branch"`
	}
	var policy struct {
		YML      *string `json:"yml"`
		Fallback *string `json:"fallback"`
	}
	path := "/v1/repos/" + full
	if c.Call(ctx, http.MethodGet, path+"/policy", nil, &policy) == nil && policy.Fallback != nil &&
		(policy.YML != nil || strings.Contains(*policy.Fallback, ";")) {
		screen.Say("Its policy file is not in force: %s.\n", strings.TrimSuffix(*policy.Fallback, "."))
	}
	head, err := client.Git(ctx, source, "", "", "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil || c.Call(ctx, http.MethodGet, path, nil, &now) != nil || now.DefaultBranch == head {
		return // a source that is no folder was cloned, and is on its host's default branch
	}
	screen.Say("Its default branch is %s, and yours %s; another becomes the default with: yardmaster repo settings %s --default-branch %s\n",
		now.DefaultBranch, head, full, client.Word(head))
}

// addRemote gives a folder a remote. It fails if the folder has one of that name at
// another address, or the source is no folder.
func addRemote(ctx context.Context, dir, name, address string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	if at, err := client.Git(ctx, dir, "", "", "remote", "get-url", name); err == nil {
		if at == address {
			return nil
		}
		return fmt.Errorf("the remote %s is %s", name, at)
	}
	_, err := client.Git(ctx, dir, "", "", "remote", "add", "--", name, address)
	return err
}

var unplain = lazy.New(`[^a-z0-9._-]+`)

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
