package github

import (
	"context"
	"encoding/hex"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	peer "yardmaster/internal/proof/github"
)

// plant puts an object into a repository, whatever git thinks of it, and answers its SHA.
func plant(t *testing.T, dir, kind, text string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", "hash-object", "-w", "--literally", "-t", kind, "--stdin")
	c.Dir, c.Stdin = dir, strings.NewReader(text)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestStrangeObjects holds that a repository is read although old programs have written
// some of its objects, and that one which tries to harm is refused for good.
func TestStrangeObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	dir := w.repo.Dir()
	commit := func(mode, name string) string {
		t.Helper()
		raw, err := hex.DecodeString(plant(t, dir, "blob", "text\n"))
		if err != nil {
			t.Fatal(err)
		}
		tree := plant(t, dir, "tree", mode+" "+name+"\x00"+string(raw))
		return plant(t, dir, "commit", "tree "+tree+"\nauthor A <a@b> 1 +051800\ncommitter A<a@b> 1 +0000\n\nold\n")
	}
	refer := func(sha string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", "update-ref", "refs/heads/strange", sha)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	refer(commit("0100644", "a.txt"))
	content, _, err := w.host.ReadFile(t.Context(), w.shop, "strange", "a.txt")
	if err != nil || string(content) != "text\n" {
		t.Errorf("of an old program: %q, %v", content, err)
	}
	refer(commit("100644", ".git"))
	_, _, err = w.host.ReadFile(t.Context(), w.shop, "strange", ".git")
	var busy *codehost.BusyError
	if err == nil || errors.As(err, &busy) {
		t.Errorf("a file .git: %v", err)
	}
}

// noting are Limits that note what calls cost, by who pays.
type noting struct {
	free
	mu   *sync.Mutex
	seen map[string][]pace.Cost
}

// Take implements Limits.
func (n noting) Take(_ context.Context, payer string, c pace.Cost) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[payer] = append(n.seen[payer], c)
	return nil
}

// TestCosts holds that calls which only ask are not paced as writes, whatever their
// method, and that a comment counts as content.
func TestCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	limits := noting{mu: &sync.Mutex{}, seen: map[string][]pace.Cost{}}
	w.host = w.connect(func(c *Config) { c.Limits = limits })
	ctx := codehost.WithUrgency(t.Context(), codehost.ForPeople)
	pull := w.pull("svc/a", map[string]string{"a.txt": "a\n"})
	inst := payer(w.inst.ID)
	if _, err := w.host.Threads(ctx, w.shop, int64(pull.Number)); err != nil {
		t.Fatal(err)
	}
	for who, all := range limits.seen {
		for _, c := range all {
			if c.Write || c.Content || c.Urgency != codehost.ForPeople || who != inst && who != "app" {
				t.Errorf("%s pays %+v to read", who, c)
			}
		}
	}
	limits.seen[inst] = nil
	if _, err := w.host.AddComment(ctx, w.shop, once1, int64(pull.Number), "x"); err != nil {
		t.Fatal(err)
	}
	all := limits.seen[inst]
	if len(all) != 2 || all[0].Write || !all[1].Write || !all[1].Content {
		t.Errorf("a comment costs %+v", all)
	}
}
