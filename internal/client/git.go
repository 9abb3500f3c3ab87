package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
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
	cmd := gitCommand(ctx, dir, args...)
	if token != "" {
		basic := base64.StdEncoding.EncodeToString([]byte("token:" + token))
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=http."+url+".extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic,
			// git would send the header to wherever the server sends it on to.
			"GIT_CONFIG_KEY_1=http."+url+".followRedirects", "GIT_CONFIG_VALUE_1=false")
	}
	for args[0] == "-c" && len(args) > 2 {
		args = args[2:]
	}
	return saying(ctx, part, cmd, args[0])
}

// gitCommand is git with the user's own configuration.
func gitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C") // what it refuses, and how far it is, is told by its words
	return cmd
}

// saying runs git and answers its output. part is that of gitTelling.
func saying(ctx context.Context, part func(string), cmd *exec.Cmd, verb string) (string, error) {
	said := &transcript{part: part}
	cmd.Stdout, cmd.Stderr = said, said // one writer: os/exec writes to it from one goroutine
	err := cmd.Run()
	out := said.text()
	if err != nil {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if text := strings.TrimSpace(out); text != "" {
			return out, fmt.Errorf("git %s failed:\n%s", verb, text)
		}
		return out, fmt.Errorf("git %s: %w", verb, err)
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
