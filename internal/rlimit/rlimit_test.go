package rlimit

import (
	"errors"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
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

// The children of a program have its limit, also children that it starts at once.
func TestMemoryIsBounded(t *testing.T) {
	for range 50 {
		out := Output{Most: 100, Whole: true}
		c := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'ulimit -d' & wait")
		c.Stdout = &out
		if err := Start(c, 256<<20); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil || out.String() != "262144\n" {
			t.Fatalf("%q, %v", out.String(), err)
		}
	}
}

// Start fails with exec.ErrNotFound for a program that does not exist.
func TestNoSuchProgram(t *testing.T) {
	if err := Start(exec.CommandContext(t.Context(), "no-such-program"), 256<<20); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}

// Neither this process nor one that it starts leaves a core file.
func TestNoCore(t *testing.T) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = now.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &now); err != nil {
		t.Fatal(err)
	}
	if err := NoCore(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -c; ulimit -H -c").Output()
	if err != nil || string(out) != "0\n0\n" {
		t.Errorf("%q, %v", out, err)
	}
}
