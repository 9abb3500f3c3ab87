// Package rlimit limits the memory and the output of a program that the service
// runs, and tells the limits of this process. Git needs both limits: a few bytes from a stranger can unpack to
// gigabytes, and a tree that contains itself never ends.
package rlimit

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// Start starts c, and limits the bytes of writable memory of its process and of
// each of that process's descendants (RLIMIT_DATA, setrlimit(2)).
//
// A shell sets the limit and then executes the program. A limit set from outside
// would come too late for a program that has already started others: those would
// have no limit.
func Start(c *exec.Cmd, memory uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return fmt.Errorf("read the bound of memory: %w", err)
	}
	if c.Err == nil {
		most := strconv.FormatUint(min(now.Cur, now.Max, memory)>>10, 10)
		c.Args = append([]string{"sh", "-c", `ulimit -d "$0" && exec "$@"`, most, c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
	}
	return c.Start()
}

// Files returns how many files this process may have open (RLIMIT_NOFILE, setrlimit(2)).
// The runtime of Go has raised the limit as far as it may when the program began.
func Files() uint64 {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return 1024 // what a process has unless somebody says otherwise
	}
	return now.Cur
}

// ErrTooMuch ends a program whose output exceeds its limit.
var ErrTooMuch = errors.New("the program prints too much")

// Output keeps up to Most bytes of a program's output. It discards the rest, or
// fails with ErrTooMuch if the output must be Whole.
type Output struct {
	Most  int
	Whole bool

	text bytes.Buffer // not embedded: its ReadFrom would bypass the limit
}

// Write keeps as much of p as Most allows. It returns ErrTooMuch, and keeps nothing of
// p, if Whole is set and p does not fit.
func (o *Output) Write(p []byte) (int, error) {
	remaining := o.Most - o.text.Len()
	if o.Whole && len(p) > remaining {
		return 0, ErrTooMuch
	}
	o.text.Write(p[:min(len(p), remaining)])
	return len(p), nil
}

// Bytes returns the kept output.
func (o *Output) Bytes() []byte { return o.text.Bytes() }

// String returns the kept output.
func (o *Output) String() string { return o.text.String() }

// NoCore has this process, and those that it starts, leave no core file when it crashes: its memory
// holds keys and tokens in the clear (RLIMIT_CORE, setrlimit(2)).
func NoCore() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	return nil
}
