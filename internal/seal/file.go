package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"yardmaster/internal/durable"
)

// leftover is the name pattern of a temporary key file. A killed process leaves
// the file behind; nothing is sealed with the key in it.
const leftover = ".key-*"

// Read reads the master keys from a file with a key on each line, the sealing key
// first. It fails with fs.ErrNotExist if there is no such file.
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

// Create writes k to a new file that only the owner can read. If another process
// has created the file first, Create leaves it unchanged and ours is false.
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

// Replace replaces the keys in a file by k, and keeps the file's owner. Even a loss
// of power leaves either the old keys or the new ones. The caller excludes other
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
