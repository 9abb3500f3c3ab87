// Package rlimit bounds what a program that we run may take. Git is one that
// must be: a few bytes that somebody else made can unpack to gigabytes, and a
// tree that holds itself again and again never ends.
package rlimit

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// Start starts c and bounds the bytes that it, and each of the processes it
// will have, may write to in memory (RLIMIT_DATA, setrlimit(2)).
//
// A shell sets the bound and becomes the program. A bound set from outside
// comes too late for a program that has started others by then: they would
// have none.
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

// ErrTooMuch ends a program that prints more than it may.
var ErrTooMuch = errors.New("the program prints too much")

// Output keeps what a program prints, at most Most bytes. The rest is passed
// over, or fails with ErrTooMuch if the output must be Whole.
type Output struct {
	Most  int
	Whole bool

	text bytes.Buffer // embedded, its ReadFrom would know no bound
}

func (o *Output) Write(p []byte) (int, error) {
	room := o.Most - o.text.Len()
	if o.Whole && len(p) > room {
		return 0, ErrTooMuch
	}
	o.text.Write(p[:min(len(p), room)])
	return len(p), nil
}

// Bytes is what is kept.
func (o *Output) Bytes() []byte { return o.text.Bytes() }

// String is what is kept.
func (o *Output) String() string { return o.text.String() }
