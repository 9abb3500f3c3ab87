package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"yardmaster/internal/box/roots"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/unixfile"
)

// release unlocks the work folder for another process.
func (s *setup) release() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// apart tells whether the work folder is not the data folder.
func (s *setup) apart() (bool, error) {
	data, err := filepath.EvalSymlinks(s.data)
	return data != s.work, err
}

// lockWork locks a work folder that is not the data folder, whose lock is held
// already. Without it another box could take this box's runs for leftovers and
// delete them.
func (s *setup) lockWork() error {
	if apart, err := s.apart(); err != nil || !apart {
		return err
	}
	name := filepath.Join(s.work, lockFile)
	if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
		s.made = append(s.made, name)
	}
	var err error
	s.lock, err = lockDir(s.work)
	return err
}

// fill makes the box's folders, and puts into the work folder what runs need there.
func (s *setup) fill(self string) error {
	for _, name := range s.folders() {
		if err := s.makeFolder(name); err != nil {
			return err
		}
		// Git makes the files in these folders readable for all. Their paths are no
		// secret.
		if err := sandbox.Admit(name); err != nil {
			return err
		}
	}
	if err := s.placeAuthorities(); err != nil {
		return err
	}
	return s.placeProgram(self)
}

// placeAuthorities puts the certificate authorities that this process trusts where git
// and agents can read them, if the operator has named any.
func (s *setup) placeAuthorities() error {
	text, err := roots.Bundle()
	if err != nil {
		return &UnfitError{Reason: fmt.Sprintf("git and agents cannot be told whom to trust (%s): correct SSL_CERT_FILE", err)}
	}
	path := filepath.Join(s.work, "authorities.pem")
	if text == nil {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) { // of an earlier start
			return err
		}
		return nil
	}
	if s.authorities != path { // runs read it while the folder is made again
		s.authorities = path
	}
	s.made = append(s.made, missing(path)...)
	if err := os.WriteFile(path+".next", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}

// restore makes again what was deleted of the work folder. That the folder is there says
// nothing: a run that was claimed before the box knew has made its own folders in it. A
// folder that somebody else has put in its place is an *UnfitError.
func (s *setup) restore(self string) error {
	apart, err := s.apart()
	if err != nil {
		return unusable(s.data, "--data", err)
	}
	checkMine := func() error { return nil }
	if apart && sandbox.Separate() {
		checkMine = func() error { return checkOwner(s.work, false) }
	}
	if err := checkMine(); err != nil {
		return err
	}
	if s.whole() {
		return nil
	}
	err = s.makeFolder(s.work)
	if err == nil {
		err = checkMine()
	}
	if err == nil && !s.locked() {
		s.release() // the lock of the deleted folder
		err = s.lockWork()
	}
	if err == nil {
		err = s.fill(self)
	}
	var unfit *UnfitError
	if err != nil && !errors.As(err, &unfit) {
		return unusable(s.work, "--work", err)
	}
	return err
}

// folders are those that the box makes in the work folder, and the data folder's runs.
func (s *setup) folders() []string {
	return []string{filepath.Join(s.work, "runs"), filepath.Join(s.work, "cache"), filepath.Join(s.data, "runs")}
}

// copied is where the copy of the program lies that agents run if they cannot enter the
// folder of the program itself.
func (s *setup) copied() string { return filepath.Join(s.work, "bin", "yardmaster") }

// whole tells whether nothing lacks of what fill makes and, if the work folder lies apart,
// of its lock.
func (s *setup) whole() bool {
	parts := s.folders()
	if s.authorities != "" {
		parts = append(parts, s.authorities)
	}
	if s.program == s.copied() {
		parts = append(parts, s.program)
	}
	apart, err := s.apart()
	return err == nil && (!apart || s.locked()) && !slices.ContainsFunc(parts, func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, os.ErrNotExist)
	})
}

// locked tells whether the lock in the work folder is the one that this process holds.
func (s *setup) locked() bool {
	if s.lock == nil {
		return false
	}
	held, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(filepath.Join(s.work, lockFile))
	return err == nil && os.SameFile(held, there)
}

// makeFolder makes a folder and notes it for removeMade.
func (s *setup) makeFolder(dir string) error {
	s.made = append(s.made, missing(dir)...)
	return makeFolder(dir)
}

// missing lists the folders on the way to dir that do not exist, dir included, the
// outermost first.
func missing(dir string) (out []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			slices.Reverse(out)
			return out
		}
		out = append(out, dir)
	}
}

// removeMade deletes the files and folders that setup has made, unless they hold
// something, and unlocks the work folder.
func (s *setup) removeMade() {
	for _, path := range slices.Backward(s.made) {
		_ = os.Remove(path)
	}
	s.release()
}

// makeFolder makes a folder of the box and lets the agents' user, if that is
// another one, pass through it. An existing folder keeps its mode.
func makeFolder(dir string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return err
	case err == nil && sandbox.Separate():
		return os.Chmod(dir, 0o711)
	}
	return err
}

// checkOwner returns an *UnfitError if an existing folder may not be the box's own:
// where every user may make folders, somebody else may have made one of that name.
// A folder that the operator has named may be a link and, unless agents are another
// user, may be writable by its group.
func checkOwner(dir string, named bool) error {
	var st unix.Stat_t
	look, others := unix.Lstat, int64(0o022)
	if named {
		look = unix.Stat
	}
	if named && !sandbox.Separate() { // else root would run a program from a folder that its group can write
		others = 0o002
	}
	err := look(dir, &st)
	refuse := func(what string) error {
		return &UnfitError{place: true, Reason: dir + " " + what + ": choose another folder with --work"}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return unusable(dir, "--work", err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return refuse("is not a folder")
	case int(st.Uid) != os.Geteuid():
		return refuse(fmt.Sprintf("belongs to another user (%d)", st.Uid))
	case unixfile.Wide(st.Mode)&others != 0:
		return refuse(fmt.Sprintf("is writable by others (mode %#o)", st.Mode&0o7777))
	}
	return nil
}

// ownLink tells whether a link is the box's own and in a folder that nobody else
// can write.
func ownLink(name string) bool {
	var st unix.Stat_t
	return unix.Lstat(name, &st) == nil && int(st.Uid) == os.Geteuid() && checkOwner(filepath.Dir(name), true) == nil
}
