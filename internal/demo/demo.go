// Package demo shows the whole job on a throwaway server: a task filed against a
// repository with failing tests ends as a merged pull request. Everything is real
// but the model, which is scripted: the server, a box in a process of its own, an
// agent, git, and the approval of a person (which the demo gives).
package demo

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/app"
	"yardmaster/internal/box"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
)

//go:embed all:sample
var sample embed.FS

//go:embed scenario.yml
var scenario []byte

// Options configure the demo.
type Options struct {
	Data string // folder to keep; a temporary one, removed at the end, when empty
	Once bool   // end after the job instead of serving on
	// StandIn, if set, starts a stand-in for GitHub, at which the job begins with an issue.
	StandIn func() (Host, error)
	Listen  string // address of the server
	Out     io.Writer
	// Self is the path of the program whose `box join` runs the box.
	Self string
	// Command is how a person starts the program.
	Command string
	Version string
	// Ended is told the address of the server once that is gone for good; nil: nobody is.
	Ended func(address string)
}

const (
	account = "acme"
	login   = "ada"
	project = "slug"
	job     = "The tests of slug.sh fail: upper case letters and punctuation get through. Make them pass; do not change the tests."
)

// Run runs the demo. With Once it fails unless the pull request is merged and the
// tests on the merged branch pass.
func Run(ctx context.Context, o Options) (failed error) {
	if err := box.CheckTools(ctx); err != nil {
		return fmt.Errorf("the demo needs git: %w", err)
	}
	d := &demo{Options: o, started: time.Now(), kept: true}
	if d.Data == "" {
		tmp, err := os.MkdirTemp("", "yardmaster-demo-")
		if err != nil {
			return fmt.Errorf("the folder for temporary files, %s, cannot be used: name another with TMPDIR, or one for the demo with --data (%w)",
				os.TempDir(), err)
		}
		defer os.RemoveAll(tmp)
		d.Data, d.kept = tmp, false
	}
	var err error
	if d.Data, err = filepath.Abs(d.Data); err != nil {
		return err
	}
	if err := d.makeFolder(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(d.Data, "server")); err == nil {
		return fmt.Errorf("%s holds an earlier demo: take another folder, or run `%s serve --data %s`", d.Data, d.Command,
			filepath.Join(d.Data, "server"))
	}
	// If agents cannot enter the demo's folder, the box keeps their work elsewhere, and
	// makes that folder anew at its next start.
	defer func() {
		if !d.kept || failed == nil {
			failed = errors.Join(failed, box.RemoveWorkDir(filepath.Join(d.Data, "box")))
		}
	}()
	// If nobody reads the output any more, the demo ends as on Ctrl-C, and cleans up.
	ctx, unread := context.WithCancel(ctx)
	defer unread()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // agents' programs would inherit an ignored signal
	d.Out = &outlet{o.Out, unread}
	// The server outlives the box, which reports to it when it ends.
	served, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if d.StandIn != nil {
		if d.there, err = d.standIn(); err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, d.there.close()) }()
	}
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan *app.App, 1)
	g.Go(func() error { return d.serve(served, ready) })
	g.Go(func() error {
		defer stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-ready:
			return d.walk(ctx, a)
		}
	})
	err = g.Wait()
	if o.Ended != nil && len(d.addresses) > 0 && !d.kept {
		o.Ended(d.addresses[0])
	}
	if !o.Once && errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		d.showLogs()
		err = errors.New(d.withoutAddresses(err.Error()))
	}
	return err
}

// makeFolder makes the demo's own folder. The agents of a box that runs as root are
// another user, who must be able to pass through it; the folders in it are closed.
func (d *demo) makeFolder() error {
	_, err := os.Stat(d.Data)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 && (fresh || !d.kept) {
		return os.Chmod(d.Data, 0o711)
	}
	return nil
}

type demo struct {
	Options
	started   time.Time
	kept      bool     // whether the folder stays
	addresses []string // of the server, invalid after the demo
	there     *standIn // nil: the built-in host has the repository
}

