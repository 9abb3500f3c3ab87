package limits

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"yardmaster/internal/unixfile"
)

// process is what the kernel reports about a process.
type process struct {
	pid, parent  int
	threads, rss int64 // rss in bytes, including shared memory
}

// reader reads small files of the kernel without an allocation for each.
type reader struct{ buf [4096]byte }

func (r *reader) read(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	n, err := unix.Read(fd, r.buf[:])
	unix.Close(fd)
	if err != nil {
		return nil
	}
	return r.buf[:n]
}

var pageSize = int64(os.Getpagesize())

// process reads /proc/PID/stat: "pid (name) state ppid …". The name may contain any
// character. Threads are the 20th field, resident pages the 24th (proc(5)).
func (r *reader) process(pid int) (p process, ok bool) {
	b := r.read("/proc/" + strconv.Itoa(pid) + "/stat")
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 22 {
		return p, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64)
		return n
	}
	return process{pid: pid, parent: int(number(1)), threads: number(17), rss: number(21) * pageSize}, true
}

// table returns all processes of the machine by the id of their parent.
func (r *reader) table() map[int][]process {
	out := map[int][]process{}
	dir, err := os.Open("/proc")
	if err != nil {
		return out
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := r.process(pid); ok {
				out[p.parent] = append(out[p.parent], p)
			}
		}
	}
	return out
}

// threads counts the threads of all processes.
func threads(table map[int][]process) (n int64) {
	for _, children := range table {
		for _, p := range children {
			n += p.threads
		}
	}
	return n
}

// family returns a process and all processes below it.
func family(table map[int][]process, root int) (out []process) {
	for _, children := range table {
		for _, p := range children {
			if p.pid == root {
				out = append(out, p)
			}
		}
	}
	for i := 0; i < len(out); i++ {
		out = append(out, table[out[i].pid]...)
	}
	return out
}

// open counts the descriptors of a process. Since Linux 6.2 the size of the folder
// is their number. A process that this user may not examine counts as 0; its own
// resource limit still holds.
func (r *reader) open(pid int) int64 {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil || st.Size > 0 {
		return st.Size
	}
	f, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return int64(len(names))
}

// pss returns the memory of a process in which each shared page is divided by the
// number of processes that share it (the kernel's PSS); ok is false where this user
// may not read it.
func (r *reader) pss(pid int) (bytes int64, ok bool) {
	text := r.read(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	_, after, ok := strings.Cut(string(text), "\nPss:")
	f := strings.Fields(after)
	if !ok || len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	return n << 10, err == nil
}

// memory returns the memory of processes in bytes. Counting shared pages once is
// costly, so memory does it only if the plain sum reaches limit.
func (r *reader) memory(all []process, limit int64) (sum int64) {
	for _, p := range all {
		sum += p.rss
	}
	if sum < limit {
		return sum
	}
	sum = 0
	for _, p := range all {
		if n, ok := r.pss(p.pid); ok {
			sum += n
		} else {
			sum += p.rss
		}
	}
	return sum
}

// nameless returns the bytes that processes hold in nameless files, which no walk
// finds: on the disk of dir, and in memory (memfd_create).
func nameless(dir string, pids []int) (onDisk, inMemory int64) {
	type file struct {
		dev int64
		ino uint64
	}
	var at unix.Stat_t
	if unix.Stat(dir, &at) != nil {
		return 0, 0
	}
	seen := map[file]bool{}
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		names, _ := f.Readdirnames(-1)
		f.Close()
		for _, name := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
				st.Nlink > 0 || seen[file{unixfile.Wide(st.Dev), st.Ino}] {
				continue
			}
			seen[file{unixfile.Wide(st.Dev), st.Ino}] = true
			if st.Dev == at.Dev {
				onDisk += st.Blocks * 512
			} else if target, err := os.Readlink(dir + "/" + name); err == nil && strings.HasPrefix(target, "/memfd:") {
				inMemory += st.Blocks * 512
			}
		}
	}
	return onDisk, inMemory
}
