package sandbox

// Protection is one thing that a sandbox keeps from its agent. What a level
// promises is not listed anywhere: a box tries it (see Probe).
type Protection string

// The protections.
const (
	// Files: no file outside of its folders and the system's can be read or
	// written. At Landlock names, sizes and modes can still be seen, and modes
	// changed of files that are the agent's user's own.
	Files Protection = "files"
	// Processes: no process outside can be signalled, nor its environment and
	// memory read. At Landlock command lines can still be seen.
	Processes Protection = "processes"
	// UnixSockets: no daemon can be reached by a Unix socket, of a path or abstract.
	UnixSockets Protection = "unix_sockets"
	// Network: nothing can be reached but the forwarded ports and what the agent
	// itself listens at, nor can it choose a port, or be reached from elsewhere.
	Network Protection = "network"
	// Kernel: the calls that most escapes begin with are refused, those that
	// make a user namespace first.
	Kernel Protection = "kernel"
	// Memory and Disk: what the agent can use up of them has a bound. Nothing is
	// used up to try these: whoever bounds a run says so.
	Memory Protection = "memory"
	Disk   Protection = "disk"
)

// Finding is what became of trying a level on this machine.
type Finding struct {
	Level Level
	Err   error        // why the level is not to be had; nil if it is
	Holds []Protection // what held, in the order above; what could not be tried is not among them
	Open  []string     // what the agent could do that it should not, in words
}

// Held are the levels that are to be had, best first.
func Held(findings []Finding) (held []Level) {
	for _, f := range findings {
		if f.Err == nil {
			held = append(held, f.Level)
		}
	}
	return held
}

// tried are the protections that an attempt speaks of.
var tried = []Protection{Files, Processes, UnixSockets, Network, Kernel}

// holding is what remains of them after what was possible, by protection.
func holding(l Level, possible map[Protection][]string) (holds []Protection, open []string) {
	for _, p := range tried {
		if len(possible[p]) == 0 {
			holds = append(holds, p)
		}
		open = append(open, possible[p]...)
	}
	return holds, open
}
