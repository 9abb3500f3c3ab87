package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/demo"
	"yardmaster/internal/lazy"
)

// Demo is the definition of demo.
func Demo(fl *flag.FlagSet) tree.Action {
	o := demo.Options{Out: os.Stdout, Version: This.Version, Command: startedAs(os.Args[0])}
	fl.BoolVar(&o.Once, "once", false, "end after the job: exit code 0 only if it merged and the tests pass")
	atGitHub := fl.Bool("github", false, "begin with an issue at a stand-in for GitHub, which the demo starts")
	fl.StringVar(&o.Data, "data", "", "folder to keep; a temporary one when empty")
	fl.StringVar(&o.Listen, "listen", "127.0.0.1:0", "host:port of the server")
	return func(ctx context.Context, _ []string) (err error) {
		switch {
		case *atGitHub && This.Lab == nil:
			return handOver(ctx, "demo --github")
		case *atGitHub:
			o.StandIn = This.Lab.StandIn
		}
		if o.Self, err = os.Executable(); err != nil {
			return err
		}
		o.Ended = func(address string) {
			if gone := signin.Forget(address); gone != nil {
				fmt.Fprintf(os.Stderr, "yardmaster: the login at the demo is kept: %v\n", gone)
			}
		}
		return demo.Run(ctx, o)
	}
}

// built is the path of a program that `go run` has built: in a folder of one build,
// or in the cache.
var built = lazy.New(`/go-build[^/]*/b[0-9]+/exe/[^/]+$|/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// startedAs is the command with which this program was started, for people to start
// it again.
func startedAs(name string) string {
	if built.MatchString(filepath.ToSlash(name)) {
		return "go run ./cmd/yardmaster"
	}
	return name
}
