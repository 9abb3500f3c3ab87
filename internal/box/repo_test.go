package box_test

import (
	"cmp"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/protocol"
)

// git is git's own HTTP server.
func (p *plane) git(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != p.goodToken() {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "token unknown", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	down := p.down != "" && strings.Contains(r.URL.String(), p.down)
	p.mu.Unlock()
	if down {
		p.change(func() { p.refusals++ })
		http.Error(w, "The code host does not answer now. Try again later.", http.StatusServiceUnavailable)
		return
	}
	(&cgi.Handler{
		Path: gitPath(p.t), Root: "/git", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(p.repo), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=box"},
	}).ServeHTTP(w, r)
}

// goodToken is the one push token that is good now.
func (p *plane) goodToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.push, gitToken)
}

func gitPath(t *testing.T) string {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Error(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
}

// newRepo is a bare repository with one commit on main.
func newRepo(t *testing.T) string {
	t.Helper()
	repo := filepath.Join(t.TempDir(), "demo.git")
	git(t, "", "init", "-q", "--bare", "--initial-branch=main", repo)
	git(t, repo, "config", "http.receivepack", "true")
	work := t.TempDir()
	git(t, work, "init", "-q", "--initial-branch=main")
	if err := os.WriteFile(filepath.Join(work, "README"), []byte("demo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", "README")
	git(t, work, "commit", "-q", "-m", "first")
	git(t, work, "push", "-q", repo, "main")
	return repo
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
		"GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// show is a file of the served repository at a revision.
func (p *plane) show(rev, path string) string {
	p.t.Helper()
	return git(p.t, p.repo, "show", rev+":"+path)
}

func TestTagsReachAgentsAndChecks(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	git(t, p.repo, "tag", "-a", "v1.2.0", "-m", "1.2.0", "main")
	p.start(p.config())
	check := p.task(func(s *protocol.Start) {
		s.Kind, s.Agent, s.Branch, s.Checkout = "ci", "command", "", git(t, p.repo, "rev-parse", "main")
		s.Command = []string{"git", "describe", "--tags"}
	})
	agent := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", "echo more >>README; git commit -qam more; git describe --tags"}
	})
	if _, f := p.finish(check); f.State != protocol.Succeeded || f.Output != "v1.2.0" {
		t.Errorf("the check: %+v", f)
	}
	if _, f := p.finish(agent); f.State != protocol.Succeeded || !strings.HasPrefix(f.Output, "v1.2.0-1-g") {
		t.Errorf("the agent: %+v", f)
	}
}

// TestLeftOutIsSaid holds that a run says what its agent has made and its work does not
// have, that it costs nothing else, and that an agent may commit in a repository of its own.
func TestLeftOutIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	made := `mkdir web && cd web && git init -q && echo app >index.html && git add -A && git commit -qm app && git log --format='%an <%ae>'
		cd .. && truncate -s 60000000 model.bin && git checkout -qb own && echo more >>README && git commit -qam mine`
	run := p.task(func(s *protocol.Start) {
		s.CommitName = `An "odd" agent`
		s.Agent, s.Command = "command", []string{"/bin/sh", "-ec", made + "; git checkout -q -; echo a >a"}
	})
	_, f := p.finish(run)
	if f.State != protocol.Succeeded || p.show(f.Tip, "a") != "a" || strings.Join(f.Paths, " ") != "a" ||
		!strings.HasPrefix(f.Output, `An "odd" agent <`) {
		t.Errorf("finished %+v", f)
	}
	var left []string
	for _, l := range f.Left {
		left = append(left, string(l.Kind)+" "+l.Name+" "+l.Why)
	}
	if got := strings.Join(left, "\n"); len(left) != 3 || !strings.HasPrefix(got, "branch own 1 commit that the work does not have") ||
		!strings.HasSuffix(got, "\nfile model.bin larger than 50 MB\nrepository web a repository of its own") {
		t.Errorf("left out:\n%s", got)
	}
}
