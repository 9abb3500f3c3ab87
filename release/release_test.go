package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sign "aead.dev/minisign"

	"yardmaster/internal/bundle"
	"yardmaster/internal/minisign"
)

// toy is a checkout whose program says its version and writes one page of a manual.
func toy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                         "module yardmaster\n\ngo 1.26.0\n",
		"LICENSE":                        "Apache\n",
		"README.md":                      "# Toy\n",
		"docs/docs.go":                   "package docs\n",
		"docs/install.md":                "# Install\n",
		"internal/web/dist/LICENSES.txt": "terms of pages\n",
		"cmd/yardmaster/main.go": "package main\n\nimport \"os\"\n\nvar version, revision string\n\nfunc main() {\n" +
			"\tif len(os.Args) > 2 {\n\t\tos.MkdirAll(os.Args[2], 0o755)\n\t\tos.WriteFile(os.Args[2]+\"/yardmaster.1\", []byte(\"page\"), 0o644)\n\t}\n" +
			"\tos.Stdout.WriteString(\"yardmaster \" + version + \" \" + revision + \"\\n\")\n}\n",
		"internal/proof/sbom/main.go": "package main\n\nimport \"os\"\n\nfunc main() {\n" +
			"\tos.WriteFile(os.Args[2], []byte(\"terms of modules\\n\"), 0o644)\n\tos.Stdout.WriteString(\"{}\\n\")\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"files", "chart"} {
		if err := os.CopyFS(filepath.Join(dir, "release", folder), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "all")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

// secretKey makes one without a password.
func secretKey(t *testing.T) (path string, public minisign.Key) {
	t.Helper()
	_, private, err := sign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := signer{private}
	if public, err = minisign.ParseKey(s.public()); err != nil {
		t.Fatal(err)
	}
	return path, public
}

var here = []string{"linux/amd64"}

// TestWholeRelease makes one twice: the same bytes, each file in the sums, each signed with its
// name and version, and the program signed as boxes want it.
func TestWholeRelease(t *testing.T) {
	t.Parallel()
	source := toy(t)
	key, public := secretKey(t)
	a, b := t.TempDir(), t.TempDir()
	for _, into := range []string{a, b} {
		r := release{checkout: checkout{source: source, version: "v1.2.3"}, into: into}
		if err := r.run(key, false, "", here); err != nil {
			t.Fatal(err)
		}
	}
	names := read(t, a)
	for _, want := range []string{
		"SHA256SUMS", "install.sh", "yardmaster-1.2.3-1.x86_64.rpm", "yardmaster-chart-1.2.3.tgz", "yardmaster-docs_1.2.3.tar.gz",
		"yardmaster_1.2.3-1_amd64.deb",
		"yardmaster_1.2.3_linux_amd64.cdx.json", "yardmaster_1.2.3_linux_amd64.tar.gz",
	} {
		signature, there := names[want+".minisig"]
		digest, err := minisign.Digest(bytes.NewReader(names[want]))
		if err != nil {
			t.Fatal(err)
		}
		said, err := minisign.Verify([]minisign.Key{public}, digest, string(signature))
		if !there || err != nil || said != "yardmaster file:"+want+" version:v1.2.3" {
			t.Errorf("%s: %v, %q", want, err, said)
		}
		if line := sum(names[want]) + "  " + want + "\n"; want != "SHA256SUMS" && !bytes.Contains(names["SHA256SUMS"], []byte(line)) {
			t.Errorf("the sums lack %q", line)
		}
	}
	other := read(t, b)
	for name, content := range names {
		if !bytes.Equal(content, other[name]) {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
	if len(names) != 16 || len(other) != 16 {
		t.Errorf("%d and %d files", len(names), len(other))
	}
	if !bytes.Contains(names["install.sh"], []byte(public.String())) {
		t.Error("install.sh does not trust the key")
	}
	inArchive(t, names["yardmaster_1.2.3_linux_amd64.tar.gz"], public)
	inBundle(t, a, public)
}

func inArchive(t *testing.T, archive []byte, public minisign.Key) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, "yardmaster_1.2.3_linux_amd64/")
		if !ok || h.Uid != 0 {
			t.Errorf("%+v", h)
		}
		members[name] = string(text)
	}
	digest, err := minisign.Digest(strings.NewReader(members["yardmaster"]))
	if err != nil {
		t.Fatal(err)
	}
	said, err := minisign.Verify([]minisign.Key{public}, digest, members["yardmaster.minisig"])
	if err != nil || said != "yardmaster channel:stable version:v1.2.3 target:linux/amd64 sha256:"+sum([]byte(members["yardmaster"])) {
		t.Errorf("%v, %q", err, said)
	}
	if members["LICENSES.txt"] != "terms of modules\nThe pages of the dashboard\n\nterms of pages\n" {
		t.Errorf("%q", members["LICENSES.txt"])
	}
	for _, want := range []string{"LICENSE", "README.md", "man/man1/yardmaster.1.gz", "yardmaster.service", "yardmaster.cdx.json"} {
		if members[want] == "" {
			t.Errorf("no %s", want)
		}
	}
}

