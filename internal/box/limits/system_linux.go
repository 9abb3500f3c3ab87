package limits

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"yardmaster/internal/unixfile"
)

// refusal is why this system has no control groups; nil: it may have them.
var refusal error

// measured tells whether the processes of a run are measured.
const measured = true

// inGroup starts a program in the control group of a folder.
func inGroup(folder *os.File) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// temporary returns the contents of a sandbox's temporary folders, which are in
// memory.
func temporary(all []process) (bytes, inodes int64) {
	for i := len(all) - 1; i > 0; i-- { // the first process is outside of the sandbox
		root := fmt.Sprintf("/proc/%d/root", all[i].pid)
		found := false
		for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
			var fs unix.Statfs_t
			if unix.Statfs(root+dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
				found = true
				bytes += int64(fs.Blocks-fs.Bfree) * unixfile.Wide(fs.Bsize)
				inodes += int64(fs.Files - fs.Ffree)
			}
		}
		if found {
			break
		}
	}
	return bytes, inodes
}

// lister lists an open folder into a buffer.
type lister struct {
	fd    int
	buf   []byte
	names []string
}

// next answers some more names, none at the end.
func (l *lister) next() []string {
	l.names = l.names[:0]
	for len(l.names) == 0 {
		n, err := unix.Getdents(l.fd, l.buf)
		if err != nil || n <= 0 {
			break
		}
		_, _, l.names = unix.ParseDirent(l.buf[:n], -1, l.names)
	}
	return l.names
}

func (l *lister) close() {}
