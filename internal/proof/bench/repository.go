package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/child"
	"yardmaster/internal/client"
	"yardmaster/internal/proof/odd"
)

const (
	addedBytes   = 500 << 20
	addedRefs    = 5000
	addRounds    = 3
	checkRounds  = 5
	startRounds  = 15
	contentFiles = 100
	contentBytes = 1 << 20
)

// addition adds a repository with much history and many refs, and pushes it to a bare one.
func addition(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "addition")
	if err != nil {
		return err
	}
	defer w.stop()
	dir, err := b.folder("source")
	if err == nil {
		dir, err = odd.Large(addedBytes).Make(ctx, dir)
	}
	if err == nil {
		err = manyRefs(ctx, dir, addedRefs)
	}
	if err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for i := range addRounds {
		name := fmt.Sprint("added-", i)
		took, err := timed(func() error { return w.api.AddRepo(ctx, dir, account, name) })
		if err != nil {
			return err
		}
		ours = append(ours, took)
		bare := filepath.Join(b.dir, name+".git")
		if err := gitIn(ctx, b.dir, "init", "--quiet", "--bare", bare); err != nil {
			return err
		}
		took, err = timed(func() error {
			_, err := client.Git(ctx, dir, "", "", "push", "--quiet", "--atomic", bare,
				"refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
			return err
		})
		if err := errors.Join(err, os.RemoveAll(bare)); err != nil {
			return err
		}
		theirs = append(theirs, took)
	}
	b.add(compared(fmt.Sprintf("repo add of %d MB and %d refs", addedBytes>>20, addedRefs), ours, theirs, 1.3,
		"git push to a bare repository"))
	return os.RemoveAll(dir)
}

// compared is a row of two sides of which ours may take so many times as long.
func compared(what string, ours, theirs []time.Duration, most float64, than string) row {
	r := ratio(median(ours), median(theirs))
	return row{what: what, value: ms(median(ours)), baseline: ms(median(theirs)), ratio: r,
		target: fmt.Sprintf("≤ %.2f of %s", most, than), met: r <= most}
}

// folder makes a folder among the data of the run.
func (b *bench) folder(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// manyRefs makes branches and tags of the commit that a repository is at.
func manyRefs(ctx context.Context, dir string, n int) error {
	head, err := client.Git(ctx, dir, "", "", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	var text strings.Builder
	for i := range n / 2 {
		fmt.Fprintf(&text, "create refs/heads/team/%d/work %s\ncreate refs/tags/v0.%d %s\n", i, head, i, head)
	}
	c := exec.CommandContext(ctx, "git", "update-ref", "--stdin")
	c.Dir, c.Stdin = dir, strings.NewReader(text.String())
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("git update-ref: %w\n%s", err, out)
	}
	return nil
}

// checkouts compares what a box does before an agent begins with git and git-lfs.
func checkouts(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "checkouts")
	if err != nil {
		return err
	}
	defer w.stop()
	if err := w.api.Call(ctx, http.MethodPut, "/v1/templates/true",
		map[string]any{"agent": "command", "isolation": "none", "command": []string{"true"}}, nil); err != nil {
		return err
	}
	box, err := b.box(ctx, w)
	if err != nil {
		return err
	}
	defer box.stop()
	var ours, theirs []time.Duration
	for i := range checkRounds { // another repository each time: nothing is known of it before
		name := fmt.Sprint("art-", i)
		if err := b.withContents(ctx, w, name, byte(i)); err != nil {
			return err
		}
		took, err := w.prepares(ctx, name)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		to := filepath.Join(b.dir, "art-clone")
		took, err = timed(func() error { return w.clone(ctx, b.dir, name, to) })
		if err := errors.Join(err, os.RemoveAll(to)); err != nil {
			return err
		}
		theirs = append(theirs, took)
	}
	what := fmt.Sprintf("checkout with a submodule, %d files and %d MB of Git LFS in each", contentFiles, contentFiles*contentBytes>>20)
	b.add(compared(what, ours, theirs, 1.2, "git clone --recurse-submodules"))
	return w.starts(ctx, b)
}

// starts compares the start of a run with and without a look for what is not there.
func (w *world) starts(ctx context.Context, b *bench) error {
	for name, checkout := range map[string]string{"usual": "{}", "bare": "{submodules: false, lfs: false}"} {
		files := map[string]string{"README.md": "x\n", odd.PolicyFile: "version: 1\ncheckout: " + checkout + "\n"}
		if err := b.withFiles(ctx, w, name, files); err != nil {
			return err
		}
		if _, err := w.prepares(ctx, name); err != nil { // the first fetches
			return err
		}
	}
	var ours, theirs []time.Duration
	for range startRounds {
		with, err := w.prepares(ctx, "usual")
		if err != nil {
			return err
		}
		without, err := w.prepares(ctx, "bare")
		if err != nil {
			return err
		}
		ours, theirs = append(ours, with), append(theirs, without)
	}
	b.add(compared("start of a run in a repository without submodules and Git LFS", ours, theirs, 1.1, "one that looks for none"))
	return nil
}

