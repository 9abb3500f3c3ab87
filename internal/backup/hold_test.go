package backup

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A backup that root makes first leaves a lock that the user of the server can open.
func TestHoldIsOfTheServersUser(t *testing.T) {
	t.Parallel()
	root, owner := t.TempDir(), os.Geteuid()
	if owner == 0 {
		owner = 65534
		if err := os.Chown(root, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	release, err := Hold(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(root, holdFile))
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != owner {
		t.Errorf("the lock is %v, %v; it should be of user %d", info, err, owner)
	}
	if _, may, err := Deleting(root); may || err != nil {
		t.Error("something may be deleted meanwhile:", err)
	}
	release()
	done, may, err := Deleting(root)
	if !may || err != nil {
		t.Fatal("nothing may be deleted afterwards:", err)
	}
	done()
}

// The user of the server gets no file of root's by a link in the place of the lock.
func TestHoldGivesNothingAway(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(old, new string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
			if os.Geteuid() == 0 {
				if err := os.Chown(root, 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := link(other, filepath.Join(root, holdFile)); err != nil {
				t.Fatal(err)
			}
			release, err := Hold(t.Context(), root)
			if (err == nil) != (name == "hard") {
				t.Error(err)
			}
			if err == nil {
				release()
			}
			info, err := os.Stat(other)
			if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
				t.Errorf("it was given away: %v, %v", info, err)
			}
		})
	}
}
