// Package machine has the commands that run on this machine by themselves, besides calls of the API: a server and
// its keys and audit record, a box, the demo.
package machine

import "runtime/debug"

// Program is what the command line is told by the program that it is of.
type Program struct {
	// Version and Revision (the commit) are those of the build. With no revision, it is the one
	// that Go has recorded of any build but one of the version "dev".
	Version, Revision string
	// Started, if set, is called once it is known that the command is not a short one. It may be
	// called again.
	Started func()
	// Lab is what a program for trials has besides; nil in the product.
	Lab *Lab
}

// This is the one that runs.
var This = Program{Version: "dev"}

// Started tells the program that the command is not a short one.
func Started() {
	if This.Started != nil {
		This.Started()
	}
}

// Commit is the commit of this build; "" if it is not known.
func Commit() string {
	if This.Revision != "" {
		return This.Revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || This.Version == "dev" {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
