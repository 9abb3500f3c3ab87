//go:build walk

package main

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

var bare = flag.String("bare", "", "tar of a bare Debian with git, bubblewrap, curl, minisign and openssl, as scripts/walk makes it")

const (
	before, after = "v0.1.0", "v0.2.0"
	site          = "http://10.77.0.1:8000/" // where releases are
	origin        = "http://10.77.0.1:8080"  // where the server is
	story         = "The tests of slug.sh fail: upper case letters and punctuation get through. Make them pass; do not change the tests."
)

// walk is one way of a release, from its files to its removal.
type walk struct {
	*testing.T
	began       time.Time
	all         string // folder of the releases
	key         string // by which they are signed
	server, far *station
	serving     *service
}

// TestWalk makes two releases of what is committed, the second with a newer schema, and walks both
// from end to end on two bare machines that reach each other and nothing else.
func TestWalk(t *testing.T) {
	if *bare == "" {
		t.Fatal("-bare says where the tar of a bare Debian is: scripts/walk makes one")
	}
	w := &walk{T: t, all: t.TempDir(), began: time.Now()}
	w.releases()
	w.server, w.far = stations(t, *bare)
	w.files()
	w.step("two machines are there")
	w.checks()
	w.bundles()
	w.install()
	w.serve()
	w.setUp()
	w.join()
	w.task("1")
	w.upgrade()
	w.task("2")
	w.downgrade()
	w.remove()
	for _, s := range []*station{w.server, w.far} {
		if n := s.strays(); n != "0" {
			t.Errorf("%s wanted to reach a machine outside %s times", s.space, n)
		}
	}
	w.step("nobody wanted to reach anything outside")
}

func (w *walk) step(what string) {
	w.Helper()
	if w.Failed() {
		w.FailNow()
	}
	w.Logf("%6.1f s  %s", time.Since(w.began).Seconds(), what)
}

// releases makes the two, and three that lie.
func (w *walk) releases() {
	w.Helper()
	key, public := secretKey(w.T)
	foreign, _ := secretKey(w.T)
	w.key = public.String()
	source := filepath.Join(w.TempDir(), "source")
	command(w.T, "git", "clone", "-q", "--shared", "..", source)
	schema := filepath.Join(source, "internal/db/migrations/9999_walk.sql")
	for _, version := range []string{before, after} {
		if version == after {
			w.must(os.WriteFile(schema, []byte("-- +goose Up\nCREATE TABLE walked (id BIGINT NOT NULL PRIMARY KEY);\n"), 0o644))
			git(w.T, source, "add", "-A")
			git(w.T, source, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a newer schema")
		}
		r := release{checkout: checkout{source: source, version: version}, into: filepath.Join(w.all, version)}
		targets := []string{"linux/" + runtime.GOARCH}
		if version == after {
			targets = append(targets, "darwin/arm64") // that boxes have something that is not the server's own program
		}
		w.must(r.run(key, false, "", targets))
		w.step("release " + version + " is made")
	}
	for _, liar := range []string{"changed", "foreign"} {
		w.must(os.CopyFS(filepath.Join(w.all, liar), os.DirFS(filepath.Join(w.all, after))))
	}
	appended(w.T, filepath.Join(w.all, "changed", w.archive(after)))
	other, err := openKey(foreign)
	w.must(err)
	sums, err := os.ReadFile(filepath.Join(w.all, after, "SHA256SUMS"))
	w.must(err)
	text, err := other.sign(sums, "yardmaster file:SHA256SUMS version:"+after)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.all, "foreign/SHA256SUMS.minisig"), text, 0o644))
}

func (w *walk) archive(version string) string {
	return "yardmaster_" + version[1:] + "_linux_" + runtime.GOARCH + ".tar.gz"
}

func (w *walk) deb(version string) string {
	return "/srv/yardmaster_" + version[1:] + "-1_" + runtime.GOARCH + ".deb"
}

