package connection

import (
	"context"
	"errors"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
)

// telling is a feed of a host that tells something while it is read.
type telling struct {
	installed
	meanwhile func()
}

// InstalledRepos implements codehost.Feed.
func (f telling) InstalledRepos(ctx context.Context, installation, cursor string) ([]codehost.RepoInfo, string, error) {
	page, next, err := f.installed.InstalledRepos(ctx, installation, cursor)
	if next == "" {
		f.meanwhile()
	}
	return page, next, err
}

// What was read before a host told something undoes nothing of it: the end of an installation,
// a suspension, the loss of one repository, a new name. It is read again.
func TestReconcileUndoesNothing(t *testing.T) {
	t.Parallel()
	there := codehost.Installation{ID: "1", Owner: codehost.User{Login: "Acme", ID: "100"}}
	gone, asleep := there, there
	gone.Gone, asleep.Suspended = true, true
	for name, c := range map[string]struct {
		tell func(*yard)
		want []string
	}{
		"removed": {func(y *yard) { y.told(gone, nil) },
			[]string{"acme: 11 Acme/a", "acme: 12 Acme/b", "acme: 13 Acme/c"}},
		"suspended": {func(y *yard) { y.told(asleep, nil) },
			[]string{"acme: 11 Acme/a", "acme: 12 Acme/b", "acme: 13 Acme/c"}},
		"one is taken out": {func(y *yard) {
			y.told(there, nil, info("12", "Acme/b").Repo)
		}, []string{"acme: 11 Acme/a enabled", "acme: 12 Acme/b", "acme: 13 Acme/c enabled"}},
		"renamed": {func(y *yard) { y.changed(codehost.RepoEvent{Info: info("11", "Acme/z"), Was: "Acme/a"}) },
			[]string{"acme: 11 Acme/z enabled", "acme: 12 Acme/b enabled", "acme: 13 Acme/c enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(y *yard) {
				y.write(func(tx *db.Tx) error { _, err := bind.Exec(tx, host, "100", "acme"); return err })
				read := func(f codehost.Feed) error {
					y.Hosts.Set(host, codehost.Sides{Host: &builtin.Host{}, Forge: codehost.NoForge{}, Feed: f})
					return y.Reconcile(context.Background(), host)
				}
				if err := read(installed{}); err != nil {
					y.t.Fatal(err)
				}
				y.now = y.now.Add(time.Hour)
				err := read(telling{meanwhile: func() {
					y.toldAt = y.now
					c.tell(y)
				}})
				if !errors.Is(err, errMeanwhile) {
					y.t.Errorf("a reading that is older than what was told: %v", err)
				}
				y.want(name, c.want...)
				y.now = y.now.Add(time.Second) // what is read after it counts
				if err := read(installed{}); err != nil {
					y.t.Fatal(err)
				}
				y.want("read again", "acme: 11 Acme/a enabled", "acme: 12 Acme/b enabled", "acme: 13 Acme/c enabled")
			})
		})
	}
}
