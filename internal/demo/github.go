package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"yardmaster/internal/client"
)

// Host is what plays GitHub in the demo, with one repository and one issue. It speaks GitHub's API, keeps
// git repositories and sends deliveries. Its methods are called in their order here.
type Host interface {
	// URL is the address of its pages.
	URL() string
	// Register makes an App, whose deliveries go to an address with a secret.
	Register(hook, secret string, permissions map[string]string, events []string) App
	// Put makes the repository of an organisation, whose administrator is a person.
	Put(organisation, repo, person string, files map[string]string)
	// Install has the organisation install the App.
	Install()
	// OpenIssue has the person open the issue and label it, and answers its number.
	OpenIssue(title, body, label string) int
	// Folder is that of the repository.
	Folder() string
	// Check puts the result of a check of a commit there.
	Check(sha, name, result string)
	// Closed tells whether the issue is closed.
	Closed() bool
	// Comments are the texts of the comments on the issue.
	Comments() []string
	// Close ends it.
	Close() error
}

// App is an App of GitHub: its id, its name in addresses, and its private key in PEM.
type App struct {
	ID        int64
	Slug, PEM string
}

// standIn is a Host and what the demo knows of it.
type standIn struct {
	host   Host
	number int      // of the issue
	flags  []string // of the server
	hook   *http.Server
	server atomic.Pointer[string] // the address of the server, once there is one
	tested map[string]bool        // heads
}

const wish = "The tests of slug.sh fail"

// standIn starts the stand-in with an App of the server. The App exists before the server
// has an address, so its deliveries take a detour.
func (d *demo) standIn() (_ *standIn, err error) {
	host, err := d.StandIn()
	if err != nil {
		return nil, fmt.Errorf("start the stand-in for GitHub: %w", err)
	}
	s := &standIn{host: host, tested: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.hook = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(s.forward)}
	go func() { _ = s.hook.Serve(listener) }() // ends with close
	app := host.Register("http://"+listener.Addr().String(), "demo", map[string]string{
		"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write", "checks": "write",
		"statuses": "read", "actions": "write", "members": "read", "merge_queues": "write",
	}, []string{
		"push", "repository", "issues", "issue_comment", "label", "pull_request", "pull_request_review", "pull_request_review_comment",
		"pull_request_review_thread", "check_run", "check_suite", "status",
	})
	key := filepath.Join(d.Data, "app.pem")
	if err := os.WriteFile(key, []byte(app.PEM), 0o600); err != nil {
		return nil, err
	}
	s.flags = []string{
		"--github-url", host.URL(), "--github-app-id", strconv.FormatInt(app.ID, 10), "--github-app-slug", app.Slug,
		"--github-app-key-file", key, "--github-app-webhook-secret", "demo", "--github-app-account", account,
		"--github-app-owners", account,
	}
	d.step("Started a stand-in for GitHub on loopback. It is not GitHub: it speaks its API, and nothing leaves this machine.")
	return s, nil
}

// forward hands a delivery to the server.
func (s *standIn) forward(w http.ResponseWriter, r *http.Request) {
	base := s.server.Load()
	if base == nil {
		http.Error(w, "the server does not run yet", http.StatusServiceUnavailable)
		return
	}
	to, err := url.Parse(*base)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.Out.URL.Path, p.Out.Host = "/v1/inbound/github", ""
	}}
	proxy.ServeHTTP(w, r)
}

// close ends the stand-in.
func (s *standIn) close() error {
	var err error
	if s.hook != nil {
		err = s.hook.Close()
	}
	return errors.Join(err, s.host.Close())
}

// put makes the repository of the files in a folder.
func (s *standIn) put(dir string) error {
	files := map[string]string{}
	for _, path := range []string{"README.md", "slug.sh", "test.sh", ".svc/policy.yml"} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		files[path] = string(text)
	}
	s.host.Put(account, project, login, files)
	return nil
}

