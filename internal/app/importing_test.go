package app

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/bundle"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/minisign"
)

// signedAs is a file's signature as a release has it.
func signedAs(t *testing.T, by ed25519.PrivateKey, text []byte, comment string) []byte {
	t.Helper()
	digest, err := minisign.Digest(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(minisign.Sign(by, digest, comment), "\n")
	return []byte("untrusted comment: " + bundle.Untrusted + "\n" + rest)
}

// bundled makes a bundle of a release of two targets.
func bundled(t *testing.T, by ed25519.PrivateKey, version string) string {
	t.Helper()
	dir, sums := t.TempDir(), ""
	base := "yardmaster_" + strings.TrimPrefix(version, "v")
	put := func(name string, text []byte) {
		sum := sha256.Sum256(text)
		sums += hex.EncodeToString(sum[:]) + "  " + name + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("install.sh", []byte("#!/bin/sh\n"))
	put(strings.Replace(base, "_", "-docs_", 1)+".tar.gz", []byte("documents"))
	for _, target := range []string{"darwin/arm64", "linux/arm64"} {
		name, program := base+"_"+strings.ReplaceAll(target, "/", "_"), []byte("the program for "+target)
		sum := sha256.Sum256(program)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		w := tar.NewWriter(z)
		for _, f := range []struct {
			name string
			text []byte
		}{{"yardmaster", program}, {"yardmaster.minisig", signedAs(t, by, program,
			fmt.Sprintf("yardmaster channel:stable version:%s target:%s sha256:%x", version, target, sum))}} {
			err := w.WriteHeader(&tar.Header{Name: name + "/" + f.name, Mode: 0o755, Size: int64(len(f.text))})
			if _, err2 := w.Write(f.text); errors.Join(err, err2) != nil {
				t.Fatal(errors.Join(err, err2))
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		put(name+".tar.gz", packed.Bytes())
		put(name+".cdx.json", []byte("{}"))
	}
	text := signedAs(t, by, []byte(sums), bundle.Of(bundle.Sums, version))
	err := errors.Join(os.WriteFile(filepath.Join(dir, bundle.Sums), []byte(sums), 0o600),
		os.WriteFile(filepath.Join(dir, bundle.Sums+".minisig"), text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), base+".bundle.tar")
	if _, err := bundle.Make(dir, []minisign.Key{minisign.KeyOf(by.Public().(ed25519.PublicKey))}, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImportsBundle: the programs of a bundle come into the ledger, and nothing does of one that has
// another byte, or that somebody else has signed.
func TestImportsBundle(t *testing.T) {
	t.Parallel()
	by := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	path := bundled(t, by, "v1.2.3")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := path + ".changed"
	whole[len(whole)/2]++
	if err := os.WriteFile(changed, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := bundled(t, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize)), "v1.2.3")
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			cfg := *y.cfg
			cfg.ReleaseKeys = []string{minisign.KeyOf(by.Public().(ed25519.PublicKey)).String()}
			for bad, want := range map[string]string{changed: "is refused", stranger: "the signature is by another key"} {
				if got, err := ImportRelease(t.Context(), &cfg, bad); err == nil || !strings.Contains(err.Error(), want) || len(got) > 0 {
					t.Errorf("%v, %v", got, err)
				}
			}
			if got := y.targets(); got != "" {
				t.Errorf("it has %s", got)
			}
			for range 2 {
				if got, err := ImportRelease(t.Context(), &cfg, path); err != nil || len(got) != 2 || got[0].Version != "v1.2.3" {
					t.Fatalf("%+v, %v", got, err)
				}
				if got := y.targets(); got != "darwin/arm64 linux/arm64" {
					t.Errorf("it has %q", got)
				}
			}
		})
	}
}

// targets are those of the programs that boxes are handed.
func (y *yard) targets() string {
	var is struct {
		Data []struct{ Channel, Target string }
	}
	decode(y.t, y.send("GET", "/v1/runners/releases", y.owner, "").want(200), &is)
	var out []string
	for _, r := range is.Data {
		if r.Channel == "stable" {
			out = append(out, r.Target)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
