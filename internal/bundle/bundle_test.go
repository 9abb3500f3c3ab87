package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/minisign"
)

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func keysOf(seed byte) []minisign.Key {
	return []minisign.Key{minisign.KeyOf(private(seed).Public().(ed25519.PublicKey))}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sealed writes the sums of the files, and their signature, into a folder.
func sealed(t *testing.T, dir, version string, seed byte, names ...string) {
	t.Helper()
	var sums strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		sum := sha256.Sum256(text)
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	digest, err := minisign.Digest(strings.NewReader(sums.String()))
	must(t, err)
	_, rest, _ := strings.Cut(minisign.Sign(private(seed), digest, Of(Sums, version)), "\n")
	must(t, os.WriteFile(filepath.Join(dir, Sums), []byte(sums.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, signature), []byte("untrusted comment: "+Untrusted+"\n"+rest), 0o600))
}

var files = []string{
	"install.sh", "yardmaster-docs_1.2.3.tar.gz", "yardmaster_1.2.3_linux_arm64.cdx.json", "yardmaster_1.2.3_linux_arm64.tar.gz",
}

// folder is one of a release, signed by the key of 1.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release")
	must(t, os.Mkdir(dir, 0o755))
	for _, name := range names {
		text := []byte("this is " + name + "\n")
		if name == files[3] {
			text = archive(t, "yardmaster_1.2.3_linux_arm64")
		}
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	sealed(t, dir, "v1.2.3", 1, names...)
	return dir
}

func archive(t *testing.T, base string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range []string{"README.md", "yardmaster", "yardmaster.minisig"} {
		must(t, w.WriteHeader(&tar.Header{Name: base + "/" + name, Mode: 0o644, Size: int64(len(name))}))
		_, err := w.Write([]byte(name))
		must(t, err)
	}
	must(t, errors.Join(w.Close(), z.Close()))
	return out.Bytes()
}

func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.tar")
	_, err := Make(folder(t, files...), keysOf(1), path)
	must(t, err)
	return path
}

// A bundle has the release that it was made of, and what boxes run; it is of the version of its
// signature, and an older one than the program that opens it is refused, unless that is wanted.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	path := made(t)
	if is, err := Is(path); !is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
	into := filepath.Join(t.TempDir(), "open")
	if _, err := open(path, keysOf(1), into, "v1.3.0"); err == nil || !strings.Contains(err.Error(), "older than this program, v1.3.0") {
		t.Errorf("an older one: %v", err)
	}
	if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has left something: %v", err)
	}
	for _, own := range []string{"", "dev", "v1.2.3", "v1.2.2"} {
		into := filepath.Join(t.TempDir(), "open")
		r, err := open(path, append(keysOf(2), keysOf(1)...), into, own)
		if err != nil || r.Version != "v1.2.3" || len(r.Files) != len(files) {
			t.Fatalf("%+v, %v", r, err)
		}
		if text, err := os.ReadFile(filepath.Join(into, "install.sh")); string(text) != "this is install.sh\n" {
			t.Errorf("%q, %v", text, err)
		}
		programs, err := r.Programs(into)
		if err != nil || len(programs) != 1 {
			t.Fatalf("%q, %v", programs, err)
		}
		for _, name := range []string{"", ".minisig"} {
			if text, err := os.ReadFile(programs[0] + name); string(text) != "yardmaster"+name {
				t.Errorf("%q, %v", text, err)
			}
		}
		if _, err := open(path, keysOf(1), into, own); err == nil || !strings.Contains(err.Error(), "no empty folder") {
			t.Errorf("into a folder with files: %v", err)
		}
	}
}

