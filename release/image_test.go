package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImages makes both, and holds what is in them: the base, the program on it, a user that is no
// root, and of the server a check that needs no login.
func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "yardmaster")
	base, err := packed([]entry{{name: "usr/bin/git", mode: 0o755, content: []byte("git")}}, time.Unix(0, 0))
	if err := errors.Join(err, os.WriteFile(program, []byte("program"), 0o644), os.WriteFile(filepath.Join(dir, "base.tar"), base, 0o644)); err != nil {
		t.Fatal(err)
	}
	r := release{checkout: checkout{version: "v1.2.3", commit: "abc", at: time.Unix(1700000000, 0).UTC()}, into: dir}
	for _, kind := range []string{"server", "box"} {
		b := built{folder: dir, system: "linux", machine: "arm64", program: program, terms: []byte("terms")}
		if err := r.image(b, kind, filepath.Join(dir, "base.tar")); err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(filepath.Join(dir, "yardmaster-"+kind+"_1.2.3_arm64.image.tar"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img); err != nil {
			t.Error(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if config.Architecture != "arm64" || c.User != "65532:65532" || c.Labels["org.opencontainers.image.version"] != "v1.2.3" ||
			(c.Healthcheck != nil) != (kind == "server") {
			t.Errorf("%s: %+v", kind, config)
		}
		if kind == "server" && !slices.Equal(c.Healthcheck.Test, []string{"CMD", "yardmaster", "doctor", "--address", "http://127.0.0.1:8080"}) {
			t.Errorf("%q", c.Healthcheck.Test)
		}
		found := map[string]int{}
		files := mutate.Extract(img)
		for tr := tar.NewReader(files); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found[h.Name] = h.Uid
		}
		files.Close()
		for name, owner := range map[string]int{"usr/bin/git": 0, "usr/bin/yardmaster": 0, "data": user, "usr/share/doc/yardmaster/LICENSES.txt": 0} {
			if is, there := found[name]; !there || is != owner {
				t.Errorf("%s: %s is of %d (%v), not of %d", kind, name, is, there, owner)
			}
		}
	}
}

// TestComposePublishes holds that people and boxes reach what the image of the server listens at.
func TestComposePublishes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("files/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r release
	for port := range r.config("server").ExposedPorts {
		port, _, _ = strings.Cut(port, "/")
		if !strings.Contains(string(text), `"127.0.0.1:`+port+":"+port+`"`) {
			t.Errorf("the port %s is not published", port)
		}
	}
}
