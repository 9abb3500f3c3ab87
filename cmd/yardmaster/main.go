// Yardmaster is a control plane for AI developer agents: one program that serves the
// API, runs as the agent on a box, and is the command line of both. Its commands are in
// internal/cli.
package main

import (
	"os"

	"yardmaster/cmd/yardmaster/early"
	"yardmaster/internal/cli"
	"yardmaster/internal/cli/machine"
)

// version and revision (the commit) of this build. The linker sets both for a released
// build (`make release`).
var (
	version  = "dev"
	revision string
)

func main() {
	os.Exit(cli.Run(machine.Program{Version: version, Revision: revision, Started: early.End}, os.Args[1:], os.Stdout, os.Stderr))
}
