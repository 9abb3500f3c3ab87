//go:build environments

package environments

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// condition is the one unusual property of a row's place.
type condition struct {
	name string
	make func(*place)
}

var (
	plain = condition{"plain", func(*place) {}}
	// Like a binary that `go run` makes for a user with umask 077.
	closedProgram = condition{"umask-077-and-closed-program", func(p *place) {
		p.umask = 0o077
		p.program = filepath.Join(p.private("b"), "yardmaster")
		p.must(install(p.program, program, 0o700))
		p.own(p.program)
	}}
	dataInHome   = condition{"data-in-a-closed-home", func(p *place) { p.data = filepath.Join(p.home, "d") }}
	dataOfRoot   = condition{"data-in-root's-own-home", inOwnHome}
	dataMounted  = condition{"data-on-a-closed-mount", onMount}
	closedTemp   = condition{"closed-TMPDIR", func(p *place) { p.useTemp(p.private("t")) }}
	noHome       = condition{"no-HOME", func(p *place) { p.unset = append(p.unset, "HOME") }}
	readOnlyHome = condition{"read-only-HOME", readOnly}
	noTerminal   = condition{"no-terminal-POSIX-locale", func(p *place) {
		p.session = true
		p.env["LC_ALL"], p.env["TERM"] = "POSIX", "dumb"
	}}
	// Root in name only, as in a container without further users: the box cannot run
	// its agents as another user.
	rootOfOne = condition{"root-of-a-namespace-of-one-user", func(p *place) { p.under = []string{"unshare", "--map-root-user"} }}
	// A machine that reaches nothing but itself; the demo is served with --air-gapped.
	noRoute = condition{"without-a-route", func(p *place) {
		p.under = []string{"unshare", "--net", "sh", "-c", `ip link set lo up && test -z "$(ip route show table main)" && exec "$0" "$@"`}
	}}
	noexecTemp = condition{"noexec-TMPDIR", func(p *place) {
		dir := filepath.Join(p.dir, "t")
		p.must(os.Mkdir(dir, 0o755))
		p.mount("-t", "tmpfs", "-o", "noexec,mode=1777", "tmpfs", dir)
		p.useTemp(dir)
	}}
)

func (p *place) useTemp(dir string) {
	p.env["TMPDIR"] = dir
	p.temp = append(p.temp, dir)
}

// inOwnHome keeps the data in root's real home on this machine.
func inOwnHome(p *place) {
	u, err := user.LookupId("0")
	p.must(err)
	dir, err := os.MkdirTemp(u.HomeDir, "ym")
	p.must(err)
	p.t.Cleanup(func() { os.RemoveAll(dir) })
	p.env["HOME"] = u.HomeDir
	p.data = filepath.Join(dir, "d")
}

// onMount keeps the data on a file system whose root folder is closed.
func onMount(p *place) {
	dir := filepath.Join(p.dir, "m")
	p.must(os.Mkdir(dir, 0o755))
	p.mount("-t", "tmpfs", "-o", "mode=0700", "tmpfs", dir)
	p.data = filepath.Join(dir, "d")
}

// readOnly gives a home without write permission. Root can write to it unless the
// file system is read-only.
func readOnly(p *place) {
	dir := filepath.Join(p.dir, "r")
	p.must(os.Mkdir(dir, 0o555))
	p.env["HOME"] = dir
	if p.who == root {
		p.mount("--bind", dir, dir)
		p.mount("-o", "remount,bind,ro", dir)
	}
}

// TestDemo has the demo do the whole job.
func TestDemo(t *testing.T) {
	for _, r := range []struct {
		who, levels string
		conditions  []condition
	}{
		{root, "bubblewrap landlock none", []condition{plain}},
		{ordinary, "bubblewrap landlock none", []condition{plain}},
		{root, "landlock none", []condition{closedProgram, dataInHome, dataOfRoot, dataMounted, closedTemp, noHome, readOnlyHome,
			noTerminal, noexecTemp}},
		{root, "bubblewrap", []condition{closedProgram, dataMounted, noRoute}},
		{ordinary, "landlock", []condition{closedProgram, dataInHome, closedTemp, noHome, readOnlyHome, noTerminal, noexecTemp}},
		{ordinary, "none", []condition{closedProgram}},
		{ordinary, "landlock none", []condition{rootOfOne}},
	} {
		for _, c := range r.conditions {
			for _, level := range strings.Fields(r.levels) {
				t.Run(fmt.Sprintf("%s/%s/%s", r.who, level, c.name), func(t *testing.T) {
					p := newPlace(t, r.who, level)
					c.make(p)
					p.merges(p.demo(noSecondTry))
				})
			}
		}
	}
}

// demo runs the demo to its end.
func (p *place) demo(hopeless func(string) bool) *kept {
	p.t.Helper()
	argv := append(slices.Clone(p.under), p.program, "demo", "--once")
	if p.data != "" {
		argv = append(argv, "--data", p.data)
	}
	return p.begin("", argv...).watch(hopeless).wait()
}