// inBundle makes the bundle of a release, opens it, and finds the release and what boxes take of it.
func inBundle(t *testing.T, dir string, public minisign.Key) {
	t.Helper()
	path, into := filepath.Join(t.TempDir(), "b.tar"), filepath.Join(t.TempDir(), "open")
	if _, err := bundle.Make(dir, []minisign.Key{public}, path); err != nil {
		t.Fatal(err)
	}
	r, err := bundle.Open(path, []minisign.Key{public}, into, false)
	if err != nil {
		t.Fatal(err)
	}
	was, is := read(t, dir), read(t, into)
	for name, content := range was {
		if strings.HasSuffix(name, ".minisig") && name != "SHA256SUMS.minisig" {
			continue // the sums are signed, so this is
		}
		if !bytes.Equal(is[name], content) {
			t.Errorf("%s is another than before", name)
		}
	}
	if len(is) != len(was)/2+1 || r.Version != "v1.2.3" {
		t.Errorf("%d of %d files, %s", len(is), len(was), r.Version)
	}
	if programs, err := r.Programs(into); err != nil || len(programs) != 1 {
		t.Errorf("%v, %v", programs, err)
	}
}

func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if out[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestChangelog holds that a deb has the changelog that Debian wants, of the version that the package
// calls itself.
func TestChangelog(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.2.3", "v1.3.0-rc.1"} {
		b := built{folder: t.TempDir(), system: "linux", machine: "amd64"}
		b.program = filepath.Join(b.folder, "yardmaster")
		if err := os.WriteFile(b.program, []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := release{checkout: checkout{source: "..", version: version}, into: t.TempDir()}
		if err := r.pack(b, "deb", "/lib/systemd/system/"); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(b.folder, "packed-changelog.Debian.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unzipped)
		is := strings.TrimSuffix(strings.TrimPrefix(r.made[0], "yardmaster_"), "_amd64.deb")
		if err != nil || !strings.HasPrefix(string(text), "yardmaster ("+is+") ") {
			t.Errorf("%s: %v, %q", r.made[0], err, text)
		}
	}
}

// TestRefusals holds that nothing is made from what nobody could name afterwards.
func TestRefusals(t *testing.T) {
	t.Parallel()
	source := toy(t)
	key, _ := secretKey(t)
	into := filepath.Join(t.TempDir(), "dist")
	refused := func(c checkout, key, want string) {
		t.Helper()
		c.source = source
		r := release{checkout: c, into: into}
		if err := r.run(key, false, "", here); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, not %q", c, err, want)
		}
		if made, _ := os.ReadDir(into); len(made) > 1 {
			t.Errorf("%d files were made", len(made))
		}
	}
	refused(checkout{}, key, "no tag")
	refused(checkout{version: "1.2"}, key, "no version such as")
	refused(checkout{version: "v1.2.3+mine"}, key, "no version such as")
	refused(checkout{version: "v1.2.3"}, "", "is signed")
	refused(checkout{version: "v1.2.3"}, filepath.Join(source, "LICENSE"), "the secret key")
	r := release{checkout: checkout{source: source, version: "v1.2.3"}, into: into}
	if err := r.run(key, false, t.TempDir(), here); err == nil || !strings.Contains(err.Error(), "no image can be made for linux/amd64") {
		t.Errorf("without bases: %v", err)
	}
	if made, _ := os.ReadDir(into); len(made) > 0 {
		t.Errorf("%d files were made without bases", len(made))
	}
	if err := errors.Join(os.MkdirAll(into, 0o755), os.WriteFile(filepath.Join(into, "old"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	refused(checkout{version: "v1.2.3"}, key, "is not empty")
	if err := os.WriteFile(filepath.Join(source, "new.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(checkout{version: "v1.2.3"}, key, "has changes, so its version")
}

// TestCheckoutChangesMeanwhile holds that nothing is signed if somebody works in the checkout while a
// release is made of it.
func TestCheckoutChangesMeanwhile(t *testing.T) {
	t.Parallel()
	source := toy(t)
	key, _ := secretKey(t)
	bill := filepath.Join(source, "internal/proof/sbom/main.go")
	text, err := os.ReadFile(bill)
	if err != nil {
		t.Fatal(err)
	}
	// The checkout's own programs run while it is built.
	text = bytes.Replace(text, []byte("func main() {"), []byte("func main() {\n\tos.WriteFile(\"new\", nil, 0o644)"), 1)
	if err := os.WriteFile(bill, text, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, source, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qam", "changes itself")
	r := release{checkout: checkout{source: source, version: "v1.2.3"}, into: t.TempDir()}
	if err := r.run(key, false, "", here); err == nil || !strings.Contains(err.Error(), "has changes") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(r.into, "SHA256SUMS")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has sums: %v", err)
	}
}

// TestVersions holds where a version comes from, and that a trial cannot pass for a release.
func TestVersions(t *testing.T) {
	t.Parallel()
	source := toy(t)
	git(t, source, "tag", "v2.0.0-rc.1")
	var got []string
	for _, c := range []checkout{{}, {version: "v2.0.0"}, {dirty: true}, {dirty: true, version: "v2.0.0"}} {
		c.source = source
		if err := c.identify(); err != nil {
			t.Fatal(err)
		}
		got = append(got, c.version)
	}
	if want := []string{"v2.0.0-rc.1", "v2.0.0", "v2.0.0-rc.1.dirty", "v2.0.0-dirty"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
