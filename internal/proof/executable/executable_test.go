package executable

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// A program that was just written runs, however many other processes are started meanwhile.
func TestNothingIsBusy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for one := range 4 {
		all.Go(func() {
			for n := range 25 {
				path := filepath.Join(dir, strconv.Itoa(one*100+n))
				err := Write(path, []byte("#!/bin/sh\nexit 0\n"), 0o700)
				if err = errors.Join(err, exec.CommandContext(t.Context(), path).Run()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// The mode is that of a new file.
func TestMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	if err := Write(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o700 {
		t.Error(is, err)
	}
}
