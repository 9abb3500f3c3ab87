package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git runs git with the user's own configuration and answers its output. The token,
// if any, goes to the server at url in a header that only this process and git see:
// neither in arguments nor in a file.
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
		if ctx.Err() != nil {
			return string(out), ctx.Err()
		}
		if text := strings.TrimSpace(string(out)); text != "" {
			return string(out), fmt.Errorf("git %s failed:\n%s", args[0], text)
		}
		return string(out), fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Steps is told what goes on while something takes long.
type Steps interface{ Step(text string) }

// AddRepo pushes the branches and tags of a repository to the built-in git host,
// which then knows the repository. source is a folder of the user, or an address
// that git can clone.
func (c *Client) AddRepo(ctx context.Context, source, owner, name string) error {
	step := func(text string) {
		if c.Steps != nil {
			c.Steps.Step(text)
		}
	}
	remote := fmt.Sprintf("%s/git/%s/%s.git", c.URL, owner, name)
	dir := source
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		if err != nil && !strings.Contains(source, ":") {
			return fmt.Errorf("there is no folder %s", source)
		}
		tmp, err := os.MkdirTemp("", "yardmaster-import-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "repo.git")
		step("Cloning " + source)
		if _, err := Git(ctx, tmp, "", "", "clone", "--quiet", "--mirror", source, dir); err != nil {
			return err
		}
	}
	head, err := branch(ctx, dir)
	if err != nil {
		return fmt.Errorf("%s %w", source, err)
	}
	step("Pushing " + head + " to " + remote)
	// The first pushed branch becomes the default branch.
	out, err := Git(ctx, dir, c.URL, c.Token, "push", "--quiet", remote, "refs/heads/"+head+":refs/heads/"+head)
	if strings.Contains(out, "[rejected]") {
		return fmt.Errorf("%s/%s has commits on its branch %s that %s lacks; bring them over first: git pull %s %s",
			owner, name, head, source, remote, head)
	} else if err != nil {
		return err
	}
	step("Pushing all branches and tags to " + remote)
	_, err = Git(ctx, dir, c.URL, c.Token, "push", "--quiet", remote, "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
	return err
}

// branch is the current branch of a repository that can be pushed completely.
func branch(ctx context.Context, dir string) (string, error) {
	if _, err := Git(ctx, dir, "", "", "rev-parse", "--git-dir"); err != nil {
		return "", fmt.Errorf("cannot be used as a git repository: %w", err)
	}
	if shallow, err := Git(ctx, dir, "", "", "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
		return "", errors.New("holds only the newest commits: complete it with `git fetch --unshallow`")
	}
	head, err := Git(ctx, dir, "", "", "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return "", errors.New("is on no branch: `git switch` to the one that is to be the default")
	}
	if _, err := Git(ctx, dir, "", "", "rev-parse", "--quiet", "--verify", "HEAD"); err != nil {
		return "", fmt.Errorf("has no commit on its branch %s yet: make one first", head)
	}
	return head, nil
}
