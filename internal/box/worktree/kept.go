package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
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
	return c.changeKept(ctx, branch, "update "+keptAt(branch, at)+" "+sha+"\n", keptAt(branch, at))
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
	return c.changeKept(ctx, branch, "", "")
}

// changeKept deletes the refs of a branch but one, and carries out another change, in one
// transaction.
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
