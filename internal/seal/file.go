package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"yardmaster/internal/durable"
)

// leftover is what a file that is being written is called: a process that was
// killed leaves it behind, with nothing in it that anything is sealed with.
const leftover = ".key-*"

// Read takes the master keys from a file of a key a line, the one that seals
// first. The error is fs.ErrNotExist where there is no such file.
func Read(path string) (*Keyring, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	k, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// Create writes k to a file that does not exist, readable by the owner only. A
// file that somebody else made first stays as it is; ours tells which it was.
func (k *Keyring) Create(path string) (ours bool, err error) {
	f, err := durable.Temporary(path, leftover, []byte(k.Reveal()))
	if err != nil {
		return false, fmt.Errorf("create the master key: %w", err)
	}
	defer os.Remove(f)
	err = os.Link(f, path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err == nil {
		err = durable.Name(path)
	}
	if err != nil {
		return false, fmt.Errorf("create the master key: %w", err)
	}
	return true, nil
}

// Replace writes k in place of the keys of a file, all or nothing even if the
// power goes, for the owner that the file has. The caller holds off other
// writers.
func (k *Keyring) Replace(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("replace the master key: %w", err)
	}
	stale, err := filepath.Glob(filepath.Join(filepath.Dir(path), leftover))
	if err != nil {
		return err
	}
	for _, old := range stale {
		os.Remove(old)
	}
	if err := durable.Replace(path, leftover, []byte(k.Reveal())); err != nil {
		return fmt.Errorf("replace the master key: %w", err)
	}
	return nil
}
