package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"yardmaster/internal/lazy"
	"yardmaster/internal/proxies"
)

// Git runs git with the user's own configuration and answers its output. The token,
// if any, goes to the server at url in a header that only this process and git see:
// neither in arguments nor in a file.
func Git(ctx context.Context, dir, url, token string, args ...string) (string, error) {
	return gitTelling(ctx, nil, dir, url, token, args...)
}

// gitTelling is Git for a command that may take long. part, if it is not nil, is told how far
// git is, in git's own words; the arguments have --progress then.
func gitTelling(ctx context.Context, part func(string), dir, url, token string, args ...string) (string, error) {
	if url != "" {
		proxies.SpareServer(ctx, url)
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	if token != "" {
		basic := base64.StdEncoding.EncodeToString([]byte("token:" + token))
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=http."+url+".extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic,
			// git would send the header to wherever the server sends it on to.
			"GIT_CONFIG_KEY_1=http."+url+".followRedirects", "GIT_CONFIG_VALUE_1=false")
	}
	said := &transcript{part: part}
	if part != nil {
		cmd.Env = append(cmd.Env, "LC_ALL=C") // its progress is told from its complaints by its words
	}
	cmd.Stdout, cmd.Stderr = said, said // one writer: os/exec writes to it from one goroutine
	err := cmd.Run()
	out := said.text()
	if err != nil {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if text := strings.TrimSpace(out); text != "" {
			return out, fmt.Errorf("git %s failed:\n%s", args[0], text)
		}
		return out, fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(out), nil
}

// progressLine is what git writes of how far it is (git-push(1), --progress), itself or the
// git of the other side.
var progressLine = lazy.New(`^(remote: )?(Enumerating|Counting|Compressing|Writing|Receiving|Resolving|Updating|Unpacking|` +
	`Checking|Total|Delta compression|Cloning)\b`)

// transcript is the output of git. Where part is set, what tells how far git is goes there, and
// is not kept.
type transcript struct {
	part func(string)
	kept bytes.Buffer
	line []byte
}

func (t *transcript) Write(b []byte) (int, error) {
	if t.part == nil {
		return t.kept.Write(b)
	}
	for _, c := range b {
		if c != '\r' && c != '\n' {
			if len(t.line) < 1<<16 {
				t.line = append(t.line, c)
			}
			continue
		}
		t.end(c)
	}
	return len(b), nil
}

// end ends a line, which by is the last character of; 0 is the end of the output.
func (t *transcript) end(by byte) {
	line := string(t.line)
	t.line = t.line[:0]
	switch {
	case progressLine.MatchString(line):
		t.part(strings.TrimPrefix(line, "remote: "))
	case line != "" || by == '\n':
		t.kept.WriteString(line + "\n")
	}
}

func (t *transcript) text() string {
	if len(t.line) > 0 {
		t.end(0)
	}
	return t.kept.String()
}

// Steps is told what goes on while something takes long: the step, and how far it is.
type Steps interface {
	Step(text string)
	Part(text string)
}

// AddRepo pushes the branches and tags of a repository to the built-in git host,
// which then knows the repository. source is a folder of the user, or an address
// that git can clone.
func (c *Client) AddRepo(ctx context.Context, source, owner, name string) error {
	step, quiet := func(string) {}, "--quiet"
	var part func(string)
	if c.Steps != nil {
		step, part, quiet = c.Steps.Step, c.Steps.Part, "--progress"
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
		if _, err := gitTelling(ctx, part, tmp, "", "", "clone", quiet, "--mirror", "--", source, dir); err != nil {
			return err
		}
	}
	head, err := branch(ctx, dir)
	if err != nil {
		return fmt.Errorf("%s %w", source, err)
	}
	step("Pushing " + source + " to " + remote)
	// The first pushed branch becomes the default branch.
	out, err := gitTelling(ctx, part, dir, c.URL, c.Token, "push", quiet, remote, "refs/heads/"+head+":refs/heads/"+head)
	if strings.Contains(out, "[rejected]") {
		return fmt.Errorf("%s/%s has commits on its branch %s that %s lacks; bring them over first: git pull %s %s",
			owner, name, head, source, remote, head)
	} else if err != nil {
		return err
	}
	_, err = gitTelling(ctx, part, dir, c.URL, c.Token, "push", quiet, remote, "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
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
