package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Examine has git look at every object of a bare repository, and clone it to a folder, which is
// removed again.
func Examine(ctx context.Context, repository, clone string) error {
	return errors.Join(
		git(ctx, "--git-dir="+repository, "fsck", "--full", "--no-dangling", "--no-progress"),
		git(ctx, "clone", "--quiet", "--mirror", "--no-local", repository, clone),
		os.RemoveAll(clone))
}

// Bundle writes all refs of a bare repository, with what they reach, into a file that git clones from.
// A repository without a ref has none: then there is no file.
func Bundle(ctx context.Context, repository, file string) (empty bool, err error) {
	said, err := run(ctx, "--git-dir="+repository, "for-each-ref", "--count=1")
	if err != nil || len(said) == 0 {
		return err == nil, err
	}
	return false, git(ctx, "--git-dir="+repository, "bundle", "create", "--quiet", file, "--all")
}

// mostGit bounds what git is quoted with.
const mostGit = 500

// git runs git without the settings of whoever runs this.
func git(ctx context.Context, args ...string) error {
	_, err := run(ctx, args...)
	return err
}

func run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	said, err := cmd.CombinedOutput()
	if err != nil {
		what := args[0]
		if strings.HasPrefix(what, "-") {
			what = args[1]
		}
		return said, fmt.Errorf("git %s: %w: %s", what, err, strings.TrimSpace(string(said[:min(len(said), mostGit)])))
	}
	return said, nil
}
