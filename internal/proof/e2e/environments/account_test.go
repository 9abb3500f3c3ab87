//go:build environments

package environments

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// account is an ordinary user of the machine, made for one row.
type account struct {
	name, home string
	id         int
}

var (
	accounts atomic.Int64
	// database is held while users are added and removed: useradd fails if another one
	// is running.
	database sync.Mutex
)

// newAccount makes a user, and removes the user and its home after the row.
func newAccount(p *place) *account {
	p.t.Helper()
	a := &account{name: fmt.Sprintf("ymenv%d-%d", os.Getpid(), accounts.Add(1))}
	if out, err := admin(p.t, "useradd", "-m", a.name); err != nil {
		p.fatalf("useradd: %v: %s", err, out)
	}
	p.t.Cleanup(func() {
		// Remaining processes of the user were started by this row, which has failed
		// for them already.
		for pid := range processes() {
			if st, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil && int(st.Sys().(*syscall.Stat_t).Uid) == a.id && a.id > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if out, err := admin(p.t, "userdel", "-r", a.name); err != nil {
			p.failf("userdel: %v: %s", err, out)
		}
	})
	u, err := user.Lookup(a.name)
	p.must(err)
	a.home = u.HomeDir
	a.id, err = strconv.Atoi(u.Uid)
	p.must(err)
	// Not every machine makes homes private.
	p.must(os.Chmod(a.home, 0o700))
	return a
}

// admin runs a tool on the user database. It tries again for a while, because another
// process may have locked the database, or a killed process may not have ended.
func admin(t *testing.T, argv ...string) ([]byte, error) {
	database.Lock()
	defer database.Unlock()
	for late := time.Now().Add(patience.Of(t)); ; { // it is a process each time, and waits a moment itself
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		again := strings.Contains(string(out), "cannot lock") || strings.Contains(string(out), "currently used by")
		if err == nil || !again || time.Now().After(late) {
			return out, err
		}
	}
}
