package creation

import (
	"context"
	"errors"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// CreateRepo implements codehost.Forge.
func (f *far) CreateRepo(ctx context.Context, owner string, once codehost.Once, n codehost.NewRepo) (codehost.Repo, error) {
	f.calls++
	if n.Installation == "" {
		return codehost.Repo{}, errors.New("it may be made in whatever installation has the name of the owner")
	}
	r := codehost.Repo{Host: "elsewhere", ID: "id-" + n.Name, Owner: owner, Name: n.Name}
	if f.before != nil {
		return codehost.Repo{}, f.before
	}
	err := f.Create(ctx, r, codehost.CreateOptions{Private: n.Private})
	if errors.Is(err, codehost.ErrExists) && once != "" {
		if info, failure := f.Info(ctx, r); failure == nil && info.Empty {
			err = nil
		}
	}
	return r, errors.Join(err, f.after)
}

// A call that is so slow that a node has gone on with its creation changes nothing.
func TestLateCall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		c, _, err := y.begun(y.ctx, web)
		if err != nil {
			y.t.Fatal(err)
		}
		y.pass(hold)
		if final, err := y.first(y.ctx, c); final || !errors.Is(err, codehost.ErrExists) {
			y.t.Errorf("%v, %v", final, err)
		}
		y.holds("late", done, "acme elsewhere acme-org/web", "repo.created")
	})
}

// Whoever has waited for a host that does not answer is told so, and of what it has refused meanwhile.
func TestWaitedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		c, _, err := y.begun(y.ctx, web)
		if err != nil {
			y.t.Fatal(err)
		}
		y.far.before = lost
		if _, err := y.first(y.ctx, c); err == nil {
			y.t.Fatal("no failure")
		}
		if _, err := y.told(y.ctx, c.ID); fault.From(err).Slug != "repo-being-made" {
			y.t.Errorf("not answered: %v", err)
		}
		y.far.before = codehost.ErrCannot
		y.pass(shortest)
		if _, err := y.told(y.ctx, c.ID); fault.From(err).Slug != "repo-not-made" {
			y.t.Errorf("refused meanwhile: %v", err)
		}
	})
}
