// Package early keeps the collector of memory from running while packages are initialised and a
// short command runs: of the processor's time in which a command lists tasks that was a third. It
// imports nothing that does, so that it is initialised before the other packages of the program,
// whose paths follow its own.
package early

import (
	"os"
	"runtime/debug"
	"sync"
)

// percent is how much of what lives is allocated before the collector runs: with the few megabytes
// of a start that is no run of it at all.
const percent = 1000

var usual = 100

func init() {
	if os.Getenv("GOGC") == "" { // whoever sets it wants that
		usual = debug.SetGCPercent(percent)
	}
}

// End has memory collected as usual from now on. Later calls do nothing.
var End = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(usual)
	}
})
