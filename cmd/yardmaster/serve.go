package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
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

// configured reads the settings of a command that has them as flags.
func configured(name string, args []string) (*config.Config, error) {
	cfg, _, err := configuredFor(flags(name), args)
	return cfg, err
}

// configuredFor is configured for a command with further flags and arguments.
func configuredFor(fl *flag.FlagSet, args []string, want ...string) (cfg *config.Config, plain []string, err error) {
	load := config.Define(fl, os.LookupEnv)
	if plain, err = parse(fl, args, want...); err != nil {
		return nil, nil, err
	}
	cfg, err = load()
	return cfg, plain, err
}

func runServe(ctx context.Context, args []string) error {
	cfg, err := configured("serve", args)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// An idle server has about 10 MB of heap. A GC percent of 200 costs another
		// 10 MB, and halves the collector's time.
		debug.SetGCPercent(200)
	}
	log := logger(os.Stderr, cfg.LogLevel, cfg.LogFormat)
	defer exitOnNextSignal(ctx, log)()
	err = app.Run(ctx, cfg, app.Options{
		Version: version, SHA: commit(), Logger: log,
		Ready: func(a *app.App) {
			fmt.Printf("Yardmaster %s serves %s, boxes connect to %s, data in %s\n", version, a.URL(), a.NATSURL(), cfg.Data)
			if url, err := a.SetupURL(ctx); err == nil && url != "" {
				fmt.Printf("Nobody has set it up yet. Open this address once: %s\n", url)
			}
		},
	})
	if err == nil {
		fmt.Println("Stopped.")
	}
	return err
}

func runConfig(_ context.Context, args []string) error {
	cfg, err := configured("config", args)
	if err != nil {
		return err
	}
	cfg.Print(os.Stdout)
	return nil
}
