package sandbox

// Protection is one protection that a sandbox gives against its agent. No list says
// which protections a level gives: a box tries it (see Probe).
type Protection string

// The protections.
const (
	// Files: no file outside of the sandbox's folders and the system's can be read
	// or written. At the level Landlock an agent can still see names, sizes and
	// modes, and change the modes of files that belong to its user.
	Files Protection = "files"
	// Processes: no process outside can be signalled, and the environment and
	// memory of none can be read. At the level Landlock an agent can still see
	// command lines.
	Processes Protection = "processes"
	// UnixSockets: no daemon can be reached by a Unix socket, neither at a path nor
	// abstract.
	UnixSockets Protection = "unix_sockets"
	// Network: the agent can reach nothing but the forwarded ports and the ports at
	// which it listens itself. It cannot choose a port, and other machines cannot
	// reach it.
	Network Protection = "network"
	// Kernel: the calls with which most escapes begin are refused, above all those
	// that make a user namespace.
	Kernel Protection = "kernel"
	// Memory and Disk: the agent can use only a limited amount of them. Trials do
	// not test these: the package that limits a run reports them.
	Memory Protection = "memory"
	Disk   Protection = "disk"
)

// Finding is the result of trying a level on this machine.
type Finding struct {
	Level Level
	Err   error        // why the level is not available; nil if it is
	Holds []Protection // protections that were tried and held, in the order above
	Open  []string     // what the agent could do and should not, in words
}

// Held lists the available levels, best first.
func Held(findings []Finding) (held []Level) {
	for _, f := range findings {
		if f.Err == nil {
			held = append(held, f.Level)
		}
	}
	return held
}

// tried lists the protections that an attempt tests.
var tried = []Protection{Files, Processes, UnixSockets, Network, Kernel}

// holding splits the result of an attempt into the protections that held and the
// things that were possible.
func holding(l Level, possible map[Protection][]string) (holds []Protection, open []string) {
	for _, p := range tried {
		if len(possible[p]) == 0 {
			holds = append(holds, p)
		}
		open = append(open, possible[p]...)
	}
	return holds, open
}