// await calls fn until it answers true.
func await(ctx context.Context, fn func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := fn(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// install has the organisation install the App, and waits until the server works there.
func (d *demo) install(ctx context.Context, c *client.Client) error {
	d.there.host.Install()
	err := await(ctx, func() (bool, error) {
		var page struct {
			Data []struct {
				Enabled     bool  `json:"enabled"`
				PolicyValid *bool `json:"policy_valid"`
			} `json:"data"`
		}
		err := c.Call(ctx, http.MethodGet, "/v1/repos", nil, &page)
		return len(page.Data) == 1 && page.Data[0].Enabled && page.Data[0].PolicyValid != nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the installation: %w", err)
	}
	d.step("The organisation %s has %s/%s there, and installed the App. A delivery told the server.", account, account, project)
	return nil
}

// issue has a person open an issue and label it, and waits for the task that the judge
// makes of it.
func (d *demo) issue(ctx context.Context, c *client.Client) (taskID string, err error) {
	d.there.number = d.there.host.OpenIssue(wish,
		"Upper case letters and punctuation get through. Make them pass; do not change the tests.", "yardmaster")
	d.step("%s opened the issue #%d there, “%s”, and gave it the label yardmaster.", login, d.there.number, wish)
	err = await(ctx, func() (bool, error) {
		var page struct {
			Data []struct {
				AskID *string `json:"ask_id"`
			} `json:"data"`
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/repos/"+account+"/"+project+"/issues", nil, &page); err != nil {
			return false, err
		}
		if len(page.Data) == 0 || page.Data[0].AskID == nil {
			return false, nil
		}
		var asked struct {
			State            string  `json:"state"`
			EscalationReason *string `json:"escalation_reason"`
			Verdict          *struct {
				TaskIDs []string `json:"task_ids"`
			} `json:"verdict"`
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/asks/"+*page.Data[0].AskID, nil, &asked); err != nil {
			return false, err
		}
		switch {
		case asked.State == "pending":
			return false, nil
		case asked.Verdict == nil || len(asked.Verdict.TaskIDs) != 1:
			return false, fmt.Errorf("the judge made no task of the issue: the ask is %s", asked.State)
		}
		taskID = asked.Verdict.TaskIDs[0]
		return true, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the judge: %w", err)
	}
	d.step("The judge made the task %s of it.", taskID)
	return taskID, nil
}

// check plays the organisation's own CI: the tests run for each head of the pull request,
// and the result is a check there.
func (s *standIn) check(ctx context.Context, d *demo, p client.Pull) error {
	if p.Number == 0 || p.State != "open" || s.tested[p.HeadSHA] {
		return nil
	}
	s.tested[p.HeadSHA] = true
	d.step("Pull request #%d is open there.", p.Number)
	dir := filepath.Join(d.Data, fmt.Sprintf("ci-%.10s", p.HeadSHA))
	if _, err := client.Git(ctx, d.Data, "", "", "clone", "--quiet", "--no-checkout", s.host.Folder(), dir); err != nil {
		return err
	}
	if _, err := client.Git(ctx, dir, "", "", "checkout", "--quiet", p.HeadSHA); err != nil {
		return err
	}
	result := "success"
	if _, err := test(ctx, dir); err != nil {
		result = "failure"
	}
	s.host.Check(p.HeadSHA, "test", result)
	d.step("The check test of the organisation's own CI has ended there: %s.", result)
	return nil
}

// closed waits until the issue is closed there.
func (d *demo) closed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // no machine is as slow
	defer cancel()
	if err := await(ctx, func() (bool, error) { return d.there.host.Closed(), nil }); err != nil {
		return fmt.Errorf("the issue was not closed: %w", err)
	}
	for _, said := range d.there.host.Comments() {
		text, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
		d.step("Said at the issue: %s", text)
	}
	d.step("The issue #%d is closed there.", d.there.number)
	return nil
}

// summary tells what happened.
func (s *standIn) summary(out io.Writer, p client.Pull) {
	fmt.Fprintf(out, `
What happened: a person labelled an issue at a stand-in for GitHub; a delivery
told the server, a judge made a task of it, the box ran an agent and pushed its
branch through the server; pull request #%d was opened there, its check passed,
its head was approved here and merged there, and the issue is answered and
closed. It was not GitHub: docs/github.md says how to connect the real one.
`, p.Number)
}
