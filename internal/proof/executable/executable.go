// Package executable writes programs that a test runs afterwards, so that none of them is "busy"
// then: a test process starts others all the time, and each has its open files for a moment.
package executable

import (
	"os"
	"syscall"
)

// Write is os.WriteFile for a file that is run afterwards. No other process is started
// meanwhile: between its fork and its exec it would have the file open for writing, and
// whoever runs the file in that moment hears "text file busy". Who holds syscall.ForkLock must
// not call it.
func Write(path string, data []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, mode)
}
