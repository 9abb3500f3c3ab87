package astray

import (
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname
)

// Possible tells whether clocks can be set on this system.
const Possible = true

// runtimeClock is where the runtime finds the system's clock_gettime. It is
// among the names that the runtime keeps open to others.
//
//go:linkname runtimeClock runtime.vdsoClockgettimeSym
var runtimeClock uintptr

// ahead is in seconds. The replacement of clock_gettime reads it.
var ahead int64

// replacement is the address of the clock_gettime that adds ahead.
func replacement() uintptr

// Set sets the time of day of this process ahead of its machine's, by whole seconds.
func Set(by time.Duration) {
	atomic.StoreInt64(&ahead, int64(by/time.Second))
	atomic.StoreUintptr(&runtimeClock, replacement())
}
