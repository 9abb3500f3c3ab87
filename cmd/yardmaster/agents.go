package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"yardmaster/internal/box"
)

// boxFolders defines the flags of the folders of this machine's box.
func boxFolders(fl *flag.FlagSet) (data, work *string) {
	data = fl.String("data", env("YARDMASTER_BOX_DATA", "./yardmaster-box"), "folder of the box (YARDMASTER_BOX_DATA)")
	work = fl.String("work", os.Getenv("YARDMASTER_BOX_WORK"), "its work folder, if it is run with one (YARDMASTER_BOX_WORK)")
	return data, work
}

// noBox explains how to make a box, if err says that there is none.
func noBox(err error, data string) error {
	if errors.Is(err, box.ErrNotEnrolled) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no box in %s: name its folder with --data, or `yardmaster box join` makes this machine one", data)
	}
	return err
}

func runBoxAgents(ctx context.Context, args []string) error {
	fl := flags("box agents")
	data, work := boxFolders(fl)
	if _, err := parse(fl, args); err != nil {
		return err
	}
	all, err := box.Agents(ctx, *data, *work)
	if err != nil {
		return noBox(err, *data)
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
	table("AGENT\tSTATE\tVERSION\tPROGRAM", rows, "")
	for _, line := range todo {
		fmt.Println(line) // not cut to the width of the terminal
	}
	return nil
}

func runBoxAgentsInstall(ctx context.Context, args []string) error {
	fl := flags("box agents install")
	data, work := boxFolders(fl)
	plain, err := parse(fl, args, "NAME")
	if err != nil {
		return err
	}
	return noBox(box.InstallAgent(ctx, *data, *work, plain[0], os.Stdout), *data)
}