// step prints what is happening, with the seconds since the start.
func (d *demo) step(format string, a ...any) {
	fmt.Fprintf(d.Out, "%5.1fs  %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, a...))
}

func (d *demo) serve(ctx context.Context, ready chan<- *app.App) error {
	script := filepath.Join(d.Data, "scenario.yml")
	if err := os.WriteFile(script, scenario, 0o600); err != nil {
		return err
	}
	logFile, err := os.OpenFile(d.serverLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	none := func(string) (string, bool) { return "", false }
	flags := []string{"--data", filepath.Join(d.Data, "server"), "--listen", d.Listen, "--scenario", script, "--air-gapped", "on"}
	if d.there != nil {
		flags = append(flags, d.there.flags...)
	}
	cfg, err := config.Load("demo", flags, none, io.Discard)
	if err != nil {
		return err
	}
	return app.Run(ctx, cfg, app.Options{
		Version: d.Version, Logger: slog.New(slog.NewTextHandler(logFile, nil)),
		Ready: func(a *app.App) { ready <- a },
	})
}

func (d *demo) walk(ctx context.Context, a *app.App) error {
	d.addresses = []string{a.URL(), a.NATSURL()}
	if d.Once {
		d.step("The control plane serves on loopback.")
	} else {
		d.step("The control plane serves %s, boxes connect to %s.", a.URL(), a.NATSURL())
	}
	setup, err := a.SetupURL(ctx)
	if err != nil {
		return err
	}
	password := rand.Text()
	c, err := client.Setup(ctx, a.URL(), setup[strings.LastIndex(setup, "/")+1:], client.Owner{
		Login: login, Name: "Ada", Email: "ada@example.com", Password: password, Account: account,
	})
	if err != nil {
		return err
	}
	d.step("Made the owner %s of the account %s.", login, account)
	b, err := d.startBox(ctx, c)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := d.repository(ctx, c, b); err != nil {
		return err
	}
	if d.there != nil {
		d.there.server.Store(&c.URL)
		if err := d.install(ctx, c); err != nil {
			return err
		}
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted", "label": "demo"},
		nil); err != nil {
		return err
	}
	begin := d.file
	if d.there != nil {
		begin = d.issue
	}
	taskID, err := begin(ctx, c)
	if err != nil {
		return err
	}
	t, pr, err := d.follow(ctx, c, b, taskID)
	if err != nil {
		return err
	}
	if d.there != nil {
		if err := d.closed(ctx); err != nil {
			return err
		}
	}
	if err := d.verify(ctx, c); err != nil {
		return err
	}
	d.summary(ctx, c, t, pr)
	if d.Once {
		fmt.Fprintf(d.Out, "\nDone in %.1f s.\n", time.Since(d.started).Seconds())
		return nil
	}
	var me struct{ User, Account struct{ ID string } }
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return err
	}
	look, err := a.SignInURL(ctx, me.User.ID, me.Account.ID, "/ui/tasks/"+taskID)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, `
  look at it   %s
               (its button signs you in, once)
  or sign in   %s with login %s, password %s
  by hand      %s login --url %s --login %s
`, look, c.URL, login, password, d.Command, c.URL, login)
	fmt.Fprintf(d.Out, "\nThe server runs on until Ctrl-C.\n")
	<-ctx.Done()
	return nil
}

// repository makes a git repository of the sample and pushes it.
func (d *demo) repository(ctx context.Context, c *client.Client, b *machine) error {
	dir := filepath.Join(d.Data, "sample")
	root, err := fs.Sub(sample, "sample")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, root); err != nil {
		return err
	}
	if b.bare {
		if err := unisolate(filepath.Join(dir, ".svc", "policy.yml")); err != nil {
			return err
		}
		d.step("Its policy file says isolation: none, or no box here would be given work.")
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message",
			"Make slugs"},
	} {
		if _, err := client.Git(ctx, dir, "", "", args...); err != nil {
			return err
		}
	}
	if out, err := test(ctx, dir); err == nil {
		return fmt.Errorf("the sample's tests should fail, but: %s", out)
	} else if failures := strings.Count(out, "FAIL"); failures > 0 {
		d.step("Made a repository whose tests fail (%d of %d).", failures, strings.Count(out, "slug '"))
	}
	if d.there != nil {
		return d.there.put(dir)
	}
	if err := c.AddRepo(ctx, dir, account, project); err != nil {
		return err
	}
	d.step("Pushed it to the built-in git host as %s/%s.", account, project)
	return nil
}

