package app

import (
	"fmt"
	"os"

	"yardmaster/internal/remote"
)

// sshKey reads the key from which those follow that dial machines; nil: the configuration
// names none.
func sshKey(path string) (*remote.Key, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("ssh-key-file: %w", err)
	}
	key, err := remote.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("ssh-key-file %s: %w", path, err)
	}
	return key, nil
}
