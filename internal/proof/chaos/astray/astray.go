// Package astray gives a process another time of day than its machine's. As when
// somebody sets a clock, the durations that the process measures do not change, nor
// does the time of day of the programs that it starts.
//
// Go asks the system for the time through a function pointer in the runtime, which
// this package replaces. The change affects everything in the process: the program,
// the bus in it, its libraries. No other code of the program knows of it.
package astray

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Follow sets the clock to each number of seconds ahead of the machine's that a line
// of r has, until r ends. It fails for a line that is no number.
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
