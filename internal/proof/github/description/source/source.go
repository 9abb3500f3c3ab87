// Package source fetches the documents that GitHub publishes about its API: the
// OpenAPI descriptions and the GraphQL schema. They come from the npm packages of the
// lock file, are checked against its SHA-512 sums, and are kept in .cache/github of
// the module. Nothing of them is committed. Node.js is not needed: without npm the
// packages are read from the addresses in the lock file.
package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed lock.json
var lockText []byte

// locked is a package of the lock file.
type locked struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Resolved  string   `json:"resolved"`
	Integrity string   `json:"integrity"`
	Files     []string `json:"files"` // those that are kept, without the folder "package/"
}

// maxPackage is how many bytes a package may have, packed.
const maxPackage = 64 << 20

// Dir is the folder in which documents are kept, and what is made of them. It begins
// at the module that holds the working directory.
func Dir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "github"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// File returns the path of a document, such as "api.github.com.json". It fetches the
// document's package if the cache lacks it. Several processes may ask at once.
func File(ctx context.Context, name string) (string, error) {
	var lock struct {
		Packages []locked `json:"packages"`
	}
	if err := json.Unmarshal(lockText, &lock); err != nil {
		return "", fmt.Errorf("read the lock file: %w", err)
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	for _, p := range lock.Packages {
		if slices.ContainsFunc(p.Files, func(f string) bool { return path.Base(f) == name }) {
			at := filepath.Join(dir, p.Version, name)
			return at, p.fetch(ctx, dir, at)
		}
	}
	return "", fmt.Errorf("the lock file has no document %s", name)
}

// All fetches every document that the cache lacks.
func All(ctx context.Context) error {
	for _, name := range []string{"api.github.com.json", "ghes-3.19.json", "schema.graphql"} {
		if _, err := File(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// fetch unpacks the files of a package below dir, unless the file at is there.
func (p locked) fetch(ctx context.Context, dir, at string) error {
	if _, err := os.Stat(at); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	door, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer door.Close()
	if err := syscall.Flock(int(door.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the cache: %w", err)
	}
	if _, err := os.Stat(at); err == nil {
		return nil // another process has fetched it meanwhile
	}
	packed, err := p.download(ctx)
	if err != nil {
		return fmt.Errorf("fetch %s %s: %w", p.Name, p.Version, err)
	}
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.Integrity {
		return fmt.Errorf("fetch %s %s: its sum is %s, the lock file says %s", p.Name, p.Version, got, p.Integrity)
	}
	return p.unpack(packed, filepath.Dir(at))
}

// download returns the bytes of the package. npm knows registries and credentials of
// this machine, so it is asked first.
func (p locked) download(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	packed, byNpm := p.pack(ctx)
	if byNpm == nil {
		return packed, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Resolved, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, errors.Join(err, byNpm)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answered %s", p.Resolved, answer.Status), byNpm)
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxPackage))
}

// pack has npm download the package.
func (p locked) pack(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "npm")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--pack-destination", dir, p.Name+"@"+p.Version)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w: %.500s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack left %d files: %w", len(found), err)
	}
	return os.ReadFile(found[0])
}

// unpack writes the files of the package into a folder, each whole or not at all.
func (p locked) unpack(packed []byte, into string) error {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	missing := len(p.Files)
	for archive := tar.NewReader(gz); missing > 0; {
		head, err := archive.Next()
		if err != nil {
			return fmt.Errorf("unpack %s: %w", p.Name, err)
		}
		if !slices.Contains(p.Files, strings.TrimPrefix(head.Name, "package/")) {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", head.Name, err)
		}
		if err := Write(filepath.Join(into, path.Base(head.Name)), text); err != nil {
			return err
		}
		missing--
	}
	return nil
}

// Write writes a file of the cache. Other processes see the whole text or no file.
func Write(at string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(at), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it was renamed
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), at)
}