// No byte of a bundle can be another (tried: each that is not zero, and some of the rest), none can
// lack and none be more, and nothing of such a one is written.
func TestEveryByteIsSigned(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(made(t))
	must(t, err)
	path, into := filepath.Join(t.TempDir(), "b.tar"), filepath.Join(t.TempDir(), "open")
	refused := func(what string, text []byte) {
		t.Helper()
		must(t, os.WriteFile(path, text, 0o600))
		if _, err := open(path, keysOf(1), into, ""); err == nil || !strings.HasPrefix(err.Error(), path+" is refused: ") {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s has left something: %v", what, err)
		}
	}
	for i := range whole {
		if whole[i] == 0 && i%17 > 0 { // most of it is room between files
			continue
		}
		whole[i] ^= 1
		refused(fmt.Sprintf("byte %d of %d", i, len(whole)), whole)
		whole[i] ^= 1
	}
	refused("without its end", whole[:len(whole)-512])
	refused("with a byte more", append(bytes.Clone(whole), 0))
	refused("twice", append(bytes.Clone(whole), whole...))
	refused("empty", nil)
	must(t, os.WriteFile(path, whole, 0o600))
	if _, err := Check(path, keysOf(1)); err != nil {
		t.Fatal(err)
	}
}

// What is refused is named.
func TestRefusals(t *testing.T) {
	t.Parallel()
	write := func(dir, name, text string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	says := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	path := made(t)
	_, err := Check(path, keysOf(2))
	says("the signature of SHA256SUMS does not hold: the signature is by another key", err)
	_, err = Make(folder(t, files...), keysOf(1), path)
	says("file exists", err)

	into := filepath.Join(t.TempDir(), "b.tar")
	for _, c := range []struct {
		want   string
		change func(dir string)
	}{
		{"install.sh is not what was signed", func(dir string) { write(dir, "install.sh", "x") }},
		{"install.sh: no such file", func(dir string) { must(t, os.Remove(filepath.Join(dir, "install.sh"))) }},
		{"signature of SHA256SUMS does not hold", func(dir string) { write(dir, Sums, "") }},
		{"has no yardmaster-docs_1.2.3.tar.gz", func(dir string) { sealed(t, dir, "v1.2.3", 1, files[0], files[2], files[3]) }},
		{"has no yardmaster_1.2.3_linux_arm64.cdx.json", func(dir string) { sealed(t, dir, "v1.2.3", 1, files[0], files[1], files[3]) }},
		{"has no program", func(dir string) { sealed(t, dir, "v1.2.3", 1, files[0], files[1]) }},
		{"is no release", func(dir string) { sealed(t, dir, "", 1, files...) }},
		{"signature of SHA256SUMS does not hold", func(dir string) { sealed(t, dir, "v1.2.3", 2, files...) }},
		{`a path outside: "../outside"`, func(dir string) {
			write(dir, "../outside", "x")
			sealed(t, dir, "v1.2.3", 1, append(files, "../outside")...)
		}},
		{"names install.sh twice", func(dir string) { sealed(t, dir, "v1.2.3", 1, append(files, files[0])...) }},
	} {
		dir := folder(t, files...)
		c.change(dir)
		_, err := Make(dir, keysOf(1), into)
		says(c.want, err)
		if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: it has left something: %v", c.want, err)
		}
	}
}

// A file with a path outside is refused by the name that it has in the tar, whatever the sums say.
func TestPathsOutside(t *testing.T) {
	t.Parallel()
	dir := folder(t, files...)
	r := Release{Version: "v1.2.3"}
	for _, outside := range []*tar.Header{
		{Name: "yardmaster_1.2.3/../../outside", Typeflag: tar.TypeReg},
		{Name: "/etc/outside", Typeflag: tar.TypeReg},
		{Name: "yardmaster_1.2.3/install.sh", Typeflag: tar.TypeSymlink, Linkname: "/etc/outside"},
	} {
		path, into := filepath.Join(t.TempDir(), "b.tar"), filepath.Join(t.TempDir(), "open")
		f, err := os.Create(path)
		must(t, err)
		w := tar.NewWriter(f)
		must(t, errors.Join(r.add(w, dir, Sums), r.add(w, dir, signature), w.WriteHeader(outside), w.Close(), f.Close()))
		_, err = open(path, keysOf(1), into, "")
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it has %q where yardmaster_1.2.3/install.sh belongs", outside.Name)) {
			t.Errorf("%v", err)
		}
	}
}