// unisolate makes a policy file state that agents need not be isolated.
func unisolate(policy string) error {
	f, err := os.OpenFile(policy, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("agent:\n  isolation: none\n")
	return errors.Join(err, f.Close())
}

func test(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "test.sh")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// file files the job as a task.
func (d *demo) file(ctx context.Context, c *client.Client) (taskID string, err error) {
	var filed struct {
		TaskID string `json:"task_id"`
	}
	in := map[string]string{"repo": account + "/" + project, "title": "Make the tests of slug.sh pass", "problem": job}
	if err := c.Call(ctx, http.MethodPost, "/v1/tasks", in, &filed); err != nil {
		return "", err
	}
	d.step("Filed the task %s: %s", filed.TaskID, in["title"])
	return filed.TaskID, nil
}

// follow follows a task to its end. It approves every question.
func (d *demo) follow(ctx context.Context, c *client.Client, b *machine, taskID string) (client.Task, client.Pull, error) {
	watch, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		select {
		case <-watch.Done():
		case <-b.gone:
			giveUp(d.boxEnded(b))
		}
	}()
	var pull client.Pull
	show := client.Print(prefixed{d}, 0)
	printState, printPull := show.State, show.Pull
	show.State = func(t client.Task) {
		printState(t)
		if err := failure(t); err != nil {
			giveUp(err)
		}
	}
	show.Pull = func(p client.Pull) {
		printPull(p)
		pull = p
		if d.there != nil {
			if err := d.there.check(watch, d, p); err != nil {
				giveUp(err)
				return
			}
		}
		if p.Checks == "failed" {
			giveUp(errChecks)
		}
		if p.PendingAction == nil || p.PendingAction.State != "pending" {
			return
		}
		if err := d.reviewed(watch, c, p.ID); err != nil {
			giveUp(err)
			return
		}
		if _, err := c.Approve(watch, p.ID); err != nil {
			giveUp(err)
			return
		}
		d.step("Approved the head %.10s, as a person would.", p.HeadSHA)
	}
	t, err := c.Watch(watch, taskID, show)
	if cause := context.Cause(watch); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if err == nil {
		err = failure(t)
	}
	return t, pull, err
}

// reviewed waits for the review of a pull request, and shows what it has found.
func (d *demo) reviewed(ctx context.Context, c *client.Client, prID string) error {
	var reviews struct {
		Data []struct {
			Status       string `json:"status"`
			FindingsKept *int   `json:"findings_kept"`
			Note         string `json:"note"`
		} `json:"data"`
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for len(reviews.Data) == 0 || !slices.Contains([]string{"completed", "failed", "cancelled"}, reviews.Data[0].Status) {
		select {
		case <-ctx.Done():
			return nil // Watch says why
		case <-tick.C:
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+prID+"/review-runs", nil, &reviews); err != nil {
			return err
		}
	}
	if r := reviews.Data[0]; r.FindingsKept == nil {
		return fmt.Errorf("the review of the pull request has %s: %s", r.Status, r.Note)
	}
	var found struct {
		Data []struct {
			File, Severity, Claim string
			Line                  int
		} `json:"data"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+prID+"/findings", nil, &found); err != nil {
		return err
	}
	for _, f := range found.Data {
		d.step("A reviewer found, and another confirmed (%s, %s:%d): %s", f.Severity, f.File, f.Line, f.Claim)
	}
	return nil
}

// outlet calls unread when a write fails because nobody reads the output any more.
type outlet struct {
	io.Writer
	unread func()
}

func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		o.unread()
	}
	return n, err
}

// prefixed writes lines with the time of the demo before them.
type prefixed struct{ d *demo }

func (p prefixed) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		p.d.step("%s", strings.TrimRight(line, "\n"))
	}
	return len(b), nil
}

// verify runs the tests on the merged branch, in a fresh clone.
func (d *demo) verify(ctx context.Context, c *client.Client) error {
	dir := filepath.Join(d.Data, "merged")
	var r struct {
		CloneURL string `json:"clone_url"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/repos/"+account+"/"+project, nil, &r); err != nil {
		return err
	}
	if _, err := client.Git(ctx, d.Data, c.URL, c.Token, "clone", "--quiet", r.CloneURL, dir); err != nil {
		return err
	}
	out, err := test(ctx, dir)
	if err != nil {
		return fmt.Errorf("the tests on the merged branch fail:\n%s", out)
	}
	d.step("Cloned the merged branch: all %d tests pass.", strings.Count(out, "ok "))
	return nil
}

func (d *demo) summary(ctx context.Context, c *client.Client, t client.Task, pr client.Pull) {
	var report struct {
		Markdown *string `json:"report"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/tasks/"+t.ID+"/report", nil, &report); err == nil && report.Markdown != nil {
		fmt.Fprintf(d.Out, "\nThe agent's report:\n")
		for line := range strings.Lines(*report.Markdown) {
			fmt.Fprintf(d.Out, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	if d.there != nil {
		d.there.summary(d.Out, pr)
		return
	}
	fmt.Fprintf(d.Out, `
What happened: a task was filed; the box claimed it, ran an agent in a checkout
of its own and pushed the branch; pull request #%d was opened, its checks ran on
the box, its head was approved and merged, and the tests pass now.
`, pr.Number)
}
