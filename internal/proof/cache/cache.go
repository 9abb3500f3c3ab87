// Package cache is the folder for what tests and tools fetch, build and remember: the
// user's own, so that a fresh clone has it as well. Each thing in it is named by its
// version.
package cache

import (
	"os"
	"path/filepath"
)

// Dir returns the path of a thing in the folder yardmaster of the user's cache folder
// (os.UserCacheDir: $XDG_CACHE_HOME, else ~/.cache). It does not make it.
func Dir(elem ...string) (string, error) {
	home, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{home, "yardmaster"}, elem...)...), nil
}
