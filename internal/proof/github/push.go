package github

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
)

// command is a ref that a push moves.
type command struct{ ref, old, new string }

// receive carries out a push: commands to the first flush, then a pack. It answers in
// git's report of each ref, as GitHub does also for what it refuses.
func (s *Server) receive(w http.ResponseWriter, body io.Reader, repo *Repo, by who) {
	in := bufio.NewReader(body)
	commands, able, err := readCommands(in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(commands) == 0 {
		return // a probe before a push with a body of unknown length
	}
	repo.gitLock.Lock()
	defer repo.gitLock.Unlock()
	report := pkt("unpack ok\n")
	if err := repo.unpack(in, commands); err != nil {
		report = pkt("unpack " + strings.Join(strings.Fields(err.Error()), " ") + "\n")
		for _, c := range commands {
			report += pkt("ng " + c.ref + " unpacker error\n")
		}
	} else {
		s.mu.Lock()
		reasons := s.pushed(repo, by, commands, strings.Contains(able, "atomic"))
		s.mu.Unlock()
		for i, c := range commands {
			if reasons[i] == "" {
				report += pkt("ok " + c.ref + "\n")
			} else {
				report += pkt("ng " + c.ref + " " + reasons[i] + "\n")
			}
		}
	}
	report += "0000"
	if strings.Contains(able, "side-band-64k") {
		var out bytes.Buffer
		for rest := report; rest != ""; {
			n := min(len(rest), 60000)
			out.WriteString(pkt("\x01" + rest[:n]))
			rest = rest[n:]
		}
		report = out.String() + "0000"
	}
	if strings.Contains(able, "report-status") {
		_, _ = io.WriteString(w, report)
	}
}

// readCommands reads the head of a push and the client's abilities.
func readCommands(in *bufio.Reader) (out []command, able string, err error) {
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return nil, "", fmt.Errorf("read a command: %w", err)
		}
		n, err := strconv.ParseUint(string(size[:]), 16, 16)
		if err != nil || n != 0 && n <= 4 {
			return nil, "", errors.New("a packet without a length")
		}
		if n == 0 {
			return out, able, nil
		}
		line := make([]byte, n-4)
		if _, err := io.ReadFull(in, line); err != nil {
			return nil, "", fmt.Errorf("read a command: %w", err)
		}
		text, abilities, has := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\x00")
		if has {
			able = abilities
		}
		f := strings.SplitN(text, " ", 3)
		if len(f) == 3 && len(f[0]) == 40 && len(f[1]) == 40 {
			out = append(out, command{ref: f[2], old: f[0], new: f[1]})
		}
	}
}

// unpack stores the objects of a push and checks that they are whole.
func (r *Repo) unpack(in io.Reader, commands []command) error {
	tips := []string{"rev-list", "--objects", "--quiet"}
	for _, c := range commands {
		if c.new != zero {
			tips = append(tips, c.new)
		}
	}
	if len(tips) == 3 {
		return nil // only deletions, which have no pack
	}
	cmd := exec.Command("git", "index-pack", "--stdin", "--fix-thin", "--strict")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, environment(), in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("index-pack: %w: %s", err, out)
	}
	_, err := r.git(append(tips, "--not", "--all")...)
	return err
}

// pushed decides about each command of a push and carries out those that are
// allowed. A reason is why a ref was refused.
func (s *Server) pushed(repo *Repo, by who, commands []command, atomic bool) []string {
	reasons := make([]string, len(commands))
	refused := false
	for i, c := range commands {
		reasons[i] = s.refusal(repo, by, c)
		refused = refused || reasons[i] != ""
	}
	var moved []command
	for i, c := range commands {
		switch {
		case reasons[i] != "":
		case atomic && refused:
			reasons[i] = "atomic push failure"
		default:
			if err := repo.setRef(c.ref, c.new, c.old); err != nil {
				reasons[i] = "failed to update ref"
				continue
			}
			moved = append(moved, c)
		}
	}
	for _, c := range moved {
		s.refMoved(repo, by, c, len(moved))
	}
	return reasons
}

// refusal returns why a ref may not be moved, or "".
func (s *Server) refusal(repo *Repo, by who, c command) string {
	branch, isBranch := strings.CutPrefix(c.ref, "refs/heads/")
	_, isTag := strings.CutPrefix(c.ref, "refs/tags/")
	if strings.HasPrefix(c.ref, "refs/pull/") {
		return "deny updating a hidden ref"
	}
	if !isBranch && !isTag && !strings.HasPrefix(c.ref, "refs/") {
		return "funny refname"
	}
	if now := repo.ref(c.ref); now != c.old && !(now == "" && c.old == zero) {
		return "fetch first"
	}
	if isBranch && c.new == zero && branch == repo.branch {
		return "refusing to delete the current branch: " + c.ref
	}
	if isBranch && strings.HasPrefix(branch, "gh-readonly-queue/") {
		return "cannot push to this branch: it is made by the merge queue"
	}
	if c.new != zero && !by.has("workflows=write") && by.token != nil {
		if path := repo.workflowTouched(c.old, c.new); path != "" {
			return workflowRefusal(by, path)
		}
	}
	if isBranch {
		return s.ruleRefusal(repo, by, branch, c)
	}
	return ""
}

func workflowRefusal(by who, path string) string {
	what := "a GitHub App"
	if by.person != nil {
		what = "a Personal Access Token"
	}
	return fmt.Sprintf("refusing to allow %s to create or update workflow `%s` without `workflows` permission", what, path)
}

// workflowTouched returns a file of a workflow that new commits change, or "". A
// commit that some branch has already is none.
func (r *Repo) workflowTouched(old, tip string) string {
	span := []string{"log", "--format=", "--name-only", "-c", tip}
	if old != zero && old != "" {
		span = append(span, "^"+old)
	}
	out, err := r.git(append(span, "--not", "--branches", "--", ".github/workflows")...)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
