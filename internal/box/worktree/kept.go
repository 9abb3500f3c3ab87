package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptRefs is the folder of refs of work that could not be pushed. Below it is a folder
// for each branch, with one ref, whose name is the commit at which the branch was.
const keptRefs = "refs/kept/"

// noCommit stands for the commit of a branch that there was not.
const noCommit = "none"

func keptOf(branch string) string {
	name := sha256.Sum256([]byte(branch))
	return keptRefs + hex.EncodeToString(name[:12]) + "/"
}

func keptAt(branch, at string) string {
	if at == "" {
		at = noCommit
	}
	return keptOf(branch) + at
}

// Keep makes the cache remember that the commit sha is the work for a branch which is at
// the commit at of the remote; "" is a branch that the remote does not have. It forgets
// what was kept for the branch before.
func (c *Cache) Keep(ctx context.Context, branch, sha, at string) error {
	release, err := lock(ctx, c.keptFile())
	if err != nil {
		return err
	}
	defer release()
	ref := keptAt(branch, at)
	if err := c.changeKept(ctx, branch, "update "+ref+" "+sha+"\n", ref); err != nil {
		return err
	}
	// Git does not write a ref that has its value already, and its time says when it was kept.
	err = os.Chtimes(c.refFile(ref), time.Time{}, time.Now())
	if errors.Is(err, fs.ErrNotExist) { // somebody has packed the refs
		err = nil
	}
	return err
}

// keptFile is the lock file of all who change what is kept.
func (c *Cache) keptFile() string { return c.dir + ".kept" }

// refFile is the file that git keeps a ref in.
func (c *Cache) refFile(ref string) string { return filepath.Join(c.dir, filepath.FromSlash(ref)) }

// ForgetKept forgets what was kept before a time, whatever its branch, and returns of how
// many branches that was.
func (c *Cache) ForgetKept(ctx context.Context, before time.Time) (n int, err error) {
	release, err := lock(ctx, c.keptFile())
	if err != nil {
		return 0, err
	}
	defer release()
	out, err := c.git("for-each-ref", "--format=%(refname)", keptRefs).run(ctx)
	if err != nil {
		return 0, err
	}
	change := ""
	for ref := range strings.Lines(string(out)) {
		ref = strings.TrimSpace(ref)
		info, err := os.Lstat(c.refFile(ref))
		if err != nil || !info.ModTime().Before(before) {
			continue // a packed ref has no time of its own
		}
		change += "delete " + ref + "\n"
		n++
	}
	if n == 0 {
		return 0, nil
	}
	cmd := c.git("update-ref", "--stdin")
	cmd.stdin = strings.NewReader(change)
	_, err = cmd.run(ctx)
	return n, err
}

// Kept returns the commit that was kept for a branch at the commit at of the remote. It
// returns ErrNoRev if there is none, as after the branch was moved.
func (c *Cache) Kept(ctx context.Context, branch, at string) (sha string, err error) {
	sha, err = c.git("rev-parse", "-q", "--verify", "--end-of-options", keptAt(branch, at)+"^{commit}").line(ctx)
	if err != nil && ctx.Err() == nil {
		return "", ErrNoRev
	}
	return sha, err
}

// Unkeep forgets what was kept for a branch.
func (c *Cache) Unkeep(ctx context.Context, branch string) error {
	release, err := lock(ctx, c.keptFile())
	if err != nil {
		return err
	}
	defer release()
	return c.changeKept(ctx, branch, "", "")
}

// changeKept deletes the refs of a branch but one, and carries out another change, in one
// transaction. The caller holds the lock of what is kept.
func (c *Cache) changeKept(ctx context.Context, branch, change, but string) error {
	out, err := c.git("for-each-ref", "--format=%(refname)", keptOf(branch)).run(ctx)
	if err != nil {
		return err
	}
	for ref := range strings.Lines(string(out)) {
		if ref = strings.TrimSpace(ref); ref != but {
			change += "delete " + ref + "\n"
		}
	}
	if change == "" {
		return nil
	}
	cmd := c.git("update-ref", "--stdin")
	cmd.stdin = strings.NewReader(change)
	_, err = cmd.run(ctx)
	return err
}