func (w *walk) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// files serves the releases on the server's machine, by the program that runs this test.
func (w *walk) files() {
	w.Helper()
	program, err := os.Executable()
	w.must(err)
	text, err := os.ReadFile(program)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.server.root, "srv/files"), text, 0o755))
	w.server.copied(w.all, "srv/all")
	w.server.start("root", "env", "WALK_FILES=/srv/all", "/srv/files")
	w.server.until("SHA256SUMS", "root", "curl", "-fsS", site+before+"/")
}

// checks holds what install.sh takes and what it refuses: on one machine by minisign, on the other
// by openssl, since that has no minisign.
func (w *walk) checks() {
	w.Helper()
	w.must(os.Remove(filepath.Join(w.far.root, "usr/bin/minisign")))
	for _, s := range []*station{w.server, w.far} {
		for _, version := range []string{before, after} {
			s.run("root", "curl", "-fsS", "-o", "/root/"+version+".sh", site+version+"/install.sh")
		}
		script := func(version, from string) []string {
			return []string{"sh", "/root/" + version + ".sh", site + from, "/opt/y"}
		}
		s.refuses("tar.gz is not what was signed", "root", script(after, "changed")...)
		s.refuses("signature of SHA256SUMS does not hold", "root", script(after, "foreign")...)
		s.refuses("is no release "+after, "root", script(after, before)...)
		if _, err := os.Stat(filepath.Join(s.root, "opt/y")); !errors.Is(err, fs.ErrNotExist) {
			w.Errorf("a refused release left something: %v", err)
		}
		w.has(s.run("root", script(before, before)...), "yardmaster "+before)
		w.has(s.run("root", script(after, after)...), "yardmaster "+after)
		s.refuses(after+" is installed, which is newer", "root", script(before, before)...)
		w.has(s.run("root", "/opt/y/yardmaster", "version"), "yardmaster "+after)
	}
	w.step("install.sh: a changed archive, a foreign signature and older releases are refused, a newer one replaces an older")
}

func (w *walk) has(text, want string) {
	w.Helper()
	if !strings.Contains(text, want) {
		w.Errorf("%q, not %q", text, want)
	}
}

func (w *walk) bundle(version string) string { return "/srv/yardmaster_" + version[1:] + ".bundle.tar" }

// bundles makes one of each release on the server's machine, and carries them to the other, which
// opens the newer by hand, as one does that has no program yet, and then by the program.
func (w *walk) bundles() {
	w.Helper()
	for _, version := range []string{before, after} {
		w.has(w.server.run("root", "/opt/y/yardmaster", "bundle", "/srv/all/"+version, w.bundle(version), "--key", w.key), "is whole: the release "+version)
		text, err := os.ReadFile(filepath.Join(w.server.root, w.bundle(version)))
		w.must(err)
		w.must(os.WriteFile(filepath.Join(w.far.root, w.bundle(version)), text, 0o644))
		text[len(text)/2]++
		w.must(os.WriteFile(filepath.Join(w.far.root, "srv/changed.tar"), text, 0o644))
	}
	w.server.refuses("the signature of SHA256SUMS does not hold", "root", "/opt/y/yardmaster", "bundle", "/srv/all/foreign", "/srv/b.tar", "--key", w.key)
	w.server.run("root", "sh", "-c", "mkdir /srv/hand && cd /srv/hand && tar -xf "+w.bundle(after)+" && cd * && minisign -Vm SHA256SUMS -P "+w.key)
	w.has(w.far.run("root", "sh", "-c", "cd /srv && tar -xf "+w.bundle(after)+" && cd yardmaster_"+after[1:]+` && sha256sum -c SHA256SUMS && sh install.sh "$PWD" /opt/b`),
		"yardmaster "+after)
	program := func(args ...string) []string {
		return append(append([]string{"/opt/b/yardmaster", "bundle"}, args...), "--key", w.key)
	}
	w.far.refuses("which is older than this program", "root", program("open", w.bundle(before), "/srv/open")...)
	w.far.refuses("changed.tar is refused", "root", program("open", "/srv/changed.tar", "/srv/open")...)
	w.has(w.far.run("root", program("open", w.bundle(after), "/srv/open")...), filepath.Base(w.deb(after)))
	w.step("a release comes onto a machine in one file; a changed byte, a foreign signature and an older one are refused")
}

