// Package ration bounds what a program that we run may take. Git is one that
// must be: a few bytes that somebody else made can unpack to gigabytes, and a
// tree that holds itself again and again never ends.
package ration

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Start starts c, which must have a Cancel, and bounds the bytes that it, and
// each of the processes it will have, may write to in memory (RLIMIT_DATA,
// setrlimit(2)). Where that fails, c is ended.
func Start(c *exec.Cmd, memory uint64) error {
	if err := c.Start(); err != nil {
		return err
	}
	var now unix.Rlimit
	err := unix.Prlimit(c.Process.Pid, unix.RLIMIT_DATA, nil, &now)
	if most := min(now.Max, memory); err == nil {
		err = unix.Prlimit(c.Process.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: min(now.Cur, most), Max: most}, nil)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) { // one that has ended needs no bound
		return errors.Join(fmt.Errorf("bound the memory of %s: %w", c.Path, err), c.Cancel(), c.Wait())
	}
	return nil
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
