// Package program gives tests the program as people have it: a binary of its own.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names a program that was built beforehand, by its absolute path, so that
// several packages of tests do not link one each.
const Variable = "YARDMASTER_PROGRAM"

// Build answers the program of the variable, or one that it builds into a folder. It is
// built as the tests are, with or without cgo: Go compiles every package again for the other.
func Build(ctx context.Context, dir string) (path string, err error) {
	if path = os.Getenv(Variable); path != "" {
		return path, nil
	}
	path = filepath.Join(dir, "yardmaster")
	// The toolchain that runs a test comes first on its path.
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "yardmaster/cmd/yardmaster")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	return path, nil
}
