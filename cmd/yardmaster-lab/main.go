// Yardmaster-lab is Yardmaster with what is for trials and in no release: a stand-in for GitHub that the demo
// begins at, and a command that does harm. The product builds it of a checkout when one of them is wanted.
package main

import (
	"os"

	"yardmaster/internal/cli"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/proof/lab"
)

func main() {
	os.Exit(cli.Run(machine.Program{Version: "dev", Lab: lab.New()}, os.Args[1:], os.Stdout, os.Stderr))
}
