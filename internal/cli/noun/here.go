package noun

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// ofPage is the id of the object whose page is at an address.
func (n *Noun) ofPage(ctx context.Context, at string) (string, error) {
	base, _ := signin.Server()
	path, ours := strings.CutPrefix(at, base+"/ui/")
	if !ours || base == "" {
		return "", exit.Misused("%s is no page of %s", at, base)
	}
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	words := strings.Split(strings.Trim(path, "/"), "/")
	for i, w := range words {
		text, err := url.PathUnescape(w)
		if err != nil {
			return "", exit.Misused("%s is no address", at)
		}
		words[i] = text
	}
	id := words[len(words)-1]
	switch {
	case n.Name == "issue" && len(words) == 5 && words[3] == "issues":
		return id, nil
	case n.Name == "repo" && len(words) >= 3 && words[0] == "repos":
		return words[1] + "/" + words[2], nil
	case n.Page == "" || n.Name == "repo" || path == n.Page || strings.Join(words[:len(words)-1], "/") != n.Page:
		return "", exit.Misused("%s is the page of no %s", at, n.Name)
	}
	return id, nil
}

// RepoHere is the repository of the server of which the current folder is a clone.
func RepoHere(ctx context.Context) (string, error) {
	repo, _, err := RemoteHere(ctx)
	return repo, err
}

// RemoteHere is the repository of the server of which the current folder is a clone, and the
// remote there.
func RemoteHere(ctx context.Context) (repo, remote string, err error) {
	none := exit.Misuse("give --repo OWNER/NAME: the folder has no remote on the server")
	address, _ := signin.Server()
	if address == "" {
		return "", "", none
	}
	out, err := client.Git(ctx, ".", "", "", "config", "--get-regexp", `^remote\..*\.url$`)
	if err != nil {
		return "", "", none
	}
	host, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(out) {
		key, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		at, err := url.Parse(address)
		if err != nil || at.Host != host.Host {
			continue
		}
		path := strings.TrimSuffix(strings.TrimPrefix(at.Path, host.Path), ".git")
		for _, door := range []string{"/git/-/", "/git/"} {
			if name, ok := strings.CutPrefix(path, door); ok {
				words := strings.Split(name, "/")
				if n := len(words); n >= 2 {
					key = strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
					return words[n-2] + "/" + words[n-1], key, nil
				}
			}
		}
	}
	return "", "", none
}

// PullHere is the pull request of the branch that is checked out in the current folder; "" if
// the folder is no clone of a repository of the server.
func PullHere(ctx context.Context) (string, error) {
	repo, err := RepoHere(ctx)
	if err != nil {
		return "", nil
	}
	branch, err := client.Git(ctx, ".", "", "", "branch", "--show-current")
	if err != nil || branch == "" {
		return "", nil
	}
	c, err := signin.Connect()
	if err != nil {
		return "", err
	}
	in, err := InRepo(ctx, repo, []capability.Given{{Name: "filter", Text: "branch:" + branch}})
	if err != nil {
		return "", err
	}
	rows, _, err := Called("pr").Rows(ctx, c, in, candidates)
	if err != nil {
		return "", err
	}
	pulls := make([]map[string]any, 0, len(rows))
	for _, r := range rows { // the newest first
		v, _ := object.Decode(r)
		pulls = append(pulls, object.Map(v))
	}
	if i := slices.IndexFunc(pulls, isOpen); i >= 0 {
		return object.Text(pulls[i]["id"]), nil
	}
	if len(pulls) > 0 {
		return object.Text(pulls[0]["id"]), nil
	}
	if branch == "main" || branch == "master" {
		if terminal.Interactive() {
			return "", nil // one is picked
		}
		return "", exit.Misused("no pull request has the branch %s; name one", branch)
	}
	return "", exit.NotFound(fmt.Sprintf("the branch %s has no pull request in %s", branch, repo))
}
