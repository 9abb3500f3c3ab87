package flow

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	peer "yardmaster/internal/proof/github"
)

// opened is a pull request that is opened at a host.
var opened = intent.Declare[int, string]("test.opened", false)

// opener carries out opened, and does at the end what teller does.
type opener struct{ teller }

// Do implements intent.Handler.
func (s opener) Do(ctx context.Context, f codehost.Forge, c intent.Call[int]) (string, error) {
	p, err := f.OpenPull(ctx, c.Repo.HostRepo(), c.ID, codehost.NewPull{
		Title: fmt.Sprint("Change ", c.Args), Head: fmt.Sprint("svc/", c.Args), Base: "main",
	})
	return fmt.Sprint(p.Number), err
}

// Five hundred pull requests are to be opened at once, and GitHub refuses one without
// saying for how long. Each is opened once; nothing is refused afterwards on either node,
// and the merge of a person does not wait for the rest.
func TestStormOfPullRequests(t *testing.T) {
	t.Parallel()
	const all = 500
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			s := newStorm(t, e)
			for _, node := range s.nodes {
				opened.Handle(node, opener{teller{s}})
			}
			head := s.at.Commit(s.peer.Person("bob"), "work", "Say where", map[string]string{"where.md": "Here.\n"})
			var refs strings.Builder
			for n := range all {
				fmt.Fprintf(&refs, "create refs/heads/svc/%d %s\n", n, head)
			}
			git := exec.CommandContext(t.Context(), "git", "-C", s.at.Dir(), "update-ref", "--stdin")
			git.Stdin = strings.NewReader(refs.String())
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			refusal := s.peer.Break(peer.Fault{Operation: "POST /repos/{owner}/{repo}/pulls", Effect: peer.Throttle, Times: 1})
			begin := s.peer.Now()
			s.write(func(tx *db.Tx) error {
				for n := range all {
					if _, err := opened.Put(tx, intent.Want[int]{
						Repo: s.repo, Object: fmt.Sprint("pull ", n), Rank: intent.ForRuns, Args: n,
					}); err != nil {
						return err
					}
				}
				return nil
			})
			for len(s.done) < all+1 {
				if s.peer.Now().Sub(begin) > 6*time.Hour {
					t.Fatalf("%d of %d were opened after %s", len(s.done), all, s.peer.Now().Sub(begin))
				}
				s.passes()
				s.until(s.peer.Now().Add(10 * time.Second))
			}
			if took := s.peer.Now().Sub(begin); took < time.Hour {
				t.Errorf("it took %s: more than the limit of an hour was made", took)
			}
			if s.waited > 2*time.Minute || s.at.Pull(int(s.number)).Merged() == "" {
				t.Errorf("the person waited %s", s.waited)
			}
			pulls, err := s.hosts[0].OpenPulls(t.Context(), s.repo.HostRepo())
			if err != nil {
				t.Fatal(err)
			}
			heads := map[string]bool{}
			for _, p := range pulls {
				heads[p.HeadRef] = true
			}
			if len(pulls) != all || len(heads) != all {
				t.Errorf("%d pull requests of %d branches are open", len(pulls), len(heads))
			}
			if s.peer.Seen(refusal) != 1 || s.counts.refused != 1 {
				t.Errorf("GitHub refused %d requests, %d of them by order", s.counts.refused, s.peer.Seen(refusal))
			}
		})
	}
}
