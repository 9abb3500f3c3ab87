// Package selftest is the test that a box runs in a sandbox before it takes work.
// The box starts its own program again, as the agents' user and in folders like
// theirs, and lets it do what every run does. So a machine that cannot carry out
// runs is found before it claims one.
package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Command is the subcommand under which the program must call Main.
const Command = "selftest"

// Variable is the environment variable that holds a Request in JSON.
const Variable = "YARDMASTER_SELFTEST"

// Request says what Main has to test besides its own folders.
type Request struct {
	Read    []string `json:"read"`    // files that agents must be able to read
	Proxies []string `json:"proxies"` // addresses that must answer over HTTP, with any status
}

// Result is the output of Main, in JSON: the first step that failed, and the
// reason. Both are empty if all steps succeeded.
type Result struct {
	Step  Step   `json:"step"`
	Error string `json:"error"`
}

// Step is one ability that every run needs.
type Step string

// The steps, in order.
const (
	Task  Step = "task"  // write and rename in the checkout's folder
	Home  Step = "home"  // the same in the agent's home
	Temp  Step = "temp"  // the same in the folder for temporary files
	Read  Step = "read"  // read what the box shows
	Git   Step = "git"   // commit in the checkout's folder
	Proxy Step = "proxy" // reach the box's proxies
	Clock Step = "clock" // a clock that certificates can be checked by
)

// Earliest is the earliest time that a correct clock can show: this program was
// written later.
var Earliest = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// proxyWait limits how long a proxy on loopback may take to answer.
const proxyWait = 5 * time.Second

// gitWait limits how long one git command may take in an empty repository.
const gitWait = 10 * time.Second

// Main runs all steps until one fails, prints the Result and returns the exit code:
// 0 if no step failed.
func Main([]string) int {
	step, err := try()
	r := Result{Step: step}
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil || r.Error != "" {
		return 1
	}
	return 0
}

func try() (Step, error) {
	var in Request
	if err := json.Unmarshal([]byte(os.Getenv(Variable)), &in); err != nil {
		return Task, fmt.Errorf("%s holds no request; this is not for the command line", Variable)
	}
	task, err := os.Getwd()
	if err != nil {
		return Task, err
	}
	steps := []struct {
		step Step
		try  func() error
	}{
		{Task, func() error { return write(task) }},
		{Home, func() error { return write(os.Getenv("HOME")) }},
		{Temp, func() error { return write(os.TempDir()) }},
		{Read, func() error { return read(in.Read) }},
		{Git, func() error { return commit(task) }},
		{Proxy, func() error { return reach(in.Proxies) }},
		{Clock, func() error { return clock(time.Now()) }},
	}
	for _, s := range steps {
		if err := s.try(); err != nil {
			return s.step, err
		}
	}
	return "", nil
}

// write makes, renames and removes a file in a folder.
func write(dir string) error {
	f, err := os.CreateTemp(dir, ".selftest-")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "selftest\n")
	moved := f.Name() + ".moved"
	return errors.Join(err, f.Close(), os.Rename(f.Name(), moved), os.Remove(moved))
}

func read(files []string) error {
	for _, f := range files {
		if _, err := os.ReadFile(f); err != nil {
			return err
		}
	}
	return nil
}

// commit makes a repository with one commit, as agents do in their checkouts.
func commit(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "selftest"), []byte("selftest\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"add", "--all"},
		{"commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "selftest"},
	} {
		if err := git(dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// git runs a git command in a folder.
func git(dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), gitWait)
	defer cancel()
	identity := []string{"-c", "user.name=selftest", "-c", "user.email=selftest@localhost"}
	cmd := exec.CommandContext(ctx, "git", append(identity, args...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: it took longer than %s", args[0], gitWait)
	case err != nil:
		return errors.New(strings.TrimSpace(fmt.Sprintf("git %s: %v: %s", args[0], err, firstLine(out))))
	}
	return nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

func reach(addresses []string) error {
	// The environment's proxy is not used: it is for distant hosts.
	direct := &http.Client{Timeout: proxyWait, Transport: &http.Transport{}}
	for _, address := range addresses {
		resp, err := direct.Get(address)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	return nil
}

func clock(now time.Time) error {
	if now.Before(Earliest) {
		return fmt.Errorf("it shows %s", now.UTC().Format(time.RFC3339))
	}
	return nil
}
