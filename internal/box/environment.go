package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/box/prepared"
	"yardmaster/internal/box/roots"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/scrub"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/id"
	"yardmaster/internal/lazy"
	"yardmaster/internal/protocol"
)

// EnvironmentVariable is the environment variable with the folder of what the prepare script
// has made. The script writes it; agents and checks read it.
const EnvironmentVariable = "YARDMASTER_ENVIRONMENT"

// variablesFile is the file in that folder whose lines NAME=value are variables of agents and
// checks, and binFolder the folder whose programs they find first.
const (
	variablesFile = "env"
	binFolder     = "bin"
	maxVariables  = 64 << 10 // bytes of the file
)

// scriptTail is how much of what a script said is told.
const scriptTail = 4 << 10

// environmentError is why there is no environment.
type environmentError struct{ made protocol.EnvironmentMade }

func (e *environmentError) Error() string {
	text := "the environment is not ready: " + e.made.Why
	if e.made.Output != "" {
		text += "; it said: " + e.made.Output
	}
	return text
}

// environment makes ready what the run's policy says, or takes what an earlier run has made
// ready, and reports it. The attempt holds it until it is over.
func (b *box) environment(ctx context.Context, a *attempt, w *workspace, level sandbox.Level) error {
	e := a.start.Environment
	if e == nil {
		return nil
	}
	if e.Why != "" {
		a.event(protocol.EventEnvironment, protocol.EnvironmentMade{State: protocol.EnvironmentSkipped, Why: e.Why})
		return nil
	}
	began := time.Now()
	tip, err := w.cache.Resolve(ctx, a.start.DefaultRef)
	if err != nil {
		return err
	}
	key, err := b.environmentKey(ctx, a, w, level, tip)
	if err != nil {
		return err
	}
	held, err := b.results.Take(ctx, key)
	if err != nil {
		return err
	}
	a.environment = held
	made := protocol.EnvironmentMade{State: protocol.EnvironmentKept, Key: key}
	if !held.Whole {
		a.event(protocol.EventEnvironment, protocol.EnvironmentMade{State: protocol.EnvironmentMaking, Key: key})
		made.State = protocol.EnvironmentReady
		if err = b.makeEnvironment(ctx, a, w, level, tip, &made); err != nil {
			made.State, made.Why = protocol.EnvironmentFailed, err.Error()
		}
	}
	made.Bytes, made.TookMS = held.Bytes, time.Since(began).Milliseconds()
	a.event(protocol.EventEnvironment, made)
	if err != nil && !noSpace(err) {
		return &environmentError{made}
	}
	return err
}

// environmentKey names a result by all that it is made of.
func (b *box) environmentKey(ctx context.Context, a *attempt, w *workspace, level sandbox.Level, tip string) (string, error) {
	e := a.start.Environment
	inputs := map[string]string{}
	for _, path := range append([]string{}, e.Inputs...) {
		object, err := w.cache.Object(ctx, tip, path)
		if err != nil {
			return "", err
		}
		inputs[path] = object
	}
	if len(e.Inputs) == 0 {
		object, err := w.cache.Object(ctx, tip, "")
		if err != nil {
			return "", err
		}
		inputs[""] = object
	}
	text, err := json.Marshal([]any{
		1, e.Scope, a.start.CloneURL, e.Command, inputs, e.Network, e.Secrets, level, runtime.GOOS, runtime.GOARCH, b.cfg.Egress,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// makeEnvironment runs the script and keeps what it leaves. All that it had besides goes with
// it: its processes, its checkout and home, its way into the network and its secrets.
func (b *box) makeEnvironment(
	ctx context.Context, a *attempt, w *workspace, level sandbox.Level, tip string, made *protocol.EnvironmentMade,
) (err error) {
	e := a.start.Environment
	task, home := filepath.Join(a.work, "prepare-task"), filepath.Join(a.work, "prepare-home")
	checkout, err := w.cache.Checkout(ctx, task, "", tip, a.identity())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, checkout.Remove(), worktree.RemoveTree(home)) }()
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if err := a.identity().Save(filepath.Join(home, ".gitconfig")); err != nil {
		return err
	}
	secrets := a.vault.ofScript()
	if err := b.runScript(ctx, a, b.scriptSpec(a, level, task, home, w, secrets), made); err != nil {
		return err
	}
	n := prepared.Note{}
	if n.Bytes, err = sandbox.Settle(a.environment.Dir, without(slices.Collect(maps.Values(secrets)))); err != nil {
		return err
	}
	if n.Env, err = variablesOf(filepath.Join(a.environment.Dir, variablesFile)); err != nil {
		return err
	}
	for _, name := range e.Secrets {
		if _, kept := n.Env[name]; kept {
			return fmt.Errorf("it leaves the variable %s, which is a secret's", name)
		}
	}
	if info, err := os.Lstat(filepath.Join(a.environment.Dir, binFolder)); err == nil && info.IsDir() {
		n.Bin = true
	}
	return a.environment.Keep(n)
}

// scriptSpec is the sandbox of a script: as strict as that of the agent.
func (b *box) scriptSpec(a *attempt, level sandbox.Level, task, home string, w *workspace, secrets map[string]string) sandbox.Spec {
	s := sandbox.Spec{
		Level: level, Task: task, Home: home, Program: b.setup.program, Argv: []string{"/bin/sh", "-c", a.start.Environment.Command},
		Env: maps.Clone(secrets), ReadOnly: []string{w.cache.Objects()}, Writable: []string{a.environment.Dir},
	}
	b.trust(&s)
	s.Env[EnvironmentVariable] = a.environment.Dir
	if level == sandbox.Bubblewrap {
		s.Forward = []sandbox.Forward{{Port: proxyPort, Socket: b.socketPath()}}
	} else {
		s.Reach = ports(b.port)
	}
	return s
}

// runScript runs the script to its end, with a token of its own for the network.
func (b *box) runScript(ctx context.Context, a *attempt, spec sandbox.Spec, made *protocol.EnvironmentMade) error {
	e := a.start.Environment
	for _, host := range e.Network {
		if !named(host) {
			return fmt.Errorf("%s is not the name of a host", shown(host))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.TimeoutMS)*time.Millisecond)
	defer cancel()
	token := id.Random()
	a.secrets.Add(token)
	if err := b.proxy.Register(modelproxy.Run{LocalToken: token, Egress: append(slices.Clone(b.cfg.Egress), e.Network...)}); err != nil {
		return err
	}
	defer b.proxy.Unregister(token)
	viaProxy(spec.Env, token, strings.TrimPrefix(b.place(a, spec.Level).proxy, "http://"))
	said := &tail{limit: scriptTail}
	spec.Stdout, spec.Stderr = said, said
	p, done, err := b.startLimited(a, spec)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
	err = p.Wait()
	made.Output = said.String()
	var exit *sandbox.ExitError
	r := result{}
	switch {
	case ctx.Err() != nil && errors.Is(err, sandbox.ErrKilled):
		err = fmt.Errorf("the script was ended: %w", context.Cause(ctx))
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the script took longer than %s", time.Duration(e.TimeoutMS)*time.Millisecond)
		}
	case err == nil:
		r.exit = new(int)
	case errors.As(err, &exit):
		r.exit = &exit.Code
		err = fmt.Errorf("the script ended with code %d", exit.Code)
	}
	made.Exit = r.exit
	done(r)
	return err
}

