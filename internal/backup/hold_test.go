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
