package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// table reads the table of processes.
func table() (out []process) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile
		}
		if pid, ppid, state, ok := parseStat(b); ok {
			out = append(out, process{pid, ppid, state != 'Z' && state != 'X'})
		}
	}
	return out
}

// parseStat reads "pid (name) state ppid …"; the name may contain any character.
func parseStat(b []byte) (pid, ppid int, state byte, ok bool) {
	open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || shut < open {
		return 0, 0, 0, false
	}
	f := bytes.Fields(b[shut+1:])
	if len(f) < 2 || len(f[0]) != 1 {
		return 0, 0, 0, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	ppid, err2 := strconv.Atoi(string(f[1]))
	return pid, ppid, f[0][0], err1 == nil && err2 == nil
}