// install puts the package of the older release onto the server's machine, as its page says. The newer
// one comes out of its bundle.
func (w *walk) install() {
	w.Helper()
	s := w.server
	s.run("root", "sh", "-c", "cd /srv && curl -fsSO "+site+before+"/"+filepath.Base(w.deb(before))+" && curl -fsSO "+site+before+
		"/"+filepath.Base(w.deb(before))+".minisig && minisign -Vm "+w.deb(before)+
		` -P "$(sed -n 's/^key=.*:-\(.*\)}$/\1/p' /root/`+before+`.sh)"`)
	s.run("root", "/opt/y/yardmaster", "bundle", "open", w.bundle(after), "/srv/open", "--key", w.key)
	s.run("root", "cp", "/srv/open/"+filepath.Base(w.deb(after)), w.deb(after))
	s.run("root", "apt-get", "install", "-y", "-q", w.deb(before))
	w.has(s.run("root", "yardmaster", "version"), before)
	w.has(s.run("root", "getent", "passwd", "yardmaster", "yardmaster-box"), "/var/lib/yardmaster-box")
	s.write("/etc/yardmaster/yardmaster.yaml", "listen: 10.77.0.1:8080\nnats-listen: 10.77.0.1:4222\nscenario: /srv/scenario.yml\n"+
		"allow-http-keys: anywhere\nsetup-token: walk\nair-gapped: on\nrelease-keys: "+w.key+"\n")
	text, err := os.ReadFile("../internal/demo/scenario.yml")
	w.must(err)
	s.write("/srv/scenario.yml", string(text))
	w.step("the package is installed, and has started nothing")
}

var line = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)

// serve starts the server as its unit says. There is no systemd: what that would make is made here.
func (w *walk) serve() {
	w.Helper()
	unit, err := os.ReadFile(filepath.Join(w.server.root, "lib/systemd/system/yardmaster.service"))
	w.must(err)
	w.server.run("root", "install", "-d", "-m", "700", "-o", "yardmaster", "-g", "yardmaster", "/var/lib/yardmaster")
	w.serving = w.server.start("yardmaster", strings.Fields(string(line.FindSubmatch(unit)[1]))...)
	w.server.until("", "root", "yardmaster", "doctor", "--address", origin)
	w.step("the server is ready, as its unit starts it")
}

// me is who works on the server's machine.
func (w *walk) me(args ...string) string {
	w.Helper()
	return w.server.run("yardmaster", append([]string{"yardmaster"}, args...)...)
}

func (w *walk) setUp() {
	w.Helper()
	w.server.fed("yardmaster", "correct horse battery\ncorrect horse battery\n", "yardmaster", "setup", "--url", origin, "--token", "walk",
		"--login", "ada", "--email", "ada@example.com", "--account", "acme")
	w.server.copied("../internal/demo/sample", "srv/sample")
	w.server.run("yardmaster", "sh", "-c", "cp -r /srv/sample slug && cd slug && chmod +x *.sh && git init -q -b main && git add -A && "+
		"git -c user.name=a -c user.email=a@example.com commit -qm sample && yardmaster repo add . && echo x | yardmaster key add --provider scripted")
	w.step("it is set up, with a repository and a key")
}

