package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is one that install.sh runs on, with the programs that it may use and no others.
type machine struct {
	t         *testing.T
	bin, into string
	from      string // address of the releases
	home      string // where the script is run
}

// tools are what install.sh wants of a machine, beside what checks a signature.
var tools = []string{
	"sh", "curl", "tar", "gzip", "sha256sum", "base64", "cat", "chmod", "cp", "cut", "grep", "head", "mkdir", "mktemp", "mv", "rm", "sed",
	"sort", "tail", "tr", "uname", "wc",
}

func newMachine(t *testing.T, from string, judges ...string) machine {
	t.Helper()
	m := machine{t: t, bin: t.TempDir(), into: t.TempDir(), from: from, home: t.TempDir()}
	for _, name := range append(judges, tools...) {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// install runs the script of a release against the files of a folder.
func (m machine) install(script, folder string, args ...string) (string, error) {
	cmd := exec.Command("sh", append([]string{script, m.from + folder, m.into}, args...)...)
	cmd.Dir, cmd.Env = m.home, []string{"PATH=" + m.bin, "HOME=" + m.home, "TMPDIR=" + m.t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m machine) installs(script, folder, want string) {
	m.t.Helper()
	if out, err := m.install(script, folder); err != nil || !strings.Contains(out, want) {
		m.t.Errorf("%s: %v: %s", folder, err, out)
	}
}

func (m machine) refuses(script, folder, want string, args ...string) {
	m.t.Helper()
	before, _ := os.ReadFile(filepath.Join(m.into, "yardmaster"))
	out, err := m.install(script, folder, args...)
	if err == nil || !strings.Contains(out, want) {
		m.t.Errorf("%s: %v: %q, not %q", folder, err, out, want)
	}
	if after, _ := os.ReadFile(filepath.Join(m.into, "yardmaster")); string(before) != string(after) {
		m.t.Errorf("%s changed what is installed", folder)
	}
}

// TestInstall installs, takes a newer release, and refuses what is not what was asked for: by
// openssl, as on a machine that has no minisign.
func TestInstall(t *testing.T) {
	t.Parallel()
	source := toy(t)
	key, _ := secretKey(t)
	foreign, _ := secretKey(t)
	all := t.TempDir()
	for folder, by := range map[string]string{"v1.2.3": key, "v1.3.0-rc.1": key, "v1.3.0": key, "v9.0.0": foreign} {
		r := release{checkout: checkout{source: source, version: folder}, into: filepath.Join(all, folder)}
		if err := r.run(by, false, "", here); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"changed", "resummed"} {
		if err := os.CopyFS(filepath.Join(all, folder), os.DirFS(filepath.Join(all, "v1.3.0"))); err != nil {
			t.Fatal(err)
		}
	}
	appended(t, filepath.Join(all, "changed/yardmaster_1.3.0_linux_amd64.tar.gz"))
	appended(t, filepath.Join(all, "resummed/SHA256SUMS"))
	server := httptest.NewServer(http.FileServerFS(os.DirFS(all)))
	t.Cleanup(server.Close)

	script := func(version string) string { return filepath.Join(all, version, "install.sh") }
	m := newMachine(t, server.URL+"/", "openssl")
	m.refuses(script("v1.3.0"), "changed", "tar.gz is not what was signed")
	m.refuses(script("v1.3.0"), "resummed", "signature of SHA256SUMS does not hold")
	m.refuses(script("v1.3.0"), "v9.0.0", "signature of SHA256SUMS does not hold", "v9.0.0")
	m.refuses(script("v1.3.0"), "v1.2.3", "is no release v1.3.0")
	m.refuses(script("v1.3.0"), "nowhere", "cannot fetch")
	m.installs(script("v1.2.3"), "v1.2.3", "yardmaster v1.2.3")
	m.installs(script("v1.3.0-rc.1"), "v1.3.0-rc.1", "yardmaster v1.3.0-rc.1")
	m.installs(script("v1.3.0"), "v1.3.0", "yardmaster v1.3.0")
	m.installs(script("v1.3.0"), "v1.3.0", "yardmaster v1.3.0")
	m.refuses(script("v1.2.3"), "v1.2.3", "v1.3.0 is installed, which is newer")
	m.refuses(script("v1.3.0"), "v1.3.0-rc.1", "v1.3.0 is installed, which is newer", "v1.3.0-rc.1")
	m.into = "bin" // beside where the script is run
	m.installs(script("v1.3.0"), "v1.3.0", "yardmaster v1.3.0")
	if _, err := os.Stat(filepath.Join(m.home, "bin/yardmaster")); err != nil {
		t.Error(err)
	}

	bare := newMachine(t, server.URL+"/")
	bare.refuses(script("v1.3.0"), "v1.3.0", "minisign or openssl is needed")

	cut := newMachine(t, all+"/", "openssl") // off, with the files in a folder
	if err := os.Remove(filepath.Join(cut.bin, "curl")); err != nil {
		t.Fatal(err)
	}
	cut.refuses(script("v1.3.0"), "changed", "tar.gz is not what was signed")
	cut.refuses(script("v1.3.0"), "nowhere", "cannot fetch")
	cut.installs(script("v1.3.0"), "v1.3.0", "yardmaster v1.3.0")
}

func appended(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
}
