package limits

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"yardmaster/internal/unixfile"
)

// use is the disk space that folders take.
type use struct {
	bytes, inodes int64
	largest       int64 // length of the longest file in bytes
}

// walker adds up folders that an agent may be changing. It follows no link, opens
// only folders, one at a time at any depth, and stops when a limit is reached.
type walker struct {
	ctx   context.Context
	most  Limits
	use   use
	links map[uint64]bool // inodes seen of files with several names, which count once
	names []byte
}

// walk adds up folders until a limit is reached or ctx ends.
func walk(ctx context.Context, most Limits, dirs ...string) use {
	w := &walker{ctx: ctx, most: most, links: map[uint64]bool{}, names: make([]byte, 32<<10)}
	for _, dir := range dirs {
		if fd, err := unix.Open(dir, folderFlags, 0); err == nil {
			w.tree(fd)
		}
	}
	return w.use
}

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

func (w *walker) enough() bool {
	return w.ctx.Err() != nil || w.most.Inodes > 0 && w.use.inodes >= w.most.Inodes || w.most.Disk > 0 && w.use.bytes >= w.most.Disk
}

// level is a folder on the path of the walk: its identity, to be checked on the way
// back up, and its subfolders that are still to be visited.
type level struct {
	dev   int64
	ino   uint64
	below []string
}

// tree adds up an open folder and everything below it, and closes it.
func (w *walker) tree(fd int) {
	defer func() { unix.Close(fd) }()
	way := []level{w.folder(fd)}
	for !w.enough() {
		here := &way[len(way)-1]
		if n := len(here.below); n > 0 {
			name := here.below[n-1]
			here.below = here.below[:n-1]
			if sub, err := enter(fd, name); err == nil {
				unix.Close(fd)
				fd = sub
				way = append(way, w.folder(fd))
			}
			continue
		}
		if way = way[:len(way)-1]; len(way) == 0 {
			return
		}
		up, err := unix.Openat(fd, "..", folderFlags, 0)
		if err != nil {
			return
		}
		unix.Close(fd)
		fd = up
		var st unix.Stat_t
		if back := way[len(way)-1]; unix.Fstat(fd, &st) != nil || unixfile.Wide(st.Dev) != back.dev || st.Ino != back.ino {
			return // the folder was moved meanwhile; the next walk counts it
		}
	}
}

// enter opens a folder. If its owner, the box's own user, has no access to it,
// enter first gives the owner access, so that an agent can hide nothing that way.
func enter(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, folderFlags, 0)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	if err := unixfile.Admit(dir, name); err != nil {
		return -1, err
	}
	return unix.Openat(dir, name, folderFlags, 0)
}

// folder adds up the entries of one open folder.
func (w *walker) folder(fd int) (l level) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		l.dev, l.ino = unixfile.Wide(st.Dev), st.Ino
	}
	list := lister{fd: fd, buf: w.names}
	for !w.enough() {
		names := list.next()
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			if w.file(fd, name) {
				l.below = append(l.below, name)
			}
		}
	}
	list.close()
	return l
}

// file adds up one entry and tells whether it is a folder.
func (w *walker) file(dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false // deleted meanwhile
	}
	folder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if st.Nlink > 1 && !folder {
		if w.links[st.Ino] {
			return false
		}
		w.links[st.Ino] = true
	}
	w.use.inodes++
	w.use.bytes += st.Blocks * 512
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		w.use.largest = max(w.use.largest, st.Size)
	}
	return folder
}
