// Package npm fetches packages of the npm registry that a lock file names. Each is
// checked against the lock file's SHA-512 sum. Node.js is not needed: without npm
// the packages are read from the addresses in the lock file.
package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
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
	"strings"
	"syscall"
	"time"
)

// Package is a package of a lock file.
type Package struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Resolved  string   `json:"resolved"`  // the address of its archive
	Integrity string   `json:"integrity"` // "sha512-" and the sum of its archive in base64
	Files     []string `json:"files"`     // those that are used, without the folder "package/"; all if empty
}

// maxPackage is how many bytes a package may have, packed.
const maxPackage = 64 << 20

// Parse reads a lock file.
func Parse(text []byte) ([]Package, error) {
	var lock struct {
		Packages []Package `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	return lock.Packages, nil
}

// Cache is a folder of that name in .cache of the module that holds the working
// directory.
func Cache(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", name), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// Alone runs do while no other process runs one with the same folder.
func Alone(dir string, do func() error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
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
	return do()
}

// Each fetches the package and calls do with each file of it that is used: its name
// without the folder "package/", whether it may be executed, and its text.
func (p Package) Each(ctx context.Context, do func(name string, program bool, text []byte) error) error {
	packed, err := p.download(ctx)
	if err != nil {
		return fmt.Errorf("fetch %s %s: %w", p.Name, p.Version, err)
	}
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.Integrity {
		return fmt.Errorf("fetch %s %s: its sum is %s, the lock file says %s", p.Name, p.Version, got, p.Integrity)
	}
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, name := range p.Files {
		left[name] = true
	}
	for archive := tar.NewReader(gz); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", p.Name, err)
		}
		_, name, _ := strings.Cut(path.Clean(head.Name), "/")
		if head.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || len(p.Files) > 0 && !left[name] {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", head.Name, err)
		}
		if err := do(name, head.Mode&0o100 != 0, text); err != nil {
			return err
		}
		delete(left, name)
	}
	for name := range left {
		return fmt.Errorf("unpack %s %s: there is no %s", p.Name, p.Version, name)
	}
	return nil
}

// Unpack writes the package to the folder of its name in a folder of modules, unless that
// version is there. The caller keeps other processes away (Alone).
func (p Package) Unpack(ctx context.Context, modules string) error {
	into := filepath.Join(modules, p.Name)
	mark := filepath.Join(into, ".integrity")
	if had, err := os.ReadFile(mark); err == nil && string(had) == p.Integrity {
		return nil
	}
	if err := os.RemoveAll(into); err != nil {
		return err
	}
	err := p.Each(ctx, func(name string, program bool, text []byte) error {
		at := filepath.Join(into, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if program {
			mode = 0o755
		}
		return os.WriteFile(at, text, mode)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(p.Integrity), 0o644)
}

// download returns the bytes of the package. npm knows registries and credentials of
// this machine, so it is asked first.
func (p Package) download(ctx context.Context) ([]byte, error) {
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
func (p Package) pack(ctx context.Context) ([]byte, error) {
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

// Write writes a file of a cache. Other processes see the whole text or no file.
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
