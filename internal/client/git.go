package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git runs git with the user's own configuration and answers its output. The
// token, if any, goes to the server at url in a header that only this process
// and git see: not in arguments, not in a file.
func Git(ctx context.Context, dir, url, token string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	if token != "" {
		basic := base64.StdEncoding.EncodeToString([]byte("token:" + token))
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=http."+url+".extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("git %s: %w\n%s", args[0], err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// AddRepo puts a repository on the server by pushing its branches and tags to
// the built-in git host, which makes it known. The source is a folder of the
// user's, or an address that git can clone.
func (c *Client) AddRepo(ctx context.Context, source, owner, name string) error {
	remote := fmt.Sprintf("%s/git/%s/%s.git", c.URL, owner, name)
	dir := source
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		tmp, err := os.MkdirTemp("", "yardmaster-import-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "repo.git")
		if _, err := Git(ctx, tmp, "", "", "clone", "--quiet", "--mirror", source, dir); err != nil {
			return err
		}
	}
	head, err := Git(ctx, dir, "", "", "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return fmt.Errorf("%s has no current branch to begin with: %w", source, err)
	}
	// The first branch that arrives becomes the default branch.
	if _, err := Git(ctx, dir, c.URL, c.Token, "push", "--quiet", remote, "refs/heads/"+head+":refs/heads/"+head); err != nil {
		return err
	}
	_, err = Git(ctx, dir, c.URL, c.Token, "push", "--quiet", remote, "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
	return err
}
