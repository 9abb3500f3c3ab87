// Package astray gives a process another time of day than its machine's. The
// time a process measures is not changed, as when somebody sets a clock, and
// neither is that of the programs that it starts.
//
// Go asks the system for the time through a function pointer in the runtime,
// which this package replaces. So all that runs in the process is astray: the
// program, the bus in it, its libraries. Nothing else of the program knows.
package astray

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Follow sets the clock as the lines of r say, in seconds that it is ahead of
// the machine's, until r ends.
func Follow(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return fmt.Errorf("the clock is to be set by whole seconds: %w", err)
		}
		Set(time.Duration(n) * time.Second)
	}
	return lines.Err()
}
