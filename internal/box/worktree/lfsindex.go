package worktree

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"yardmaster/internal/unixfile"
)

// refreshIndex writes into the index of a fresh checkout how some of its files are now, as
// git does after a filter has written them: git would otherwise take each for changed. An
// index of another format is left as it is, which costs no more than that.
func refreshIndex(name string, files map[string]os.FileInfo) error {
	if len(files) == 0 {
		return nil
	}
	index, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	body := len(index) - sha1.Size
	if body < 12 || string(index[:4]) != "DIRC" || binary.BigEndian.Uint32(index[4:]) != 2 {
		return nil
	}
	if sum := sha1.Sum(index[:body]); !bytes.Equal(sum[:], index[body:]) {
		return nil
	}
	at := 12
	for range binary.BigEndian.Uint32(index[8:]) {
		if at+62 > body {
			return nil
		}
		end := bytes.IndexByte(index[at+62:body], 0)
		if end < 0 {
			return nil
		}
		if info, ok := files[string(index[at+62:at+62+end])]; ok {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				stat(index[at:], st)
			}
		}
		at += (62 + end + 8) / 8 * 8
	}
	sum := sha1.Sum(index[:body])
	fresh := name + ".lock" // as git's own, which must not run meanwhile
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(index[:body:body], sum[:]...))
	return errors.Join(err, f.Close(), os.Rename(fresh, name))
}

// stat writes the state of a file into an entry of an index. Git keeps 32 bits of each.
func stat(entry []byte, st *syscall.Stat_t) {
	put := func(at int, v uint32) { binary.BigEndian.PutUint32(entry[at:], v) }
	changed, modified := unixfile.Times(st)
	put(0, uint32(changed.Sec))
	put(4, uint32(changed.Nsec))
	put(8, uint32(modified.Sec))
	put(12, uint32(modified.Nsec))
	put(16, uint32(st.Dev))
	put(20, uint32(st.Ino))
	put(28, st.Uid)
	put(32, st.Gid)
	put(36, uint32(st.Size))
}
