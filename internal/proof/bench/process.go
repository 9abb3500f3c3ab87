package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/child"
	"yardmaster/internal/client"
)

const (
	account    = "acme"
	project    = "widgets"
	setupToken = "bench"
)

// process is a started server: the program, or the baseline.
type process struct {
	cmd *exec.Cmd
	url string
	log *os.File

	gone chan struct{} // closed once the process has ended
}

// freePort is an address on loopback on which nothing listens.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// launch starts a server and returns when it answers /healthz; took counts from
// before the start of the process.
func (b *bench) launch(ctx context.Context, bin string, args ...string) (p *process, took time.Duration, err error) {
	address, err := freePort()
	if err != nil {
		return nil, 0, err
	}
	p = &process{url: "http://" + address, gone: make(chan struct{})}
	if p.log, err = os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, 0, err
	}
	p.cmd = exec.Command(bin, append(args, "--listen", address)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := child.Start(p.cmd, func(error) { close(p.gone) }); err != nil { // a signal ends it
		return nil, 0, err
	}
	if b.profiles != nil && bin == b.bin {
		if err := b.profiles.follow(ctx, p.cmd.Process.Pid); err != nil {
			p.stop()
			return nil, 0, err
		}
	}
	for !healthy(address) {
		if time.Since(begin) > time.Minute || ctx.Err() != nil {
			p.stop()
			log, _ := os.ReadFile(p.log.Name())
			return nil, 0, fmt.Errorf("%s does not answer:\n%s", filepath.Base(bin), log[max(0, len(log)-2000):])
		}
		time.Sleep(time.Millisecond)
	}
	return p, time.Since(begin), nil
}

func healthy(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	if _, err := fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// serve starts the program on a data folder. It logs warnings only, because the bare
// handlers log nothing.
func (b *bench) serve(ctx context.Context, data string, args ...string) (*process, time.Duration, error) {
	return b.launch(ctx, b.bin, append([]string{"serve", "--data", data, "--setup-token", setupToken, "--seats", "1000",
		"--rate-limits", "off", "--merge-grace", "0", "--most-streams", "0", "--most-streams-account", "0", "--most-connections", "16384",
		"--most-connections-address", "16384", "--log-level", "warn"}, args...)...)
}

// stop ends the process and waits for its end.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	<-p.gone
	kill.Stop()
	p.log.Close()
}

// memory is the resident set in bytes, after it has settled.
func (p *process) memory() (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	last := int64(0)
	for range 20 {
		kb, err := strconv.ParseInt(strings.Fields(field(path, "VmRSS", "x"))[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", path, err)
		}
		if d := last - kb; last > 0 && d < last/100 && -d < last/100 {
			return kb << 10, nil
		}
		last = kb
		time.Sleep(time.Second)
	}
	return last << 10, nil
}

// busy is the processor time that the process has used.
func (p *process) busy() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// world is a server that was set up: an owner, a repository, a model key.
type world struct {
	*process
	data string
	api  *client.Client
	pat  string
}

// settle sets a new server up.
func (b *bench) settle(ctx context.Context, name string, args ...string) (*world, error) {
	w := &world{data: filepath.Join(b.dir, name)}
	var err error
	if w.process, _, err = b.serve(ctx, w.data, args...); err != nil {
		return nil, err
	}
	w.api, err = client.Setup(ctx, w.url, setupToken,
		client.Owner{Login: "ada", Name: "Ada", Email: "ada@example.com", Password: "correct horse battery", Account: account})
	if err == nil {
		w.pat = w.api.Token
		err = w.repository(ctx, b.dir)
	}
	if err == nil {
		err = w.api.Call(ctx, http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// restart starts a new process on the same data.
func (b *bench) restart(ctx context.Context, w *world) (took time.Duration, err error) {
	if w.process, took, err = b.serve(ctx, w.data); err == nil {
		w.api = &client.Client{URL: w.url, Token: w.pat}
	}
	return took, err
}

func (w *world) repository(ctx context.Context, tmp string) error {
	dir, err := os.MkdirTemp(tmp, "repo-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Widgets\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message",
			"Begin"},
	} {
		if _, err := client.Git(ctx, dir, "", "", args...); err != nil {
			return err
		}
	}
	return w.api.AddRepo(ctx, dir, account, project)
}

// database is the file of the server's database.
func (w *world) database() string { return filepath.Join(w.data, "yardmaster.db") }
