package limits

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"yardmaster/internal/unixfile"
)

// The sizes of the defaults. They stop runs that have gone wrong, not large ones: a
// build of a browser needs more, and its operator sets other limits.
const (
	leastMemory      = 1 << 30  // a compiler and a language server
	defaultProcesses = 2048     // ten test runners of a Java build with their threads
	defaultOpen      = 64 << 10 // a watcher of a large tree, several times
	mostDisk         = 20 << 30
	leastDisk        = 1 << 30
	mostInodes       = 1 << 20 // three times the modules of a large web project
	leastInodes      = 100_000
)

// Default returns the limits of one of slots concurrent runs on this machine, whose
// folders are on the disk of dir: its share of four fifths of the memory; 2048
// processes, or fewer where the kernel has few; half of the free disk, but at most
// 20 GiB and a million files; no limit of processors. A file may be as large as all
// files together.
func Default(slots int, dir string) Limits {
	runs := int64(max(slots, 1))
	l := Limits{
		Processes: min(defaultProcesses, kernelNumber("/proc/sys/kernel/pid_max", 32768)/(2*(runs+1))),
		OpenFiles: defaultOpen, Disk: mostDisk, Inodes: mostInodes,
	}
	if total := totalMemory(); total > 0 {
		l.Memory = min(max(leastMemory, total*4/5/runs), total*9/10)
	}
	if s, err := unixfile.Room(dir); err == nil {
		l.Disk = min(mostDisk, max(leastDisk, s.Free/2))
		if s.Files > 0 {
			l.Inodes = min(mostInodes, max(leastInodes, s.FreeFiles/2))
		}
	}
	l.FileBytes = l.Disk
	return l
}

// totalMemory returns the memory in bytes that this process and its children may
// use: the machine's, or that of a container.
func totalMemory() int64 {
	total := meminfo("MemTotal:")
	own, mount, err := ownGroup()
	if err != nil {
		return total
	}
	for dir := filepath.Join(mount, own); strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		if n := kernelNumber(filepath.Join(dir, "memory.max"), 0); n > 0 && (total == 0 || n < total) {
			total = n
		}
	}
	return total
}

// meminfo returns the value of one line of /proc/meminfo in bytes, 0 if there is no
// such line.
func meminfo(name string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// kernelNumber reads a file with one number; otherwise is the answer if it cannot
// be read.
func kernelNumber(path string, otherwise int64) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}
