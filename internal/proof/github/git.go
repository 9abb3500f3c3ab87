package github

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

// zero is the name of no object, for refs that are made or deleted.
const zero = "0000000000000000000000000000000000000000"

// environment is the same on every machine: no settings of people or systems.
func environment(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
	}, more...)
}

// git runs git in a repository and returns what it prints.
func (r *Repo) git(args ...string) (string, error) { return run(r.dir, nil, nil, args...) }

// known is git for commands whose answer never changes, because all that they name are
// commits. Each is run once. Server.mu is held.
func (r *Repo) known(args ...string) (string, error) {
	key := strings.Join(args, "\x00")
	if a, ok := r.answers[key]; ok {
		return a.out, a.err
	}
	out, err := r.git(args...)
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && exit.ExitCode() == 1 { // 1 is no; 128 says that an object is missing
		r.answers[key] = gitAnswer{out, err}
	}
	return out, err
}

type gitAnswer struct {
	out string
	err error
}

// mustKnow is must for what never changes.
func (r *Repo) mustKnow(args ...string) string {
	out, err := r.known(args...)
	if err != nil {
		panic(err)
	}
	return strings.TrimRight(out, "\n")
}

// must is git for what cannot fail but by a mistake of the peer or its test.
func (r *Repo) must(args ...string) string {
	out, err := r.git(args...)
	if err != nil {
		panic(err)
	}
	return strings.TrimRight(out, "\n")
}

func run(dir string, env []string, in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(env...), bytes.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return out.String(), nil
}