// withContents puts a repository with files of Git LFS on the server, and a submodule with as
// many.
func (b *bench) withContents(ctx context.Context, w *world, name string, seed byte) error {
	lib, err := b.folder(name + "-lib")
	if err == nil {
		lib, err = odd.Pictures(2*seed, contentFiles, contentBytes).Make(ctx, lib)
	}
	if err == nil {
		err = w.api.AddRepo(ctx, lib, account, name+"-lib")
	}
	if err != nil {
		return err
	}
	commit, err := client.Git(ctx, lib, "", "", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	dir, err := b.folder(name)
	if err == nil {
		dir, err = odd.Pictures(2*seed+1, contentFiles, contentBytes).Make(ctx, dir)
	}
	for _, args := range [][]string{
		{"config", "--file", ".gitmodules", "submodule.lib.path", "lib"},
		{"config", "--file", ".gitmodules", "submodule.lib.url", "../" + name + "-lib.git"},
		{"add", ".gitmodules"}, {"update-index", "--add", "--cacheinfo", "160000," + commit + ",lib"},
		{"-c", "user.name=b", "-c", "user.email=b@b", "commit", "--quiet", "--message", "lib"},
	} {
		if err == nil {
			err = gitIn(ctx, dir, args...)
		}
	}
	if err == nil {
		err = w.api.AddRepo(ctx, dir, account, name)
	}
	return errors.Join(err, os.RemoveAll(dir), os.RemoveAll(lib))
}

// withFiles puts a repository with some files on the server.
func (b *bench) withFiles(ctx context.Context, w *world, name string, files map[string]string) error {
	dir, err := b.folder(name)
	if err != nil {
		return err
	}
	for path, text := range files {
		at := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=b", "-c", "user.email=b@b", "commit", "--quiet", "--message", "Begin"},
	} {
		if err := gitIn(ctx, dir, args...); err != nil {
			return err
		}
	}
	return w.api.AddRepo(ctx, dir, account, name)
}

// box starts a real box as a process, and returns when the server hears of it.
func (b *bench) box(ctx context.Context, w *world) (*process, error) {
	var minted struct{ Token string }
	if err := w.api.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": "bench"}, &minted); err != nil {
		return nil, err
	}
	p := &process{gone: make(chan struct{})}
	var err error
	if p.log, err = os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(b.bin, "box", "join", "--url", w.url, "--name", "bench", "--slots", "1", "--data", filepath.Join(b.dir, "box"))
	p.cmd.Env = append(os.Environ(), "YARDMASTER_ENROLL_TOKEN="+minted.Token)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := child.Start(p.cmd, func(error) { close(p.gone) }); err != nil {
		return nil, err
	}
	var boxes struct {
		Data []struct{ Presence struct{ Status string } }
	}
	for len(boxes.Data) == 0 || boxes.Data[0].Presence.Status != "online" {
		select {
		case <-p.gone:
			return nil, errors.New("the box has ended; see the log")
		case <-ctx.Done():
			p.stop()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if err := w.api.Call(ctx, http.MethodGet, "/v1/runners", nil, &boxes); err != nil {
			p.stop()
			return nil, err
		}
	}
	return p, nil
}

// prepares has a run done that changes nothing, and returns how long the box has prepared it.
func (w *world) prepares(ctx context.Context, repo string) (time.Duration, error) {
	var filed struct {
		ID string `json:"task_id"`
	}
	task := map[string]any{"repo": account + "/" + repo, "title": "Nothing", "problem": "Nothing.", "template": "true"}
	if err := w.api.Call(ctx, http.MethodPost, "/v1/tasks", task, &filed); err != nil {
		return 0, err
	}
	for {
		var now struct {
			Status  string
			Failure *string
		}
		if err := w.api.Call(ctx, http.MethodGet, "/v1/tasks/"+filed.ID, nil, &now); err != nil {
			return 0, err
		}
		if now.Failure != nil {
			return 0, fmt.Errorf("a run in %s failed: %s", repo, *now.Failure)
		}
		if now.Status == "completed" {
			break
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	var run struct {
		Events []struct {
			Kind string
			Mono int64
		}
	}
	if err := w.api.Call(ctx, http.MethodGet, "/v1/tasks/"+filed.ID+"/events", nil, &run); err != nil {
		return 0, err
	}
	at := map[string]int64{}
	for _, e := range run.Events {
		at[e.Kind] = e.Mono
	}
	if at["prepared"] == 0 {
		return 0, fmt.Errorf("the run in %s tells of no checkout: %+v", repo, run.Events)
	}
	return time.Duration(at["prepared"]-at["preparing"]) * time.Millisecond, nil
}

// clone clones a repository with its submodules and contents as people do, whose git-lfs works
// as git's filter.
func (w *world) clone(ctx context.Context, dir, repo, to string) error {
	c := exec.CommandContext(ctx, "git", "clone", "--quiet", "--recurse-submodules", w.url+"/git/"+account+"/"+repo+".git", to)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
	settings := [][2]string{
		{"http." + w.url + ".extraHeader", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+w.pat))},
		{"filter.lfs.smudge", "git-lfs smudge -- %f"}, {"filter.lfs.process", "git-lfs filter-process"}, {"filter.lfs.required", "true"},
	}
	c.Env = append(c.Env, fmt.Sprint("GIT_CONFIG_COUNT=", len(settings)))
	for i, s := range settings {
		c.Env = append(c.Env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w\n%s", err, out)
	}
	st, err := os.Stat(filepath.Join(to, "lib", "p000.bin"))
	if err == nil && st.Size() != contentBytes {
		err = fmt.Errorf("%d bytes", st.Size())
	}
	if err != nil {
		return fmt.Errorf("the clone has not the contents: %w", err)
	}
	return nil
}
