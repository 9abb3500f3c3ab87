//go:build environments

package environments

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/proof/patience"
)

const setupToken = "e2e-environments"

// who is the work of a task: it records its user id, and which of the box's private
// files it can read.
const who = `id -u >who
for f in %s; do cat "$f" >/dev/null 2>&1 && echo "reads $f" >>who; done
echo "Wrote down who I am." >"$YARDMASTER_REPORT"`

// server is a control plane whose data, owner and repository are in the row's home,
// together with the login of the commands.
type server struct {
	*place
	process *kept
	address string
}

var serving = regexp.MustCompile(`serves (http://\S+), boxes`)

// serve starts a control plane and sets it up with the commands that a person uses.
func (p *place) serve() *server {
	p.t.Helper()
	s := &server{place: p}
	scenario := filepath.Join(p.home, "scenario.yml")
	text, err := os.ReadFile("../../../demo/scenario.yml")
	p.must(err)
	p.must(os.WriteFile(scenario, text, 0o600))
	s.process = p.begin("", p.program, "serve", "--data", p.home+"/server", "--listen", "127.0.0.1:0", "--setup-token",
		setupToken, "--scenario", scenario)
	p.until("the server serves", func() bool {
		if m := serving.FindStringSubmatch(s.process.said()); m != nil {
			s.address = m[1]
		} else if s.process.ended() {
			p.fatalf("the server ended: %s", s.process.lastLine())
		}
		return s.address != ""
	})
	s.do("correct horse battery staple\n", "setup", "--url", s.address, "--token", setupToken, "--login", "ada", "--email",
		"ada@example.com", "--account", "acme")
	s.do("", "repo", "add", s.repository())
	s.do("", "key", "add", "--provider", "scripted")
	return s
}

// repository makes a repository whose pull requests merge automatically.
func (s *server) repository() string {
	s.t.Helper()
	dir := filepath.Join(s.home, "widgets")
	s.must(os.MkdirAll(filepath.Join(dir, ".svc"), 0o700))
	policy := "version: 1\nreview: {mode: off}\nmerge: {mode: auto}\n"
	if s.level == none {
		policy += "agent: {isolation: none}\n" // otherwise its box would get no task
	}
	s.must(os.WriteFile(filepath.Join(dir, ".svc", "policy.yml"), []byte(policy), 0o600))
	s.git(dir, "init", "--quiet", "--initial-branch=main")
	s.git(dir, "add", "--all")
	s.git(dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet",
		"--message=Begin")
	return dir
}

func (s *server) git(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.fatalf("%v: %v: %s", cmd, err, out)
	}
	return string(out)
}

// do runs a command that must succeed, and answers its standard output.
func (s *server) do(input string, args ...string) string {
	s.t.Helper()
	k := s.begin(input, append([]string{s.program}, args...)...).wait()
	if k.Code != 0 || k.Trouble != "" {
		s.fatalf("`yardmaster %s`: exit code %d: %s", strings.Join(args[:2], " "), k.Code, k.lastLine())
	}
	return k.stdout()
}

// TestServe has the real commands do the whole job in a folder that only root can
// enter.
func TestServe(t *testing.T) {
	for _, level := range []string{landlock, none} {
		t.Run("root/"+level, func(t *testing.T) {
			p := newPlace(t, root, level)
			p.data = p.home
			s := p.serve()
			box := p.begin("", p.program, "box", "join", "--data", p.home+"/box", "--name", "here")
			p.until("the box is online", func() bool {
				if box.ended() {
					p.fatalf("the box ended: %s", box.lastLine())
				}
				return strings.Contains(s.do("", "box", "list"), "online")
			})
			secrets := quoted(p.home+"/box/identity.json", p.home+"/server/master.key")
			command, err := json.Marshal([]string{"/bin/sh", "-c", fmt.Sprintf(who, secrets)})
			p.must(err)
			s.do("", "call", "template.set", "name=who", "agent=command", "command="+string(command))
			id, _, _ := strings.Cut(s.do("", "task", "create", "--repo", "acme/widgets", "--template", "who",
				"Write down who you are"), "\n")
			watch := p.begin("", p.program, "task", "watch", id).watch(noSecondTry).wait()
			if lost := failure.FindStringSubmatch(watch.said()); lost != nil {
				p.fatalf("a run failed: %s", lost[1])
			}
			if watch.Code != 0 {
				p.fatalf("the task did not merge: exit code %d: %s", watch.Code, watch.lastLine())
			}
			bare, err := filepath.Glob(filepath.Join(p.home, "server", "git", "*", "widgets.git"))
			if err != nil || len(bare) != 1 {
				p.fatalf("the server's repository: %v, %v", bare, err)
			}
			if said := strings.TrimSpace(s.git(bare[0], "show", "main:who")); said != strconv.Itoa(nobody) {
				p.failf("the agent was not only the user %d: %q", nobody, said)
			}
			p.saysWhatIsolates(box.said())
			box.stop()
			if box.wait(); box.Identities != 1 {
				p.failf("%d identity files in the data, not one", box.Identities)
			}
		})
	}
}

// A machine whose agents cannot reach their work is refused before it becomes a box.
func TestJoinIsRefused(t *testing.T) {
	p := newPlace(t, root, landlock)
	s := p.serve()
	closed := p.private("c")
	inner := filepath.Join(closed, "i")
	p.must(os.Mkdir(inner, 0o755))
	var minted struct{ Token string }
	p.must(json.Unmarshal([]byte(s.do("", "call", "box.add", "name=closed")), &minted))
	p.env["YARDMASTER_ENROLL_TOKEN"] = minted.Token
	k := p.begin("", p.program, "box", "join", "--url", s.address, "--data", p.home+"/box", "--work",
		filepath.Join(inner, "w")).wait()
	said := strings.TrimSpace(k.stderr())
	switch {
	case k.Late:
		p.failf("it does not end")
	case k.Code != 1:
		first, _, _ := strings.Cut(said, "\n")
		p.failf("exit code %d, want 1: %s", k.Code, first)
	case strings.Contains(said, "\n") || len(regexp.MustCompile(`[.!?](\s|$)`).FindAllString(said, -1)) > 1:
		p.failf("it does not say one sentence: %s", said)
	case !names(said, closed) || !strings.Contains(said, "0700"):
		p.failf("it does not name the folder %s and its mode 0700: %s", closed, said)
	}
	if list := strings.TrimSpace(s.do("", "box", "list")); strings.Count(list, "closed") > 0 {
		p.failf("the box was enrolled: %s", list)
	}
	if _, err := box.Enroll(patience.Context(t), s.address, minted.Token, box.Info{Name: "closed", Slots: 1}); err != nil {
		p.failf("the enrollment token is no longer good: %v", err)
	}
}
