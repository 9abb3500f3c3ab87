package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/box"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/tree"
)

// boxFolders defines the flags of the folders of this machine's box.
func boxFolders(fl *flag.FlagSet) (data, work *string) {
	data = fl.String("data", Env("YARDMASTER_BOX_DATA", "./yardmaster-box"), "folder of the box (YARDMASTER_BOX_DATA)")
	work = fl.String("work", os.Getenv("YARDMASTER_BOX_WORK"), "its work folder, if it is run with one (YARDMASTER_BOX_WORK)")
	return data, work
}

// absent tells whether err says that a folder is not that of a box.
func absent(err error) bool {
	return errors.Is(err, box.ErrNotEnrolled) || errors.Is(err, fs.ErrNotExist)
}

// NoBox explains how to make a box, if err says that there is none.
func NoBox(err error, data string) error {
	if absent(err) {
		return fmt.Errorf("there is no box in %s: name its folder with --data, or `yardmaster box join` makes this machine one", data)
	}
	return err
}

// Agents is the definition of box agents.
func Agents(fl *flag.FlagSet) tree.Action {
	data, work := boxFolders(fl)
	return func(ctx context.Context, _ []string) error { return listAgents(ctx, *data, *work) }
}

func listAgents(ctx context.Context, data, work string) error {
	all, err := box.Agents(ctx, data, work)
	if absent(err) {
		all = box.AgentsHere(ctx)
		defer screen.Afterword("No box is in " + data + ": a box on this machine finds these. --data names the folder of one, for what was installed into it; " +
			"yardmaster box join makes one.")
	} else if err != nil {
		return err
	}
	var rows [][]string
	var todo []string
	for _, a := range all {
		state := "ready"
		switch {
		case a.Ready:
		case a.Program != "":
			state = "cannot be used"
		default:
			state = "not here"
		}
		rows = append(rows, []string{a.Name, state, a.Version, a.Program})
		if a.Todo != "" {
			todo = append(todo, a.Name+": "+a.Todo)
		}
	}
	screen.Table("AGENT\tSTATE\tVERSION\tPROGRAM", rows, "")
	for _, line := range todo {
		fmt.Println(line) // not cut to the width of the terminal
	}
	return nil
}

// InstallAgents is the definition of box agents install.
func InstallAgents(fl *flag.FlagSet) tree.Action {
	data, work := boxFolders(fl)
	return func(ctx context.Context, plain []string) error {
		return NoBox(box.InstallAgent(ctx, *data, *work, plain[0], os.Stdout), *data)
	}
}
