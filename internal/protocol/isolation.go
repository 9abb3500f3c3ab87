package protocol

import "slices"

// Isolated are the protections on which an account relies that demands landlock or
// bubblewrap: the agent cannot reach files and processes outside, daemons behind
// Unix sockets, or the network.
var Isolated = []string{"files", "processes", "unix_sockets", "network"}

// Keeps tells whether a level with these protections is what its name promises.
// The level none promises nothing.
func Keeps(level string, holds []string) bool {
	return level == "none" || !slices.ContainsFunc(Isolated, func(p string) bool { return !slices.Contains(holds, p) })
}