// join runs the one line of `box enroll` on a machine that has no program.
func (w *walk) join() {
	w.Helper()
	w.far.run("root", "useradd", "--create-home", "--home-dir", "/var/lib/worker", "worker")
	began := time.Now()
	var one string
	for l := range strings.Lines(w.me("box", "enroll")) {
		if strings.Contains(l, "/join") {
			one = strings.TrimSpace(l)
		}
	}
	w.far.start("worker", "sh", "-c", one).says("box started")
	w.server.until("online", "yardmaster", "yardmaster", "box", "list")
	w.step("the one line makes a box of the other machine")
	if took := time.Since(began); took > time.Minute {
		w.Errorf("it took %v, and not at most a minute", took)
	}
	isolation := w.me("box", "list", "--json", "isolation")
	w.has(isolation, "bubblewrap")
	w.has(w.far.run("worker", "/var/lib/worker/.local/bin/yardmaster", "version"), before)
}

// task has an agent of the box make a pull request.
func (w *walk) task(name string) {
	w.Helper()
	w.me("task", "create", "--repo", "acme/slug", "--title", "walk "+name, story)
	w.server.until("awaiting_review", "yardmaster", "yardmaster", "task", "view", "@last")
	w.step("a task of it awaits review")
}

func (w *walk) upgrade() {
	w.Helper()
	w.serving.stop()
	w.server.run("root", "apt-get", "install", "-y", "-q", w.deb(after))
	w.serve()
	w.serving.says("schema migrated")
	w.has(w.me("task", "list"), "walk 1")
	w.server.until("online", "yardmaster", "yardmaster", "box", "list")
	w.step("the server is upgraded, has its data, and the box is back")
	w.has(w.me("release", "import", w.bundle(after), "--config", "/etc/yardmaster/yardmaster.yaml", "--data", "/var/lib/yardmaster"), "for darwin/arm64")
	w.has(w.me("call", "box.releases", "--jq", ".data[] | .channel + .target"), "stabledarwin/arm64")
	w.has(w.server.run("yardmaster", "sh", "-c", "yardmaster box enroll | grep /join | sed 's/| sh *$//' | sh"), "Darwin/arm64) from=")
	w.me("box", "pin", "account", "--channel", "stable")
	w.has(w.me("box", "update", "--channel", "stable", "--soak", "1s", "--watch"), "Started to bring 1 box to "+after)
	w.has(w.me("box", "list", "--json", "presence"), after)
	w.step("the box has the new program as well, out of the bundle")
}

// downgrade is refused by apt, and by the program if somebody insists.
func (w *walk) downgrade() {
	w.Helper()
	w.serving.stop()
	w.server.refuses("downgraded", "root", "apt-get", "install", "-y", "-q", w.deb(before))
	w.server.run("root", "dpkg", "-i", w.deb(before))
	w.has(w.server.run("root", "yardmaster", "version"), before)
	w.server.refuses("which yardmaster "+after+" made", "yardmaster", "yardmaster", "serve", "--config", "/etc/yardmaster/yardmaster.yaml", "--data", "/var/lib/yardmaster")
	w.server.run("root", "apt-get", "install", "-y", "-q", w.deb(after))
	w.serve()
	w.has(w.me("task", "list"), "walk 2")
	w.step("the older program refuses the data, and the newer one still has them")
}

func (w *walk) remove() {
	w.Helper()
	w.serving.stop()
	for _, how := range []string{"remove", "purge"} {
		w.server.run("root", "apt-get", how, "-y", "-q", "yardmaster")
		for name, there := range map[string]bool{
			"usr/bin/yardmaster": false, "lib/systemd/system/yardmaster.service": false,
			"var/lib/yardmaster/yardmaster.db": true, "var/lib/yardmaster/master.key": true, "var/lib/yardmaster/git": true,
			"etc/yardmaster/yardmaster.yaml": true,
		} {
			if _, err := os.Stat(filepath.Join(w.server.root, name)); (err == nil) != there {
				w.Errorf("after %s: %s: %v", how, name, err)
			}
		}
	}
	w.step("the package is removed and purged, the data are kept")
}
