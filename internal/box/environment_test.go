package box_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// prepared is a check of the default branch, or of another commit, after a script.
func (p *plane) prepared(check, checkout string, change func(*protocol.Environment)) string {
	return p.task(func(s *protocol.Start) {
		s.Kind, s.Agent, s.Branch, s.Checkout = "ci", "command", "", checkout
		s.Command = []string{"/bin/sh", "-c", check}
		s.Environment = &protocol.Environment{Scope: "acme/1", TimeoutMS: 60_000}
		change(s.Environment)
	})
}

// made are the states of the run's environment, and the last report of it.
func made(t *testing.T, s *seen) (states string, last protocol.EnvironmentMade) {
	t.Helper()
	var names []string
	for _, m := range all[protocol.EnvironmentMade](t, s, protocol.EventEnvironment) {
		names, last = append(names, m.State), m
	}
	return strings.Join(names, " "), last
}

// TestEnvironmentIsMadeOnce holds, at both levels, that the script of the policy runs once with
// the files of the default branch, its secrets and its network, and that the runs after it
// have what it made and none of these.
func TestEnvironmentIsMadeOnce(t *testing.T) {
	t.Parallel()
	for level, begin := range map[sandbox.Level]func(*plane) func() error{
		sandbox.Bubblewrap: func(p *plane) func() error { return p.start(p.config()) },
		sandbox.Landlock:   func(p *plane) func() error { return p.apartWithout("bwrap")(p.config()) },
	} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			p.secrets = []protocol.Secret{
				{Name: "FETCH", Delivery: protocol.DeliverEnv, Value: []byte("for the script alone")},
				{Name: "OPEN", Delivery: protocol.DeliverEnv, Value: []byte("for the check alone")},
			}
			main := git(t, p.repo, "rev-parse", "main")
			other := p.commit("other", "README", "of somebody else")
			begin(p)
			script := `set -e; [ "$FETCH" = "for the script alone" ]; [ -z "$OPEN" ]; cat README >"$YARDMASTER_ENVIRONMENT/readme"
				mkdir "$YARDMASTER_ENVIRONMENT/bin"; printf '#!/bin/sh\necho tool\n' >"$YARDMASTER_ENVIRONMENT/bin/tool"
				chmod 4700 "$YARDMASTER_ENVIRONMENT/bin/tool"; chmod 000 "$YARDMASTER_ENVIRONMENT/readme"
				ln -s /etc/passwd "$YARDMASTER_ENVIRONMENT/link"; mkfifo "$YARDMASTER_ENVIRONMENT/pipe" || :
				echo GREETING=hello >"$YARDMASTER_ENVIRONMENT/env"; touch ../left "$HOME/left" || :
				git ls-remote http://nowhere.invalid/x 2>&1 | tail -1; (sleep 1000 &) ; echo "for the script alone"`
			check := `set -e; [ -z "$FETCH" ]; [ "$OPEN" = "for the check alone" ]; [ "$GREETING" = hello ]; [ "$(tool)" = tool ]
				cat "$YARDMASTER_ENVIRONMENT/readme" README; [ ! -e "$HOME/left" ]; [ ! -u "$(command -v tool)" ]; [ ! -p "$YARDMASTER_ENVIRONMENT/pipe" ]
				if echo x >"$YARDMASTER_ENVIRONMENT/readme"; then exit 7; fi; if touch "$YARDMASTER_ENVIRONMENT/more"; then exit 8; fi
				git ls-remote http://nowhere.invalid/x 2>&1 | tail -1`
			environment := func(e *protocol.Environment) {
				e.Command, e.Secrets, e.Network = script, []string{"FETCH"}, []string{"nowhere.invalid:80"}
			}
			s, f := p.finish(p.prepared(check, other, environment))
			if f.ExitCode == nil || *f.ExitCode != 0 {
				t.Fatalf("finished %+v", f)
			}
			if !strings.Contains(f.Output, "demo") || !strings.Contains(f.Output, "of somebody else") {
				t.Errorf("the script has not read the default branch, or the check not its own commit: %s", f.Output)
			}
			states, last := made(t, s)
			if states != "making ready" || last.Exit == nil || *last.Exit != 0 || last.Key == "" || last.Bytes == 0 {
				t.Errorf("%s, %+v", states, last)
			}
			if !strings.Contains(last.Output, "502") || strings.Contains(f.Output, "502") {
				t.Errorf("the network is not the script's alone: it said %q, the check %q", last.Output, f.Output)
			}
			if strings.Contains(last.Output, "for the script alone") {
				t.Errorf("a secret is in %q", last.Output)
			}
			again, f := p.finish(p.prepared(check, main, environment))
			if states, kept := made(t, again); states != "kept" || kept.Key != last.Key || f.ExitCode == nil || *f.ExitCode != 0 {
				t.Errorf("the second time: %s, %+v", states, f)
			}
			for what, change := range map[string]func(*protocol.Environment){
				"another scope":  func(e *protocol.Environment) { e.Scope = "acme/2" },
				"another script": func(e *protocol.Environment) { e.Command += "; :" },
				"fewer hosts":    func(e *protocol.Environment) { e.Network = nil },
			} {
				s, _ := p.finish(p.prepared(check, main, func(e *protocol.Environment) { environment(e); change(e) }))
				if states, got := made(t, s); states != "making ready" || got.Key == last.Key {
					t.Errorf("%s: %s, as the one before: %t", what, states, got.Key == last.Key)
				}
			}
		})
	}
}

