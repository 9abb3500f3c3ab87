package machine

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/config"
	"yardmaster/internal/rlimit"
)

func logger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// configured declares the settings of the server as flags of a command, and gives them to
// what the command does.
func configured(fl *pflag.FlagSet, do func(ctx context.Context, cfg *config.Config, plain []string) error) tree.Action {
	own := flag.NewFlagSet("", flag.ContinueOnError)
	load := config.Define(own, os.LookupEnv)
	fl.AddGoFlagSet(own)
	return func(ctx context.Context, plain []string) error {
		// The values are set already; this notes which of them the command line has.
		fl.Visit(func(f *pflag.Flag) {
			if own.Lookup(f.Name) != nil {
				_ = own.Set(f.Name, f.Value.String())
			}
		})
		cfg, err := load()
		if err != nil {
			return err
		}
		return do(ctx, cfg, plain)
	}
}

// Serve is the definition of serve.
func Serve(fl *pflag.FlagSet) tree.Action { return configured(fl, runServe) }

func runServe(ctx context.Context, cfg *config.Config, _ []string) error {
	if runtime.GOOS != "linux" {
		return exit.Misuse("a server runs on Linux; here this program is the command line and a box")
	}
	if err := rlimit.NoCore(); err != nil {
		return err
	}
	Started()
	if os.Getenv("GOGC") == "" {
		// An idle server has about 10 MB of heap. A GC percent of 200 costs another
		// 10 MB, and halves the collector's time.
		debug.SetGCPercent(200)
	}
	log := logger(os.Stderr, cfg.LogLevel, cfg.LogFormat)
	defer exitOnNextSignal(ctx, log)()
	service := managed()
	defer context.AfterFunc(ctx, func() { service.tell("STOPPING=1") })()
	err := app.Run(ctx, cfg, app.Options{
		Version: This.Version, SHA: Commit(), Logger: log, Grace: cfg.MergeGrace,
		Ready: func(a *app.App) {
			fmt.Printf("Yardmaster %s serves %s, boxes connect to %s, data in %s\n", This.Version, a.URL(), a.NATSURL(), cfg.Data)
			switch url, err := a.SetupURL(ctx); {
			case err != nil:
				log.Error("find out whether the server is set up: a restart prints the address if it is not", "error", err)
			case url != "":
				fmt.Printf("Nobody has set it up yet. Open this address once: %s\n", url)
			}
			service.tell("READY=1", "STATUS=serves "+a.URL())
		},
	})
	if err == nil {
		fmt.Println("Stopped.")
	}
	return err
}

// Config is the definition of config, which takes the flags of serve.
func Config(fl *pflag.FlagSet) tree.Action {
	return configured(fl, func(_ context.Context, cfg *config.Config, _ []string) error {
		cfg.Print(os.Stdout)
		return nil
	})
}
