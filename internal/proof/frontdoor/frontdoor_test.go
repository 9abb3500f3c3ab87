package frontdoor

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/proof/cache"
	"yardmaster/internal/proof/patience"
)

const root = "../../.."

// TestContributing holds that a newcomer can do exactly what CONTRIBUTING says.
func TestContributing(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := blocks(string(page), "Adding an endpoint")
	if err != nil {
		t.Fatalf("CONTRIBUTING.md: %v", err)
	}
	tree := copied(t)
	ctx := patience.Context(t)
	files, commands := 0, 0
	for _, b := range steps {
		switch {
		case len(b.info) == 1 && b.info[0] == "sh":
			for command := range strings.Lines(b.text) {
				commands++
				run(ctx, t, tree, b.line, strings.TrimSpace(command))
			}
		case len(b.info) >= 2:
			files++
			path := filepath.Join(tree, filepath.FromSlash(b.info[1]))
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("CONTRIBUTING.md:%d: %v", b.line, err)
			}
			after, err := b.put(string(text))
			if err != nil {
				t.Fatalf("CONTRIBUTING.md: %v", err)
			}
			if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("CONTRIBUTING.md:%d: the fence does not name the file that the block is for", b.line)
		}
	}
	if files < 4 || commands < 3 {
		t.Errorf("the page has %d changes and %d commands: the example is gone", files, commands)
	}
}

// run runs a command of the page, which must succeed.
func run(ctx context.Context, t *testing.T, tree string, line int, command string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath", "PWD="+tree)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = patience.Of(t)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%s: %v", command, time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		t.Fatalf("CONTRIBUTING.md:%d: %s: %v\n%s", line, command, err, out)
	}
}

// copied returns a copy of the tree. It is always in the same place, whichever clone it
// is of, so that what was compiled can be used again.
func copied(t *testing.T) string {
	t.Helper()
	from, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	home, err := cache.Dir("frontdoor")
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(home, "tree")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	// Only one test at a time uses the copy.
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(tree); err != nil {
			t.Error(err)
		}
		lock.Close()
	})
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (rel != "." && strings.HasPrefix(name, ".") || name == "node_modules" || rel == "dist"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(tree, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > 8<<20 { // skips programs that were built
			return err
		}
		return os.WriteFile(filepath.Join(tree, rel), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
