//go:build !linux || !amd64

package astray

import "time"

// Possible tells whether clocks can be set on this system.
const Possible = false

// Set does nothing on this system.
func Set(time.Duration) {}