// TestEnvironmentOfOtherInputs holds that a change of what the script depends on has it run
// anew, and none of anything else.
func TestEnvironmentOfOtherInputs(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	key := func(inputs ...string) string {
		s, f := p.finish(p.prepared("true", git(t, p.repo, "rev-parse", "main"), func(e *protocol.Environment) {
			e.Command, e.Inputs = "true", inputs
		}))
		_, last := made(t, s)
		if last.Key == "" {
			t.Fatalf("%+v", f)
		}
		return last.Key
	}
	whole, named, absent := key(), key("README"), key("none")
	p.commit("main", "other", "more")
	if key() == whole || key("README") != named || key("none") != absent {
		t.Error("another file: the result for all files is the same, or one for a file is not")
	}
	p.commit("main", "README", "changed")
	if key("README") == named || key("none") != absent {
		t.Error("the file that it depends on: its result is the same, or another one is not")
	}
}

// TestEnvironmentThatFails holds that a run whose environment cannot be made ready fails for
// that reason, and that nothing of it is kept.
func TestEnvironmentThatFails(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.secrets = []protocol.Secret{{Name: "FETCH", Delivery: protocol.DeliverEnv, Value: []byte("for the script alone")}}
	cfg := p.config()
	p.start(cfg)
	main := git(t, p.repo, "rev-parse", "main")
	for says, change := range map[string]func(*protocol.Environment){
		"ended with code 3; it said: oops": func(e *protocol.Environment) { e.Command = "echo oops; exit 3" },
		"took longer than 1s":              func(e *protocol.Environment) { e.Command, e.TimeoutMS = "sleep 1000", 1000 },
		"leaves a secret in the file sub/npmrc": func(e *protocol.Environment) {
			e.Command, e.Secrets = `cd "$YARDMASTER_ENVIRONMENT"; mkdir sub; printf %s "$FETCH" | base64 >sub/npmrc`, []string{"FETCH"}
		},
		"must not set HOME":          func(e *protocol.Environment) { e.Command = `echo HOME=/x >"$YARDMASTER_ENVIRONMENT/env"` },
		"must have lines NAME=value": func(e *protocol.Environment) { e.Command = `echo no >"$YARDMASTER_ENVIRONMENT/env"` },
		"must be a plain file":       func(e *protocol.Environment) { e.Command = `ln -s /etc/passwd "$YARDMASTER_ENVIRONMENT/env"` },
		"is not the name of a host":  func(e *protocol.Environment) { e.Command, e.Network = "true", []string{"127.0.0.1:80"} },
	} {
		s, f := p.finish(p.prepared("true", main, change))
		states, last := made(t, s)
		if f.Kind != "setup_failed" || !strings.Contains(f.Error, says) || states != "making failed" || last.Why == "" {
			t.Errorf("%s: %s, %+v", says, states, f)
		}
		if strings.Contains(s.kinds(), protocol.EventStarted) {
			t.Errorf("%s: the check has begun: %s", says, s.kinds())
		}
	}
	if left, err := filepath.Glob(filepath.Join(cfg.DataDir, "prepared", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	s, f := p.finish(p.prepared(`[ -z "$FETCH$YARDMASTER_ENVIRONMENT" ]`, main, func(e *protocol.Environment) {
		e.Command, e.Secrets, e.Why = "exit 9", []string{"FETCH"}, "not here"
	}))
	if states, last := made(t, s); states != "skipped" || last.Why != "not here" || f.ExitCode == nil || *f.ExitCode != 0 {
		t.Errorf("skipped: %s, %+v, %+v", states, last, f)
	}
}

// commit adds a commit with a file to a branch of the host.
func (p *plane) commit(branch, name, text string) string {
	p.t.Helper()
	work := p.t.TempDir()
	git(p.t, work, "clone", "-q", p.repo, ".")
	git(p.t, work, "checkout", "-q", "-B", branch)
	must(p.t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
	git(p.t, work, "add", "-A")
	git(p.t, work, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", name)
	git(p.t, work, "push", "-q", "origin", "HEAD:"+branch)
	return git(p.t, work, "rev-parse", "HEAD")
}
