package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/demo"
)

// Lab is what a program for trials has besides the product.
type Lab struct {
	// StandIn starts a stand-in for GitHub, for the demo.
	StandIn func() (demo.Host, error)
	// Chaos does harm, and prints what was lost.
	Chaos func(ctx context.Context, of Harm) error
	// Inner are further subcommands with which the program runs itself. They are given what carries out a
	// command line.
	Inner map[string]func(args []string, run func(args []string) int) int
}

// Harm says what harm is done to a throwaway server.
type Harm struct {
	Seed     uint64
	Length   time.Duration // settling comes on top
	Boxes    int
	Nodes    int    // servers on one database
	Database string // an empty PostgreSQL database; SQLite when empty
	Data     string // folder to keep; a temporary one, kept only if something is wrong, when empty
	Self     string // the program to run as server and boxes
}

// Chaos is the definition of chaos.
func Chaos(fl *flag.FlagSet) tree.Action {
	var of Harm
	minutes := fl.Float64("minutes", 0.5, "how long harm is done; settling comes on top")
	fl.Uint64Var(&of.Seed, "seed", 1, "what the plan of faults is drawn from")
	fl.IntVar(&of.Boxes, "boxes", 2, "how many boxes there are")
	fl.IntVar(&of.Nodes, "nodes", 1, "how many servers there are; several need --database")
	fl.StringVar(&of.Database, "database", "", "postgres://… of an empty database; a SQLite file when empty")
	fl.StringVar(&of.Data, "data", "", "empty folder to keep; a temporary one, kept if something is wrong, when empty")
	return func(ctx context.Context, _ []string) (err error) {
		if This.Lab == nil {
			return handOver(ctx, "chaos")
		}
		of.Length = time.Duration(*minutes * float64(time.Minute))
		if of.Self, err = os.Executable(); err != nil {
			return err
		}
		return This.Lab.Chaos(ctx, of)
	}
}

// Fleet is the definition of simulate fleet.
func Fleet(fl *flag.FlagSet) tree.Action {
	boxes := fl.Int("boxes", 1000, "`NUMBER` of boxes")
	tasks := fl.Int("tasks", 5000, "`NUMBER` of tasks, each filed, claimed, accepted and finished")
	timeout := fl.Duration("timeout", 10*time.Second, "after which a box gives an attempt to connect up")
	watch := fl.Duration("watch", 20*time.Second, "how long the boxes do nothing but beat")
	database := fl.String("database", "", "postgres://… of an empty database, or sqlite; a throwaway PostgreSQL when empty")
	data := fl.String("data", "", "folder for the data, on the disk to measure; the temporary one when empty")
	return func(ctx context.Context, _ []string) error {
		if *boxes < 1 || *tasks < 1 || *timeout <= 0 || *watch < 0 {
			return exit.Misuse("--boxes and --tasks must be 1 or more, --timeout more than nothing, and --watch no less")
		}
		return handTo(ctx, "simulate fleet", "internal/proof/bench", []string{"fleet", "--boxes", strconv.Itoa(*boxes),
			"--tasks", strconv.Itoa(*tasks), "--timeout", timeout.String(), "--watch", watch.String(),
			"--database", *database, "--data", *data})
	}
}

// labFolder is the program with a lab, below the folder of a checkout.
const labFolder = "cmd/yardmaster-lab"

// handOver has the program with a lab carry out the command line, and fails with its exit code. It is built of
// the checkout that the current folder is in.
func handOver(ctx context.Context, what string) error {
	return handTo(ctx, what, labFolder, os.Args[1:])
}

// handTo has the program in a folder of the checkout carry out a command line.
func handTo(ctx context.Context, what, folder string, args []string) (failed error) {
	dir, err := checkout()
	if err != nil {
		return fmt.Errorf("%s is for trials, and no part of this program. Go builds it of the source of Yardmaster, and %w: in one, "+
			"`go run ./cmd/yardmaster %s` does it", what, err, what)
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("%s is for trials, and no part of this program. It is built of the source in %s with Go, which is not here: %w",
			what, dir, err)
	}
	tmp, err := os.MkdirTemp("", "yardmaster-lab-")
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o711); err != nil { // the agents of a box that runs as root run the program as others
		return err
	}
	fmt.Fprintf(os.Stderr, "yardmaster: %s is for trials, and no part of this program: go build ./%s makes the one that has it.\n", what,
		folder)
	path := filepath.Join(tmp, "yardmaster")
	build := exec.CommandContext(ctx, compiler, "build", "-o", path, "./"+folder)
	build.Dir, build.Stdout, build.Stderr = dir, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("build %s of %s: %w", folder, dir, err))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0] = os.Args[0] // by which people know it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.Exited() {
		return exit.Status(ended.ExitCode())
	}
	if cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return nil // it was told to end, and did
	}
	return err
}

// checkout is the folder of the program's source that the current folder is in.
func checkout() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		first, _, _ := strings.Cut(string(text), "\n")
		if err == nil && first == "module yardmaster" {
			if _, err := os.Stat(filepath.Join(dir, labFolder)); err == nil {
				return dir, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is in no checkout of that", here)
		}
	}
}