// named tells whether an entry of a list of hosts is a name and a port: by an address the
// script would reach what is in the network of the box.
func named(entry string) bool {
	host, _, err := net.SplitHostPort(entry)
	if err != nil || strings.Contains(host, "/") {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// without returns a look for Settle that refuses files with one of the secrets in it, in any
// of its usual spellings.
func without(secrets []string) func(name string, f *os.File) error {
	if len(secrets) == 0 {
		return nil
	}
	s := scrub.New(secrets...)
	return func(name string, f *os.File) error {
		seed := maphash.MakeSeed()
		var before, after maphash.Hash
		before.SetSeed(seed)
		after.SetSeed(seed)
		out := s.Writer(&after)
		_, err := io.Copy(out, io.TeeReader(f, &before))
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
		if before.Sum64() != after.Sum64() {
			return fmt.Errorf("the script leaves a secret in the file %s", shown(name))
		}
		return nil
	}
}

var variableName = lazy.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// ownVariables are of the sandbox, and no script sets them.
var ownVariables = []string{"HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
	"NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}

// variablesOf reads the variables that a script leaves.
func variablesOf(path string) (map[string]string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxVariables {
		return nil, fmt.Errorf("its file %s must be a plain file of at most %d bytes", variablesFile, maxVariables)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !variableName.MatchString(name) || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("its file %s must have lines NAME=value", variablesFile)
		}
		if slices.Contains(ownVariables, name) || strings.HasPrefix(name, "YARDMASTER_") {
			return nil, fmt.Errorf("its file %s must not set %s", variablesFile, name)
		}
		out[name] = value
	}
	return out, nil
}

// addEnvironment shows a sandbox what was made ready for the attempt.
func (a *attempt) addEnvironment(s *sandbox.Spec) {
	e := a.environment
	if e == nil {
		return
	}
	s.ReadOnly = append(s.ReadOnly, e.Dir)
	for name, value := range e.Env {
		if _, set := s.Env[name]; !set {
			s.Env[name] = value
		}
	}
	s.Env[EnvironmentVariable] = e.Dir
	if e.Bin {
		s.Env["PATH"] = filepath.Join(e.Dir, binFolder) + ":" + systemPath
	}
}

// leaveEnvironment gives back what the attempt holds.
func (a *attempt) leaveEnvironment() {
	if a.environment == nil {
		return
	}
	if err := a.environment.Release(); err != nil {
		a.log.Warn("what the prepare script left was not removed", "error", err)
	}
	a.environment = nil
}

// trust names the certificate authorities of the box to a sandbox.
func (b *box) trust(s *sandbox.Spec) {
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	path := b.setup.authorities
	if path == "" {
		return
	}
	s.ReadOnly = append(s.ReadOnly, path)
	for name, value := range roots.Variables(path) {
		if _, set := s.Env[name]; !set {
			s.Env[name] = value
		}
	}
}

// viaProxy has programs reach the network by the proxy of the box.
func viaProxy(env map[string]string, token, host string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env[name] = "http://run:" + token + "@" + host
	}
	env["NO_PROXY"], env["no_proxy"] = "127.0.0.1,localhost", "127.0.0.1,localhost"
}
