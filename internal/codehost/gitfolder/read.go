package gitfolder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

// Info answers as codehost.Host says.
func (dir Folder) Info(ctx context.Context) (codehost.Info, error) {
	branch, err := dir.DefaultBranch(ctx)
	if err != nil {
		return codehost.Info{}, err
	}
	info := codehost.Info{DefaultBranch: branch}
	info.HeadSHA, err = dir.resolveOne(ctx, branch)
	if errors.Is(err, codehost.ErrNotFound) {
		info.Empty, err = dir.Empty(ctx)
	}
	return info, err
}

// DefaultBranch is the branch that HEAD names.
func (dir Folder) DefaultBranch(ctx context.Context) (string, error) {
	out, err := dir.Output(ctx, "symbolic-ref", "HEAD")
	return strings.TrimPrefix(strings.TrimSpace(out), "refs/heads/"), err
}

// SetDefaultBranch makes HEAD name a branch.
func (dir Folder) SetDefaultBranch(ctx context.Context, branch string) error {
	if !codehost.ValidBranch(branch) {
		return codehost.ErrNotFound
	}
	_, err := dir.Output(ctx, "symbolic-ref", "HEAD", "refs/heads/"+branch)
	return err
}

// Heads are the commits of all branches, by their names.
func (dir Folder) Heads(ctx context.Context) (map[string]string, error) {
	out, err := dir.Output(ctx, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")
	if err != nil {
		return nil, err
	}
	heads := make(map[string]string)
	for line := range strings.Lines(out) {
		sha, branch, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		heads[branch] = sha
	}
	return heads, nil
}

// Empty tells whether no branch has a commit.
func (dir Folder) Empty(ctx context.Context) (bool, error) {
	out, err := dir.Output(ctx, "for-each-ref", "--count=1", "refs/heads/")
	return out == "", err
}

// Head answers as codehost.Host says.
func (dir Folder) Head(ctx context.Context, branch string) (string, error) {
	if !codehost.ValidBranch(branch) {
		return "", codehost.ErrNotFound
	}
	return dir.resolveOne(ctx, branch)
}

// expand turns a rev as codehost.Host defines it into one that git cannot read as
// an option or an expression.
func expand(rev string) (string, error) {
	switch {
	case rev == "HEAD", codehost.ValidSHA(rev), codehost.ValidRef(rev):
		return rev, nil
	case codehost.ValidBranch(rev):
		return "refs/heads/" + rev, nil
	}
	return "", codehost.ErrNotFound
}

// Resolve returns the commits that revs name, or codehost.ErrNotFound.
func (dir Folder) Resolve(ctx context.Context, revs ...string) ([]string, error) {
	var ask strings.Builder
	for _, rev := range revs {
		rev, err := expand(rev)
		if err != nil {
			return nil, err
		}
		ask.WriteString(rev + "^{commit}\n")
	}
	out, err := dir.Filter(ctx, ask.String(), nil, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	shas := strings.Fields(out)
	if len(shas) != len(revs) {
		return nil, codehost.ErrNotFound // "<rev> missing" is two words
	}
	return shas, nil
}

// Has tells whether the repository has all of some objects, given by their full SHAs.
func (dir Folder) Has(ctx context.Context, shas ...string) (bool, error) {
	out, err := dir.Filter(ctx, strings.Join(shas, "\n")+"\n", nil, "cat-file", "--batch-check=%(objectname)")
	return len(strings.Fields(out)) == len(shas), err // "<sha> missing" is two words
}

func (dir Folder) resolveOne(ctx context.Context, rev string) (string, error) {
	shas, err := dir.Resolve(ctx, rev)
	if err != nil {
		return "", err
	}
	return shas[0], nil
}

// ReadFile answers as codehost.Host says.
func (dir Folder) ReadFile(ctx context.Context, rev, path string) ([]byte, string, error) {
	rev, err := expand(rev)
	if err != nil {
		return nil, "", err
	}
	if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "\n\x00") {
		return nil, "", codehost.ErrNotFound
	}
	// The size precedes the content, so a file that is too large is never read.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := dir.Command(ctx, "cat-file", "--batch")
	c.Stdin = strings.NewReader(rev + ":" + path + "\n")
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := Begin(c); err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	content, sha, err := readObject(bufio.NewReader(stdout))
	if err != nil {
		cancel()
	}
	if waited := c.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("git cat-file: %w", waited)
	}
	if err != nil {
		return nil, "", err
	}
	return content, sha, nil
}

// readObject reads one answer of cat-file --batch: "<sha> blob <size>", the
// content and a newline; or "<name> missing".
func readObject(r *bufio.Reader) ([]byte, string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	f := strings.Fields(line)
	if strings.HasSuffix(line, " missing\n") || len(f) != 3 || f[1] != "blob" {
		return nil, "", codehost.ErrNotFound
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	if size > codehost.MaxFileSize {
		return nil, "", codehost.ErrTooLarge
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, "", fmt.Errorf("git cat-file: %w", err)
	}
	return content, f[0], nil
}
