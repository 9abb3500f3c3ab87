package protocol

import "slices"

// Isolated are the protections that whoever demands landlock or bubblewrap
// relies on: files and processes outside, daemons behind Unix sockets, and the
// network stay out of the agent's reach.
var Isolated = []string{"files", "processes", "unix_sockets", "network"}

// Keeps tells whether a level is what its name promises where it holds these
// protections. None promises nothing.
func Keeps(level string, holds []string) bool {
	return level == "none" || !slices.ContainsFunc(Isolated, func(p string) bool { return !slices.Contains(holds, p) })
}