// initialise makes the repository's folder.
func (r *Repo) initialise() {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		panic(err)
	}
	r.must("init", "--bare", "--quiet", "--initial-branch="+r.branch, ".")
	settings := "[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n" +
		"[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n[core]\n\tlogAllRefUpdates = false\n"
	f, err := os.OpenFile(filepath.Join(r.dir, "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(settings)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// resolve returns the commit of a branch, tag or SHA, or "".
func (r *Repo) resolve(name string) string {
	for _, full := range []string{"refs/heads/" + name, "refs/tags/" + name, "refs/" + name, name} {
		sha := full
		if full != name || strings.HasPrefix(name, "refs/") {
			sha = r.ref(full)
		}
		if !sha1Name.MatchString(sha) {
			continue
		}
		if out, err := r.git("rev-parse", "--verify", "--quiet", "--end-of-options", sha+"^{commit}"); err == nil {
			return strings.TrimSpace(out)
		}
	}
	return ""
}

var loose = lazy.New(`^refs/[A-Za-z0-9][A-Za-z0-9/_-]*$`)

// ref returns the object of a full ref, or "". Most refs are read as git keeps them,
// since a process takes a thousand times as long.
func (r *Repo) ref(full string) string {
	if loose.MatchString(full) {
		text, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(full)))
		if sha := strings.TrimSpace(string(text)); err == nil && sha1Name.MatchString(sha) {
			return sha
		}
		if _, err := os.Stat(filepath.Join(r.dir, "packed-refs")); os.IsNotExist(err) {
			return ""
		}
	}
	out, err := r.git("rev-parse", "--verify", "--quiet", "--end-of-options", full)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// head returns the commit of a branch, or "".
func (r *Repo) head(branch string) string { return r.ref("refs/heads/" + branch) }

// setRef moves, makes or deletes a ref. It fails unless the ref is still at old; an
// empty old is not compared.
func (r *Repo) setRef(full, sha, old string) error {
	args := []string{"update-ref", full, sha}
	if sha == zero {
		args = []string{"update-ref", "-d", full}
	}
	if old != "" {
		args = append(args, old)
	}
	_, err := r.git(args...)
	return err
}

// contains tells whether a commit is reached from another.
func (r *Repo) contains(tip, sha string) bool {
	_, err := r.known("merge-base", "--is-ancestor", sha, tip)
	return err == nil
}

// mergeBase returns the merge base of two commits, or "".
func (r *Repo) mergeBase(a, b string) string {
	out, err := r.known("merge-base", a, b)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// count returns the number of commits of a range.
func (r *Repo) count(span string) int {
	n, _ := strconv.Atoi(r.mustKnow("rev-list", "--count", span, "--"))
	return n
}

// commits lists the commits of a range, oldest first.
func (r *Repo) commits(span string) []string {
	return strings.Fields(r.mustKnow("rev-list", "--reverse", "--topo-order", span, "--"))
}

// commit is what git knows of a commit.
type commit struct {
	sha, tree string
	parents   []string
	author,
	committer signature
	message string
}

type signature struct {
	name, mail string
	at         time.Time
}

// show reads a commit.
func (r *Repo) show(sha string) commit {
	out := r.mustKnow("show", "-s", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B", sha, "--")
	f := strings.SplitN(out, "\x00", 10)
	at := func(s string) time.Time {
		n, _ := strconv.ParseInt(s, 10, 64)
		return time.Unix(n, 0).UTC()
	}
	return commit{
		sha: f[0], tree: f[1], parents: strings.Fields(f[2]),
		author:    signature{f[3], f[4], at(f[5])},
		committer: signature{f[6], f[7], at(f[8])},
		message:   strings.TrimRight(f[9], "\n"),
	}
}

// write makes a commit of a tree.
func (r *Repo) write(tree, message string, author, committer signature, parents ...string) (string, error) {
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + author.name, "GIT_AUTHOR_EMAIL=" + author.mail, fmt.Sprintf("GIT_AUTHOR_DATE=%d +0000", author.at.Unix()),
		"GIT_COMMITTER_NAME=" + committer.name, "GIT_COMMITTER_EMAIL=" + committer.mail,
		fmt.Sprintf("GIT_COMMITTER_DATE=%d +0000", committer.at.Unix()),
	}
	out, err := run(r.dir, env, []byte(message), args...)
	return strings.TrimSpace(out), err
}

// mergeTree merges two commits and returns the tree, or false if they conflict.
func (r *Repo) mergeTree(ours, theirs string) (string, bool) {
	out, err := r.known("merge-tree", "--write-tree", "--no-messages", ours, theirs)
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(out), true
}

// pick applies a commit on another and returns the tree, or false if it conflicts.
// merge-tree takes a merge base only from git 2.40 on, so three commits are made
// whose merge base is the picked commit's parent.
func (r *Repo) pick(onto, sha string) (string, bool) {
	c := r.show(sha)
	if len(c.parents) == 0 {
		return "", false
	}
	someone := signature{"pick", "pick@invalid", c.committer.at}
	base, err := r.write(r.show(c.parents[0]).tree, "base", someone, someone)
	if err != nil {
		return "", false
	}
	ours, err1 := r.write(r.show(onto).tree, "ours", someone, someone, base)
	theirs, err2 := r.write(c.tree, "theirs", someone, someone, base)
	if err1 != nil || err2 != nil {
		return "", false
	}
	return r.mergeTree(ours, theirs)
}

// file reads a file of a commit. ok is false if there is none.
func (r *Repo) file(sha, path string) (text string, ok bool) {
	text, err := r.git("cat-file", "blob", sha+":"+path)
	return text, err == nil
}

// patchID is git's name of a change, whatever it is based on.
func (r *Repo) patchID(from, to string) string {
	diff, err := r.known("diff", "--no-renames", from, to)
	if err != nil {
		return ""
	}
	out, err := run(r.dir, nil, []byte(diff), "patch-id", "--stable")
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(out, " ")
	return name
}

// commitFiles makes a commit with some files changed; a nil text removes a file. An
// empty parent makes a first commit.
func (r *Repo) commitFiles(parent, message string, files map[string]*string, by signature) string {
	index := filepath.Join(r.dir, "peer-index")
	defer os.Remove(index)
	env := []string{"GIT_INDEX_FILE=" + index}
	if parent != "" {
		if _, err := run(r.dir, env, nil, "read-tree", parent); err != nil {
			panic(err)
		}
	}
	for path, text := range files {
		args := []string{"update-index", "--force-remove", "--", path}
		if text != nil {
			blob, err := run(r.dir, nil, []byte(*text), "hash-object", "-w", "--stdin")
			if err != nil {
				panic(err)
			}
			args = []string{"update-index", "--add", "--cacheinfo", "100644," + strings.TrimSpace(blob) + "," + path}
		}
		if _, err := run(r.dir, env, nil, args...); err != nil {
			panic(err)
		}
	}
	tree, err := run(r.dir, env, nil, "write-tree")
	if err != nil {
		panic(err)
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	sha, err := r.write(strings.TrimSpace(tree), message, by, by, parents...)
	if err != nil {
		panic(err)
	}
	return sha
}
