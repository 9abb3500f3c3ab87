package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestBubblewrapHasAUserNamespace holds that the capabilities of a root box's shim
// are not the machine's, and that no further user namespace can be made.
func TestBubblewrapHasAUserNamespace(t *testing.T) {
	every(t, func(t *testing.T, l Level) {
		out, err := output(t,
			folders(t, l, `readlink /proc/self/ns/user; stat -f -c '%b %S' /tmp /var/tmp /dev/shm; (echo x >/dev/planted) 2>/dev/null && echo `+
				`planted; exit 0`))
		ours, err2 := os.Readlink("/proc/self/ns/user")
		if err != nil || err2 != nil || strings.HasPrefix(out, ours+"\n") != (l != Bubblewrap) {
			t.Fatalf("ours is %s: %s %v %v", ours, out, err, err2)
		}
		if l != Bubblewrap {
			return
		}
		var blocks, size int64
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
			if _, err := fmt.Sscan(line, &blocks, &size); err != nil || blocks*size > tempBytes {
				t.Errorf("a folder for temporary files may hold %s (%v)", line, err)
			}
		}
	})
}

// TestBubblewrapThatCanLess holds that an older Bubblewrap, or one of root that
// cannot work in a user namespace, isolates as well except for that; the filter
// then keeps agents from making a namespace.
func TestBubblewrapThatCanLess(t *testing.T) {
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	program := openProgram(t)
	bin := filepath.Dir(program)
	script := "for a; do case $a in --help) echo '--unshare-user'; exit 0;; --userns|--disable-userns|--size) echo \"Unknown " +
		"option $a\" >&2; exit 1;; --) break;; esac; done\nexec " + real + " \"$@\""
	plant(t, filepath.Join(bin, "bwrap"), script)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if f := ProbeLevel(t.Context(), Bubblewrap, "", program); f.Err != nil || len(f.Open) > 0 {
		t.Errorf("%+v", f)
	}
	out, err := output(t, folders(t, Bubblewrap, `id -u; unshare -Ur id; readlink /proc/self/ns/user`))
	ours, err2 := os.Readlink("/proc/self/ns/user")
	if err != nil || err2 != nil || !strings.HasPrefix(out, strconv.Itoa(agentID())+"\n") || strings.Contains(out, "uid=") ||
		strings.HasSuffix(out, ours+"\n") != Separate() {
		t.Errorf("ours is %s: %s %v %v", ours, out, err, err2)
	}
}
