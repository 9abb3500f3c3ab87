package notary

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"yardmaster/internal/durable"
	"yardmaster/internal/event/hashchain"
)

// maxSize limits a file of notes, in bytes. Older notes are removed to stay below
// it, but never those that a chain is compared with.
const maxSize = 8 << 20

// file is the file that keeps the notes: lines that are only appended.
type file struct {
	path    string
	max     int // bytes
	trusted []ed25519.PublicKey
}

// read reads the notes; there is false if there is no file yet.
func (f file) read() (b *hashchain.Book, there bool, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err := hashchain.ReadBook(bytes.NewReader(nil), f.trusted...)
		return b, false, err
	}
	if err != nil {
		return nil, false, err
	}
	b, err = hashchain.ReadBook(bytes.NewReader(text), f.trusted...)
	return b, true, err
}

// add appends lines and syncs them to disk. Several processes may call it at the
// same time.
func (f file) add(lines [][]byte) error {
	out, err := f.open()
	if err != nil {
		return err
	}
	defer out.Close()
	size, err := f.trim(out)
	if err != nil {
		return err
	}
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	if _, err := out.Write(text); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if size == 0 {
		if err := durable.Name(f.path); err != nil {
			return err
		}
	}
	if int(size)+len(text) > f.max {
		return f.shorten()
	}
	return nil
}

// open opens the file with an exclusive lock.
func (f file) open() (*os.File, error) {
	for {
		out, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(out.Fd()), syscall.LOCK_EX); err != nil {
			out.Close()
			return nil, err
		}
		mine, err := out.Stat()
		if err != nil {
			out.Close()
			return nil, err
		}
		if now, err := os.Stat(f.path); err == nil && os.SameFile(mine, now) {
			return out, nil
		}
		out.Close() // another process has shortened the file meanwhile
	}
}

// writable returns an error if the file cannot be made or written to.
func (f file) writable() error {
	out, err := f.open()
	if err != nil {
		return err
	}
	return out.Close()
}

// trim removes an incomplete last line, which a killed process has left, and
// returns the size of the file.
func (f file) trim(out *os.File) (size int64, err error) {
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	whole := int64(0) // position after the last line break
	chunk := make([]byte, 4096)
	for end := info.Size(); end > 0 && whole == 0; {
		begin := max(0, end-int64(len(chunk)))
		part := chunk[:end-begin]
		if _, err := out.ReadAt(part, begin); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			whole = begin + int64(i) + 1
		}
		end = begin
	}
	if whole < info.Size() {
		err = out.Truncate(whole)
	}
	return whole, err
}

// shorten removes old notes.
func (f file) shorten() error {
	b, _, err := f.read()
	if err != nil {
		return err
	}
	return f.replace(b.Shorten(f.max))
}

func (f file) replace(text []byte) error {
	if err := durable.Replace(f.path, ".heads-*", text); err != nil {
		return fmt.Errorf("make room: %w", err)
	}
	return nil
}
