package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// probeTimeout bounds the trial of one level.
const probeTimeout = 20 * time.Second

// Finding is whether a level holds on this machine. Err says why it does not.
type Finding struct {
	Level Level
	Err   error
}

// Held are the levels that hold, best first.
func Held(findings []Finding) (held []Level) {
	for _, f := range findings {
		if f.Err == nil {
			held = append(held, f.Level)
		}
	}
	return held
}

// Probe finds out which levels hold on this machine, all of them, best first.
// None always does. It tries each of the others in a new folder under dir, by
// program (see Spec.Program): a process is started that must be able to write
// its own folders and unable to read a file outside them. An empty dir is the
// system's for temporary files.
func Probe(ctx context.Context, dir, program string) []Finding {
	var out []Finding
	for _, l := range levels {
		f := Finding{Level: l}
		if l != None {
			f.Err = try(ctx, l, dir, program)
		}
		out = append(out, f)
	}
	return out
}

func try(ctx context.Context, l Level, dir, program string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	root, err := os.MkdirTemp(dir, "sandbox-probe-")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer os.RemoveAll(root)
	canary, task, home := filepath.Join(root, "canary"), filepath.Join(root, "task"), filepath.Join(root, "home")
	err = errors.Join(os.WriteFile(canary, []byte("x"), 0o644), os.Mkdir(task, 0o755), os.Mkdir(home, 0o755))
	for _, p := range []string{root, canary, task, home} { // a root box tries as somebody else, whatever its umask
		err = errors.Join(err, os.Chmod(p, 0o755))
	}
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	const script = `cat "$0" >/dev/null 2>&1 && exit 1; echo x >probe && echo x >"$HOME/probe"`
	p, err := Start(ctx, Spec{Level: l, Task: task, Home: home, Program: program, Argv: []string{"/bin/sh", "-c", script, canary}})
	if err != nil {
		return err
	}
	if err := p.Wait(); err != nil {
		return fmt.Errorf("sandbox: %s does not hold here: %w", l, err)
	}
	return nil
}
