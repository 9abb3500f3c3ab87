package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/codehost/relay"
)

const (
	relayed     = 100 << 20 // bytes of the repository that is cloned, which do not pack
	relayRounds = 5
)

// upstream is the git of the host behind the relay: another server in this process.
type upstream struct{ address string }

// Upstream implements codehost.GitAccess.
func (u upstream) Upstream(_ context.Context, r codehost.Repo, _ bool) (*url.URL, string, time.Time, error) {
	to, err := url.Parse(u.address + "/git/" + r.String() + ".git")
	return to, "Basic eDp5", time.Now().Add(time.Hour), err
}

// Renew implements codehost.GitAccess.
func (upstream) Renew(codehost.Repo) {}

// relayClone clones and asks for refs through the relay and at the host itself.
func relayClone(ctx context.Context, b *bench) error {
	repo := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "large"}
	all := func(context.Context, string, string, codehost.Repo) (codehost.Access, error) {
		return codehost.Access{Read: true, Push: []string{"refs/*"}, Who: "bench"}, nil
	}
	host, err := builtin.New(builtin.Config{Root: filepath.Join(b.dir, "relay")})
	if err != nil {
		return err
	}
	direct, stop, err := listen(ctx, host.Handler(builtin.Hooks{Authorize: all, Pushed: func(context.Context, codehost.PushEvent) {}}))
	if err != nil {
		return err
	}
	defer stop()
	through, stop, err := listen(ctx, relay.New(relay.Config{
		Find: func(context.Context, string) (codehost.Repo, error) { return repo, nil },
		Git: func(context.Context, codehost.Repo, codehost.Access) (codehost.GitAccess, error) {
			return upstream{direct}, nil
		},
		Authorize: all, Pushed: func(context.Context, codehost.PushEvent) {},
	}))
	if err != nil {
		return err
	}
	defer stop()
	if err := host.Create(ctx, repo, codehost.CreateOptions{}); err != nil {
		return err
	}
	work := filepath.Join(b.dir, "relay-work")
	if err := fillRepo(ctx, work, withUser(direct)+"/git/acme/large.git"); err != nil {
		return err
	}
	addresses := [2]string{withUser(through) + relay.Path("1"), withUser(direct) + "/git/acme/large.git"}
	clone := func(address string) (time.Duration, error) {
		to := filepath.Join(b.dir, "relay-clone")
		defer os.RemoveAll(to)
		return timed(func() error { return gitIn(ctx, b.dir, "clone", "--quiet", "--bare", address, to) })
	}
	refs := func(address string) (time.Duration, error) {
		return timed(func() error { return gitIn(ctx, b.dir, "ls-remote", "--quiet", address) })
	}
	for _, of := range []struct {
		what, target string
		most         float64
		do           func(string) (time.Duration, error)
	}{
		{"clone of 100 MB, time of git", "≤ 1.20 of direct", 1.2, clone},
		{"listing of refs, time of git", "≤ 1.50 of direct", 1.5, refs},
	} {
		var took [2][]time.Duration
		for range relayRounds {
			for i, address := range addresses {
				d, err := of.do(address)
				if err != nil {
					return err
				}
				took[i] = append(took[i], d)
			}
		}
		r := ratio(median(took[0]), median(took[1]))
		b.add(row{what: of.what, value: ms(median(took[0])), baseline: ms(median(took[1])), ratio: r, target: of.target, met: r <= of.most})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := clone(addresses[0]); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	used := int64(after.TotalAlloc - before.TotalAlloc)
	b.add(row{what: "bytes that both servers allocate during a clone", value: kb(used), target: "≤ 32 MB", met: used <= 32<<20})
	return nil
}

// listen serves a handler on loopback.
func listen(ctx context.Context, h http.Handler) (address string, stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // it ends by Close
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

func withUser(address string) string { return strings.Replace(address, "://", "://x:y@", 1) }

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// fillRepo pushes a commit of random bytes.
func fillRepo(ctx context.Context, work, to string) error {
	if err := gitIn(ctx, filepath.Dir(work), "init", "--quiet", "-b", "main", work); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(work, "large"))
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.Reader, relayed)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"add", "large"}, {"-c", "user.name=b", "-c", "user.email=b@b", "commit", "--quiet", "-m", "large"},
		{"push", "--quiet", to, "main"},
	} {
		if err := gitIn(ctx, work, args...); err != nil {
			return err
		}
	}
	return nil
}

func gitIn(ctx context.Context, dir string, args ...string) error {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.compression", "GIT_CONFIG_VALUE_0=0",
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
	}
	return nil
}
