package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"yardmaster/internal/lazy"
)

// withLFS are the options with which git-lfs sends contents to the server alone, whatever
// .lfsconfig says, and those that it has although others are nowhere.
func withLFS(remote string) []string {
	at := remote + "/info/lfs"
	return []string{"-c", "lfs.url=" + at, "-c", "lfs.pushurl=" + at, "-c", "lfs.allowincompletepush=true"}
}

// addContents sends what the pointers of Git LFS in a repository stand for. Where source is an
// address, it first fetches them from there.
func (c *Client) addContents(ctx context.Context, step func(string), dir, source, remote string) error {
	if _, err := Git(ctx, dir, "", "", "grep", "--quiet", "-e", "filter=lfs", "HEAD", "--",
		":(top,glob)**/.gitattributes"); err != nil {
		return ctx.Err() // no file of the branch is one of Git LFS
	}
	if _, err := Git(ctx, dir, "", "", "lfs", "version"); err != nil {
		c.remark("Its files of Git LFS are pointers on the server, and their contents are not there, because this machine has no " +
			"git-lfs: install it and add the repository again.")
		return ctx.Err()
	}
	if _, err := os.Stat(source); err != nil { // the clone has pointers alone
		step("Fetching the contents of Git LFS from " + source)
		if out, err := Git(ctx, dir, "", "", "lfs", "fetch", "--all"); err != nil && ctx.Err() == nil {
			c.remark("Not all contents of its files of Git LFS could be fetched: " + ofLFS(out) + ".")
		}
	}
	step("Sending the contents of Git LFS to " + remote)
	out, err := Git(ctx, dir, c.URL, c.Token, append(withLFS(remote), "lfs", "push", "--all", remote)...)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.New(ofLFS(out))
	}
	if n := len(missingContents.FindAllString(out, -1)); n > 0 {
		c.remark(fmt.Sprintf("The contents of %d of its files of Git LFS are not there, because they are not in %s either: "+
			"`git lfs fetch --all` there gets them; then add it again.", n, source))
	}
	return nil
}

// remark tells Remark, if there is one.
func (c *Client) remark(text string) {
	if c.Remark != nil {
		c.Remark(text)
	}
}

// missingContents are the lines of git-lfs that name a pointer whose contents it does not have.
var missingContents = lazy.New(`(?m)^\s*\(missing\) `)

// ofLFS is what git-lfs says of a failure, in one line.
func ofLFS(out string) (said string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		for _, begins := range []string{"batch response: ", "LFS: ", "["} {
			if text, ok := strings.CutPrefix(line, begins); ok {
				if begins == "[" { // the status
					_, text, _ = strings.Cut(text, "] ")
				}
				return strings.TrimSuffix(text, ".")
			}
		}
		if line != "" && !strings.HasPrefix(line, "Uploading ") {
			said = line
		}
	}
	return strings.TrimSuffix(said, ".")
}
