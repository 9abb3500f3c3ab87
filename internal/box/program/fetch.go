package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"yardmaster/internal/minisign"
	"yardmaster/internal/protocol"
	"yardmaster/internal/version"
)

// part ends the name of a file that is being downloaded.
const part = ".part"

// MostBytes is the largest program that a box takes.
const MostBytes = 1 << 30

// isDigest tells whether a text is a SHA-256 in hexadecimal, which names a folder.
func isDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// RefusedError says why a box does not take a program, whoever hands it out and however often.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func refuse(format string, a ...any) error { return &RefusedError{fmt.Sprintf(format, a...)} }

// Check refuses a program that a box of a version may not take, by what is said of it. Nothing
// that it lets through is believed before Fetch has verified it.
func Check(own string, keys []minisign.Key, u protocol.Update) error {
	here := runtime.GOOS + "/" + runtime.GOARCH
	switch {
	case len(keys) == 0:
		return refuse("This box was told no key of releases at its enrolment: name one with --release-keys.")
	case !isDigest(u.SHA256) || u.Size < 1 || u.Size > MostBytes:
		return refuse("What was said of the program is malformed.")
	case u.Target != here:
		return refuse("The program is for %q, and this machine is %s.", u.Target, here)
	case !version.Valid(u.Version) || !version.Valid(own):
		return refuse("%q cannot be told to come after %q, the version of this program.", u.Version, own)
	case !version.After(u.Version, own):
		return refuse("Version %s does not come after %s, which runs: a box takes no earlier one.", u.Version, own)
	case u.Oldest != "" && (!version.Valid(u.Oldest) || version.After(u.Oldest, own)):
		return refuse("Version %s follows %s and later, and this box runs %s.", u.Version, u.Oldest, own)
	}
	return nil
}

// Source opens what a release is, as the control plane hands it out.
type Source func(ctx context.Context, u protocol.Update) (io.ReadCloser, error)

// Fetch downloads the program that is wanted, verifies it, and only then moves it to its place. A
// *RefusedError is for good; after any other error the next call begins anew.
func (s *Store) Fetch(ctx context.Context, own string, keys []minisign.Key, from Source) error {
	now, err := s.State()
	if err != nil || now.Wanted == nil {
		return err
	}
	c := *now.Wanted
	if err := Check(own, keys, c.Of); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o711); err != nil {
		return err
	}
	file := filepath.Join(s.dir, c.Of.SHA256+part)
	if err := s.download(ctx, c.Of, keys, from, file); err != nil {
		return errors.Join(err, os.RemoveAll(file))
	}
	if err := s.place(file, c); err != nil {
		return err
	}
	return s.change(func(now *State) error {
		if now.Wanted == nil || now.Wanted.Command != c.Command {
			return nil // told otherwise meanwhile
		}
		now.Wanted, now.Ready = nil, &c
		return nil
	})
}

// download writes a program to a file and verifies it there.
func (s *Store) download(ctx context.Context, u protocol.Update, keys []minisign.Key, from Source, file string) (err error) {
	in, err := from(ctx, u)
	if err != nil {
		return err
	}
	defer in.Close()
	// A process that is started meanwhile inherits the open file for a moment, and the kernel
	// executes no file that is open for writing.
	syscall.ForkLock.RLock()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	sum := sha256.New()
	counted := &counter{}
	blake, err := minisign.Digest(io.TeeReader(io.LimitReader(in, u.Size+1), io.MultiWriter(out, sum, counted)))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if counted.n < u.Size {
		return fmt.Errorf("%d of %d bytes came", counted.n, u.Size)
	}
	return verify(u, keys, counted.n, hex.EncodeToString(sum.Sum(nil)), blake)
}

// verify holds what came against what was said, and what was said against the signature.
func verify(u protocol.Update, keys []minisign.Key, size int64, sha string, blake [minisign.DigestSize]byte) error {
	switch {
	case size != u.Size:
		return refuse("The program is longer than the %d bytes that were said.", u.Size)
	case sha != u.SHA256:
		return refuse("The program is not the one that was named: its SHA-256 is another.")
	}
	said, err := minisign.Verify(keys, blake, u.Signature)
	if err != nil {
		return refuse("The signature of the program was not accepted: %s.", err)
	}
	if said != u.Statement() {
		return refuse("The program is signed as another one than was said.")
	}
	return nil
}

// place moves a verified file to its place, executable.
func (s *Store) place(file string, c Copy) error {
	to := s.Path(c)
	err := os.Chmod(file, 0o755)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o711)
	}
	if err == nil {
		err = os.Rename(file, to)
	}
	if err == nil {
		err = errors.Join(syncDir(filepath.Dir(to)), syncDir(s.dir))
	}
	return err
}

// Whole tells whether the file of a program is what was verified.
func (s *Store) Whole(c Copy) error {
	f, err := os.Open(s.Path(c))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != c.Of.SHA256 {
		return errors.New("the file was changed")
	}
	return nil
}

// counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
