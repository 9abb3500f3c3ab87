package ration

import (
	"context"
	"errors"
	"os/exec"
	"testing"
)

func TestOutputIsBounded(t *testing.T) {
	whole, some := Output{Most: 10, Whole: true}, Output{Most: 10}
	for range 2 {
		if n, err := some.Write([]byte("seven..")); n != len("seven..") || err != nil {
			t.Fatal(n, err)
		}
	}
	if some.String() != "seven..sev" {
		t.Error(some.String())
	}
	_, first := whole.Write([]byte("seven.."))
	if _, second := whole.Write([]byte("seven..")); first != nil || !errors.Is(second, ErrTooMuch) {
		t.Error(first, second)
	}
}

// The children of a program have its bound.
func TestMemoryIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := Output{Most: 100, Whole: true}
	c := exec.CommandContext(ctx, "sh", "-c", "read go; sh -c 'ulimit -d'")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = &out
	if err := Start(c, 256<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil || out.String() != "262144\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
