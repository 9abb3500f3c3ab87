package main

import (
	"context"
	"os"

	"yardmaster/internal/demo"
)

func runDemo(ctx context.Context, args []string) error {
	fl := flags("demo")
	o := demo.Options{Out: os.Stdout, Version: version}
	fl.BoolVar(&o.Once, "once", false, "end after the job: exit code 0 only if it merged and the tests pass")
	fl.StringVar(&o.Data, "data", "", "folder to keep; a temporary one when empty")
	fl.StringVar(&o.Listen, "listen", "127.0.0.1:0", "host:port of the server")
	if _, err := parse(fl, args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Self = self
	return demo.Run(ctx, o)
}
