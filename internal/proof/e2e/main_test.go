package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"yardmaster/internal/proof/program"
)

var (
	binary string // the program
	root   string // of all data folders; short, because sockets are in it
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !explicit("test.parallel") {
		// The tests spend most of their time waiting for leases and retry delays.
		if err := flag.Set("test.parallel", "8"); err != nil {
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
	var err error
	// The agents of a box that runs as root are another user, who must be able to
	// reach their checkouts.
	if root, err = os.MkdirTemp("", "ym"); err == nil {
		err = os.Chmod(root, 0o711)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(root)
	if binary, err = program.Build(context.Background(), root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
