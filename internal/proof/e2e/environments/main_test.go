//go:build environments

package environments

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	built "yardmaster/internal/proof/program"
)

var (
	ctx     context.Context // ends when the suite is interrupted, after which the cleanups still run
	suite   string          // folder that every user can pass through
	program string          // the built binary
	self    string          // this test binary, where every user can run it
	// paths are values of PATH by what they lack: nothing, bwrap, or git as well.
	paths = map[string]string{}
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case keepCommand:
			os.Exit(keep(os.Args[2]))
		case enterCommand:
			os.Exit(enter(os.Args[2]))
		}
	}
	flag.Parse()
	if !explicit("test.parallel") {
		// Rows have time limits, which a small machine must meet.
		if err := flag.Set("test.parallel", "2"); err != nil {
			panic(err)
		}
	}
	os.Exit(run(m))
}

func explicit(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

func run(m *testing.M) int {
	var stop context.CancelFunc
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	syscall.Umask(0o022)
	err := needs()
	if err == nil {
		suite, err = os.MkdirTemp("", "ym")
	}
	if err == nil {
		defer os.RemoveAll(suite)
		err = prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "environments:", err)
		return 1
	}
	return m.Run()
}

// needs names the tools that this machine lacks.
func needs() error {
	tools := []string{"git", "bwrap", "useradd", "userdel", "su", "unshare", "mount", "ip"}
	if os.Getenv(built.Variable) == "" {
		tools = append(tools, "go")
	}
	path, err := openPath()
	if err != nil {
		return err
	}
	// The rows run some of these as an ordinary user.
	paths["everything"] = path
	var missing []string
	for _, tool := range tools {
		at := os.Getenv("PATH")
		if tool == "git" || tool == "bwrap" || tool == "unshare" {
			at = path
		}
		if find(tool, at) == "" {
			missing = append(missing, tool)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("this machine lacks %s, in folders of PATH that everybody can enter; `make deps` installs bubblewrap (bwrap) and git", strings.Join(missing, ", "))
	}
	if dir := os.TempDir(); !enterable(dir) {
		return fmt.Errorf("not everybody can enter the folder for temporary files, %s: set TMPDIR to another", dir)
	}
	return nil
}

// openPath is PATH without the folders that an ordinary user cannot enter.
func openPath() (string, error) {
	var open []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && enterable(dir) {
			open = append(open, dir)
		}
	}
	if len(open) == 0 {
		return "", errors.New("PATH names no folder that everybody can enter")
	}
	return strings.Join(open, ":"), nil
}

// enterable tells whether every user can pass through a folder.
func enterable(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil || !st.IsDir() || st.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

func find(tool, path string) string {
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, tool)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0 {
			return at
		}
	}
	return ""
}

// prepare makes the files that all rows use.
func prepare() error {
	if err := os.Chmod(suite, 0o711); err != nil {
		return err
	}
	me, err := os.Executable()
	if err != nil {
		return err
	}
	self = filepath.Join(suite, "keeper")
	if err := install(self, me, 0o755); err != nil {
		return err
	}
	for name, lacks := range map[string][]string{"no bwrap": {"bwrap"}, "no git": {"bwrap", "git"}} {
		dir := filepath.Join(suite, strings.ReplaceAll(name, " ", "-"))
		if err := links(dir, lacks); err != nil {
			return err
		}
		paths[name] = dir
	}
	program = filepath.Join(suite, "yardmaster")
	if given := os.Getenv(built.Variable); given != "" {
		return install(program, given, 0o755) // where every user can run it
	}
	if _, err := built.Build(ctx, suite); err != nil {
		return err
	}
	return os.Chmod(program, 0o755)
}

// links fills a folder with links to all programs of PATH, except some.
func links(dir string, lacks []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	lacking := map[string]bool{}
	for _, name := range lacks {
		lacking[name] = true
	}
	for _, from := range filepath.SplitList(paths["everything"]) {
		for _, e := range entries(from) {
			if lacking[e.Name()] || e.IsDir() {
				continue
			}
			err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name()))
			if err != nil && !errors.Is(err, os.ErrExist) { // the first folder wins
				return err
			}
		}
	}
	return nil
}

// install copies a program.
func install(to, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}
