package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/proof/executable"
)

// nest makes folders inside each other with the modes, in a folder that everybody may
// enter, and returns the innermost.
func nest(t *testing.T, modes ...os.FileMode) (root, dir string) {
	t.Helper()
	root, err := os.MkdirTemp("", "reach-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir = root; len(modes) > 0; modes = modes[1:] {
		dir = filepath.Join(dir, "in")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, modes[0])); err != nil {
			t.Fatal(err)
		}
	}
	return root, dir
}

func TestClosedNamesTheFirstClosedFolder(t *testing.T) {
	for _, x := range []struct {
		modes []os.FileMode
		shut  int // the closed one, counted from 1; 0: none
	}{
		{[]os.FileMode{0o755, 0o711, 0o701}, 0},
		{[]os.FileMode{0o755, 0o700, 0o755}, 2},
		{[]os.FileMode{0o744, 0o700, 0o700}, 1}, // may be listed, not entered
		{[]os.FileMode{0o755, 0o755, 0o770}, 3},
	} {
		root, dir := nest(t, x.modes...)
		err := Closed(dir)
		var closed *ClosedError
		switch {
		case x.shut == 0 || !Separate():
			if err != nil {
				t.Errorf("%v: %v", x.modes, err)
			}
		case !errors.As(err, &closed) || closed.Path != root+strings.Repeat("/in", x.shut) || closed.Mode.Perm() != x.modes[x.shut-1] ||
			closed.For != dir:
			t.Errorf("%v: %v", x.modes, err)
		}
	}
	root, dir := nest(t, 0o755)
	program := filepath.Join(dir, "program")
	if err := executable.Write(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	var closed *ClosedError
	if err := Closed(program); Separate() && (!errors.As(err, &closed) || closed.Path != program ||
		!strings.Contains(closed.Error(), "cannot run "+program)) {
		t.Error(err)
	}
	if err := Closed(filepath.Join(root, "missing")); Separate() && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSandboxInAClosedFolderNamesIt holds that the error names the folder that the
// agents' user cannot enter, and not the one behind it, which that user sees as missing.
func TestSandboxInAClosedFolderNamesIt(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		root, dir := nest(t, 0o755, 0o700, 0o755)
		s := Spec{Level: l, Task: filepath.Join(dir, "task"), Home: filepath.Join(dir, "home"), Argv: []string{"/bin/true"}}
		if err := errors.Join(os.Mkdir(s.Task, 0o755), os.Mkdir(s.Home, 0o755)); err != nil {
			t.Fatal(err)
		}
		p, err := Start(t.Context(), s)
		if l == Bubblewrap || !Separate() { // the folders are mounted inside, or the agent's user owns them
			if err == nil {
				err = p.Wait()
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
		var closed *ClosedError
		if !errors.As(err, &closed) || closed.Path != root+"/in/in" || closed.Mode.Perm() != 0o700 {
			t.Fatalf("%v", err)
		}
		if want := "the user nobody (65534), whom agents run as, cannot enter " + root +
			"/in/in (mode 0700)"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	})
}

// TestProgramOfASpecIsTheShim holds that a program that only its owner may run cannot
// be the shim for another user, and that a copy can.
func TestProgramOfASpecIsTheShim(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		_, dir := nest(t, 0o755)
		text, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		s := folders(t, l, "exit 0")
		s.Program = filepath.Join(dir, "program")
		if err := executable.Write(s.Program, text, 0o700); err != nil {
			t.Fatal(err)
		}
		if p, err := Start(t.Context(), s); Separate() && err == nil {
			p.Kill()
			t.Error("another user ran a program of mode 0700")
		}
		if err := os.Chmod(s.Program, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := output(t, s); err != nil {
			t.Error(out, err)
		}
	})
}

// TestGivingAFolderLeadsNowhereElse holds that no file outside of a folder changes its
// owner while the folder is given to an agent, although another agent of the same user
// changes the contents meanwhile.
func TestGivingAFolderLeadsNowhereElse(t *testing.T) {
	if !Separate() {
		return // nothing is given to anybody
	}
	root := t.TempDir()
	victim, dir := filepath.Join(root, "victim"), filepath.Join(root, "task")
	for _, name := range []string{victim, dir} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(victim, "secret")
	if err := errors.Join(os.WriteFile(secret, nil, 0o600), os.Symlink(secret, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprintf("folder-%03d\xff\n", i))
		if err := errors.Join(os.Mkdir(name, 0o700), os.WriteFile(filepath.Join(name, "file"), nil, 0o400)); err != nil {
			t.Fatal(err)
		}
	}
	last := filepath.Join(dir, "last")
	if err := os.Mkdir(last, 0o755); err != nil {
		t.Fatal(err)
	}
	owner := func(name string) uint32 {
		info, err := os.Lstat(name)
		if err != nil {
			t.Error(err)
			return 0
		}
		return info.Sys().(*syscall.Stat_t).Uid
	}
	swapped := make(chan struct{})
	go func() { // as the other agent would
		defer close(swapped)
		for owner(dir) != nobody && !t.Failed() {
		}
		if err := errors.Join(os.Rename(last, last+".away"), os.Symlink(victim, last)); err != nil {
			t.Error(err)
		}
	}()
	if err := giveTo(nobody, dir); err != nil {
		t.Error(err)
	}
	<-swapped
	if owner(secret) != 0 {
		t.Error("a file outside was given away")
	}
	for _, name := range []string{"link", "folder-000\xff\n", "folder-299\xff\n/file", "last.away"} {
		if owner(filepath.Join(dir, name)) != nobody {
			t.Errorf("%q was not given", name)
		}
	}
}