// noSecondTry does not wait for a second try after a failed run: the machine has not
// changed.
func noSecondTry(said string) bool { return strings.Contains(said, "waits: retry_backoff") }

var (
	failure  = regexp.MustCompile(`(?m)finished: failed, (.*)$`)
	started  = regexp.MustCompile(`started, .*isolation (\w+)`)
	merged   = regexp.MustCompile(`#1 merged`)
	allTests = regexp.MustCompile(`all \d+ tests pass`)
	plainly  = regexp.MustCompile(`(?i)nothing isolates|not isolated`)
)

// merges fails the row unless the demo has done the job at the row's level.
func (p *place) merges(k *kept) {
	p.t.Helper()
	said := k.said()
	if at := started.FindStringSubmatch(said); at != nil && at[1] != p.level {
		p.failf("agents ran at %s, not at %s", at[1], p.level)
	}
	switch lost := failure.FindStringSubmatch(said); {
	case k.Trouble != "": // finish reports it
		return
	case lost != nil:
		p.failf("a run failed: %s", lost[1])
		return
	case k.Late:
		p.failf("it does not end")
		return
	case k.Code != 0:
		p.failf("exit code %d: %s", k.Code, k.lastLine())
		return
	case !started.MatchString(said):
		p.failf("it does not say what isolates the agent")
	case !merged.MatchString(said):
		p.failf("it does not say that the pull request merged")
	case !allTests.MatchString(said):
		p.failf("it does not say that all tests pass")
	}
	p.saysWhatIsolates(said)
	if p.data != "" && k.Identities == 0 {
		p.failf("no identity file was found in the data, so its mode is not known")
	}
}

// saysWhatIsolates checks that the demo says plainly that nothing isolates agents, if
// that is so, and only then.
func (p *place) saysWhatIsolates(said string) {
	p.t.Helper()
	switch at := plainly.MatchString(said); {
	case at && p.level != none:
		p.failf("it says that nothing isolates agents, at %s", p.level)
	case !at && p.level == none:
		p.failf("it does not say plainly that nothing isolates agents")
	}
}

// Without git the demo fails at once and says so.
func TestDemoWithoutGit(t *testing.T) {
	for _, who := range []string{root, ordinary} {
		t.Run(who, func(t *testing.T) {
			p := newPlace(t, who, landlock)
			p.env["PATH"] = paths["no git"]
			k := p.demo(nil)
			if k.Code != 1 || timed.MatchString(k.said()) || !strings.Contains(k.stderr(), "needs git") {
				p.failf("exit code %d, want 1 before any step, and that it needs git: %s", k.Code, k.said())
			}
		})
	}
}

// timed is a line of the demo that reports a step while the server runs.
var timed = regexp.MustCompile(`(?m)^ *\d+\.\d+s  .*\n?`)

// Without --once the demo continues to serve, and leaves nothing behind when stopped.
func TestDemoServesOn(t *testing.T) {
	p := newPlace(t, root, landlock)
	k := p.begin("", p.program, "demo").watch(noSecondTry)
	p.until("it has done the job, and serves on", func() bool {
		return k.ended() || strings.Contains(k.said(), "runs on until")
	})
	k.stop()
	p.merges(k.wait())
}

// With --once the server ends with the demo, so the demo prints neither an address
// nor a password.
func TestDemoSaysNoPassword(t *testing.T) {
	p := newPlace(t, ordinary, landlock)
	k := p.demo(noSecondTry)
	p.merges(k)
	if strings.Contains(k.said(), "password") {
		p.failf("it says a password of a server that is gone")
	}
}

// A box that cannot work is reported at once, with the cause from its log.
func TestDemoOfABoxThatCannotWork(t *testing.T) {
	p := newPlace(t, root, landlock)
	closed := p.private("c")
	p.env["YARDMASTER_BOX_WORK"] = filepath.Join(closed, "w")
	p.data = filepath.Join(p.dir, "d")
	k := p.demo(nil)
	rest := timed.ReplaceAllString(k.said(), "")
	switch {
	case k.Late:
		p.failf("it does not end")
		return
	case k.Code != 1:
		p.failf("exit code %d, want 1: %s", k.Code, k.lastLine())
	case !names(rest, closed) || !strings.Contains(rest, "0700"):
		p.failf("it does not name the folder %s and its mode 0700: %s", closed, rest)
	}
	if strings.Contains(rest, "http://") || strings.Contains(rest, "password") {
		p.failf("it names an address or a password of a server that is gone: %s", rest)
	}
	if log := strings.TrimSpace(k.Logs["box.log"]); log != "" {
		last := log[strings.LastIndexByte(log, '\n')+1:]
		if !strings.Contains(k.said(), last) {
			p.failf("it does not show the end of the box's log: %s", last)
		}
	}
}

// names tells whether a text names a folder itself, not only a path inside it.
func names(text, dir string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(dir) + `([^/\w]|$)`).MatchString(text)
}
