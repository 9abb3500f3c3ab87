package flow

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/command"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// chatty is a host with a thread, what commands had done, and whose threads were read.
type chatty struct {
	codehost.NoForge
	command.Work
	Reviewer
	talk  []codehost.Comment // in the conversation
	said  []codehost.Comment // in the thread
	asked int
	done  []string
	read  []int64
}

func (*chatty) Can(c codehost.Capability) bool { return c == codehost.KeepPulls }

func (c *chatty) Threads(context.Context, codehost.Repo, int64) ([]codehost.Thread, error) {
	c.asked++
	return []codehost.Thread{{ID: "T", Path: "a.go", Line: 3, Comments: c.said}}, nil
}

func (c *chatty) CommentsOf(_ context.Context, _ codehost.Repo, number int64, _ time.Time) ([]codehost.Comment, error) {
	all := slices.Clone(c.talk)
	for i := range all {
		all[i].ID += fmt.Sprint(number) // as there is one of each comment
	}
	return all, nil
}

func (*chatty) ReviewsOf(context.Context, codehost.Repo, int64) ([]codehost.Review, error) {
	return nil, nil
}

func (*chatty) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	if login == "ann" {
		return codehost.PermitWrite, nil
	}
	return codehost.PermitRead, nil
}

func (*chatty) At(string) []string { return []string{"yard"} }

func (*chatty) Asker(_ *db.Tx, _ string, who codehost.User) (command.Asker, error) {
	return command.Asker{Label: "code-host:" + who.Login}, nil
}

func (*chatty) ByNumber(_ *db.Tx, _ string, number int64) (string, bool, error) {
	return map[int64]string{1: "ours", 2: "theirs", 3: "over"}[number], true, nil
}

func (c *chatty) Rebase(*db.Tx, string) error { c.done = append(c.done, "rebase"); return nil }

func (c *chatty) Stop(*db.Tx, string, command.Asker) error {
	c.done = append(c.done, "stop")
	return nil
}

func (c *chatty) ReadThreads(_ context.Context, _ repo.Ref, _ string, number int64) error {
	c.read = append(c.read, number)
	return nil
}

// What was said about an open pull request since the last sweep is heard, in its threads if
// agents look after it: here a stop in the conversation of both, and a rebase in a thread of
// the first. A command counts once, also if it was delivered.
func TestSaidIsRead(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := &chatty{}
		hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
		hosts := codehost.NewHosts(map[string]codehost.Sides{"elsewhere": {Host: &builtin.Host{}, Forge: c}})
		h := HostEvents{DB: d, Hosts: hosts, Reviews: c, Commands: command.New(command.Needs{
			DB: d, Hosts: hosts, Logger: log, Intents: intent.New(intent.Needs{DB: d, Due: duetest.New(d, hub), Hosts: hosts, Logger: log}),
			Work: c, Names: c,
		})}
		if err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere"},
				seed.Pull{ID: "ours", Account: "acme", Repo: "r1", Number: 1},
				seed.Pull{ID: "theirs", Account: "acme", Repo: "r1", Number: 2, Author: "person"},
				seed.Pull{ID: "over", Account: "acme", Repo: "r1", Number: 3, State: "closed"})
		}); err != nil {
			t.Fatal(err)
		}
		since := time.Unix(1_800_000_000, 0)
		comment := func(id, login, body string, at time.Duration) {
			who := codehost.User{Login: login, Own: login == "yard[bot]", Bot: login == "yard[bot]"}
			c.said = append(c.said, codehost.Comment{ID: id, Author: who, Body: body, CreatedAt: since.Add(at)})
		}
		comment("1", "ann", "@yard stop", -time.Second) // it was read, or nobody was to be heard then
		comment("2", "ann", "@yard rebase", 0)
		comment("3", "eve", "@yard stop", time.Second)
		comment("4", "yard[bot]", "@yard stop", time.Second)
		c.talk = []codehost.Comment{
			{ID: "1", Author: codehost.User{Login: "ann"}, Body: "@yard stop", CreatedAt: since.Add(-time.Second), UpdatedAt: since},
			{ID: "2", Author: codehost.User{Login: "ann"}, Body: "@yard stop", CreatedAt: since.Add(time.Second)},
			{ID: "3", Author: codehost.User{Login: "eve"}, Body: "@yard rebase", CreatedAt: since.Add(time.Second)},
		}
		ctx := policy.With(t.Context(), policy.Actor{Credential: policy.System})
		web := codehost.Repo{Host: "elsewhere", Owner: "acme", Name: "web"}
		for range 2 {
			for number := range int64(4) {
				e := codehost.ThreadChanged{Happening: codehost.Happening{Repo: web, At: since}, Number: number}
				if err := h.Apply(ctx, "elsewhere", e); err != nil {
					t.Fatal(err)
				}
			}
		}
		late := codehost.Commented{
			Happening: codehost.Happening{Repo: web, Action: codehost.ActionCreated, By: codehost.User{Login: "ann"}},
			Number:    1, Pull: true, Comment: c.said[1], Thread: "a.go:3",
		}
		if err := h.Apply(ctx, "elsewhere", late); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.done, []string{"stop", "rebase", "stop"}) || c.asked != 2 || !slices.Equal(c.read, []int64{1, 1}) {
			t.Errorf("done %q, asked for threads %d times, read those of %v", c.done, c.asked, c.read)
		}
	})
}
