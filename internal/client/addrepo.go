package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxRefs is how many bytes the names of branches and tags may have that are pushed at
// once, with what git sends beside each: less than the server takes.
const maxRefs = 8<<20 - 4<<10

// besides is how many bytes git sends for a ref beside its name.
const besides = 95

// AddRepo pushes the branches and tags of a repository to the built-in git host, which
// then knows the repository: all of them or, if git fails, none; then the contents of
// its files of Git LFS, of which Remark says what is lacking. source is a folder of the
// user, or an address that git can clone. Its current branch is the default of a
// repository that is new. What the server could not take is refused before anything is
// sent.
func (c *Client) AddRepo(ctx context.Context, source, owner, name string) error {
	step, quiet := func(string) {}, "--quiet"
	var part func(string)
	if c.Steps != nil {
		step, part, quiet = c.Steps.Step, c.Steps.Part, "--progress"
	}
	at := fmt.Sprintf("/git/%s/%s.git", owner, name)
	remote := c.URL + at
	dir := source
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		if err != nil && !strings.Contains(source, ":") {
			return fmt.Errorf("there is no folder %s", source)
		}
		tmp, err := os.MkdirTemp("", "yardmaster-import-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "repo.git")
		step("Cloning " + source)
		if _, err := gitTelling(ctx, part, tmp, "", "", "clone", quiet, "--mirror", "--", source, dir); err != nil {
			return err
		}
	}
	head, err := branch(ctx, dir)
	if err == nil {
		err = fits(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("%s %w", source, err)
	}
	step("Pushing " + source + " to " + remote)
	// A hook of git-lfs would send contents before anybody knows whether the commits are taken.
	out, err := c.push(ctx, part, dir, at, head, quiet, "--no-verify", "--atomic", "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		if err = c.addContents(ctx, step, dir, source, remote); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s/%s is on the server, and not all contents of its files of Git LFS are: %w. Add it again when that is mended", owner,
				name, err)
		}
		return err
	}
	if kind, ref := behind(out); kind == "tag" {
		return fmt.Errorf("%s/%s has another tag %s than %s: delete the tag on one side first", owner, name, ref, source)
	} else if ref != "" {
		return fmt.Errorf("%s/%s has commits on its branch %s that %s lacks; bring them over first: git pull %s %s",
			owner, name, ref, source, remote, ref)
	}
	if why := refusal(out); why != "" {
		return fmt.Errorf("%s/%s takes nothing of %s: %s", owner, name, source, why)
	}
	return err
}

// branch is the current branch of a repository that can be pushed completely.
func branch(ctx context.Context, dir string) (string, error) {
	if _, err := Git(ctx, dir, "", "", "rev-parse", "--git-dir"); err != nil {
		return "", fmt.Errorf("cannot be used as a git repository: %w", err)
	}
	if format, err := Git(ctx, dir, "", "", "rev-parse", "--show-object-format"); err == nil && format != "sha1" {
		return "", fmt.Errorf("names its objects by %s, and the server takes those of sha1 alone: bring its files over to one made by "+
			"`git init --object-format=sha1`", format)
	}
	if shallow, err := Git(ctx, dir, "", "", "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
		return "", errors.New("holds only the newest commits: complete it with `git fetch --unshallow`")
	}
	head, err := Git(ctx, dir, "", "", "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return "", errors.New("is on no branch: `git switch` to the one that is to be the default")
	}
	if _, err := Git(ctx, dir, "", "", "rev-parse", "--quiet", "--verify", "HEAD"); err != nil {
		tag, err := Git(ctx, dir, "", "", "for-each-ref", "--count=1", "--format=%(refname:short)", "refs/tags/")
		if err == nil && tag != "" {
			return "", fmt.Errorf("has tags, and no commit on its branch %s: make the branch first, such as with `git branch %s %s`",
				head, Word(head), Word(tag))
		}
		return "", fmt.Errorf("has no commit on its branch %s yet: make one first", head)
	}
	return head, nil
}

// fits fails if the server does not take the branches and tags of a repository together.
func fits(ctx context.Context, dir string) error {
	out, err := Git(ctx, dir, "", "", "for-each-ref", "--format=%(refname)", "refs/heads/", "refs/tags/")
	if err != nil {
		return err
	}
	size := 0
	for ref := range strings.Lines(out) {
		ref = strings.TrimSuffix(ref, "\n")
		if size += len(ref) + besides; size > maxRefs {
			return errors.New("has more branches and tags than one push may name, which is some 70,000: push the first of them with git")
		}
		if ref == "refs/heads/svc" || ref == "refs/heads/svc/queue" {
			name := strings.TrimPrefix(ref, "refs/heads/")
			return fmt.Errorf("has a branch %s, beside which git cannot have the branches svc/… that the service makes: rename it first, "+
				"with `git branch -m %s NAME`", name, name)
		}
	}
	return nil
}

// rejectedLines are the lines of a push that tell which refs were not taken, each with
// "remote " or not, the ref of the source, and why.
func rejectedLines(out string) [][]string {
	return regexp.MustCompile(`(?m)^ ! \[(remote )?rejected\] +(\S+)(?: -> \S+)? \((.*)\)\s*$`).FindAllStringSubmatch(out, -1)
}

// behind is the branch or tag that the server has and the source has not as it is there,
// of the output of a push; "" if that is not why it failed.
func behind(out string) (kind, ref string) {
	for _, m := range rejectedLines(out) {
		switch {
		case m[1] != "":
		case m[3] == "already exists":
			return "tag", strings.TrimPrefix(m[2], "refs/tags/")
		case m[3] != "atomic push failed":
			return "branch", strings.TrimPrefix(m[2], "refs/heads/")
		}
	}
	return "", ""
}

// refusal is why the server refused a push, of the output of git; "" if it did not say.
func refusal(out string) string {
	if m := regexp.MustCompile(`(?m)^remote: (?:error|fatal): (object .*?)\s*$`).FindStringSubmatch(out); m != nil {
		return "git finds a fault that is not taken, in the " + m[1]
	}
	for _, m := range rejectedLines(out) {
		if m[1] != "" && m[3] != "atomic transaction failed" && m[3] != "unpacker error" &&
			!strings.HasPrefix(m[3], "not pushed, because another ref") {
			return m[3]
		}
	}
	if m := regexp.MustCompile(`(?m)^error: remote unpack failed: (.*)$`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
}
