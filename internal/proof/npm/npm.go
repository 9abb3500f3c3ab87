// Package npm fetches packages that a lock file names, by npm, whose configuration says
// where from. Each is checked against the lock file's SHA-512 sum. What is in them runs
// without Node.js.
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
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/proof/cache"
)

// Package is a package of a lock file.
type Package struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Integrity string   `json:"integrity"` // "sha512-" and the sum of its archive in base64
	Files     []string `json:"files"`     // those that are used, without the folder "package/"; all if empty
}

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

// Cache is the folder in the user's cache for what a lock file names. Another lock file of
// the same name, of another clone, has a folder of its own.
func Cache(name string, lock []byte) (string, error) {
	return cache.Dir(fmt.Sprintf("%s-%.6x", name, sha512.Sum512(lock)))
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

// tries is how often a package is asked for. A registry that stumbles once refuses nobody.
const tries = 3

// download returns the bytes of the package.
func (p Package) download(ctx context.Context) ([]byte, error) {
	var errs []error
	for range tries {
		packed, err := p.pack(ctx)
		if err == nil {
			return packed, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil || errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// pack has npm download the package.
func (p Package) pack(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
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
