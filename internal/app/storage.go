package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/unixfile"
)

const (
	// fewBytes are too few to promise that the next write is stored.
	fewBytes = 1 << 20
	// nearlyFull is the share of a file system, in percent, from which it is
	// warned about.
	nearlyFull = 90
	lookAtDisk = 10 * time.Second
)

// space is how much a file system holds that this process may use.
type space struct{ free, used int64 }

func spaceAt(dir string) (space, error) {
	s, err := unixfile.Room(dir)
	if err != nil {
		return space{}, fmt.Errorf("ask for the room in %s: %w", dir, err)
	}
	return space{free: s.Free, used: s.Used}, nil
}

// percent is the share that is used, rounded up as df does.
func (s space) percent() int64 {
	if s.free+s.used == 0 {
		return 0
	}
	return (100*s.used + s.free + s.used - 1) / (s.free + s.used)
}

func (s space) trouble() error {
	switch {
	case s.free < fewBytes:
		return &service.Trouble{Detail: "There is no room left in the data folder: nothing more can be stored."}
	case s.percent() >= nearlyFull:
		return &service.Trouble{Degraded: true, Detail: fmt.Sprintf("The file system of the data folder is %d %% full.", s.percent())}
	}
	return nil
}

// folders returns the folders in which this server stores data.
func (a *App) folders() []string {
	out := []string{a.cfg.Data}
	if path, ok := strings.CutPrefix(a.cfg.Database, "sqlite:"); ok {
		if dir := filepath.Dir(path); dir != a.cfg.Data {
			out = append(out, dir)
		}
	}
	return out
}

// room is the file system with the least room of those that are written to.
func (a *App) room() (least space, err error) {
	for i, dir := range a.folders() {
		s, err := spaceAt(dir)
		if err != nil {
			return s, err
		}
		if i == 0 || s.free < least.free {
			least = s
		}
	}
	return least, nil
}

// storage probes whether the disk has room for more data.
func (a *App) storage(context.Context) error {
	s, err := a.room()
	if err != nil {
		return err
	}
	if err := s.trouble(); err != nil {
		return err
	}
	if a.db.DiskFull() {
		return &service.Trouble{Detail: "The database had no room for the last write."}
	}
	return nil
}

// free is how many bytes may still be stored.
func (a *App) free() (int64, error) {
	s, err := a.room()
	return s.free, err
}

// watchStorage writes into the log when room gets scarce, and when there is
// enough again.
func (a *App) watchStorage(ctx context.Context) error {
	var last slog.Level
	observe.Every(ctx, "storage.watch", lookAtDisk, func(ctx context.Context) { last = a.lookAtStorage(ctx, last) })
	return nil
}

// lookAtStorage returns the level of the present state, and logs the state if its
// level is not the last one.
func (a *App) lookAtStorage(ctx context.Context, last slog.Level) slog.Level {
	level, what := slog.LevelInfo, "there is room in the data folder again"
	if err := a.storage(ctx); err != nil {
		level, what = slog.LevelError, err.Error()
		if t, ok := errors.AsType[*service.Trouble](err); ok && t.Degraded {
			level = slog.LevelWarn
		}
	}
	if level != last {
		free, _ := a.free() // storage already reported this error
		a.log.Log(ctx, level, what, slog.String("data", a.cfg.Data), slog.Int64("free_bytes", free))
	}
	return level
}

// explain adds to an error about the data folder the setting that names another
// folder.
func explain(cfg *config.Config, err error) error {
	path, ok := errors.AsType[*fs.PathError](err)
	inside := ok && (within(cfg.Data, path.Path) || within(path.Path, cfg.Data))
	switch {
	case fault.From(err).Kind == fault.StorageFull:
		return fmt.Errorf("there is no room for the server's data in %s: make some, or name another folder with --data (%w)", cfg.Data, err)
	case inside && errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the data folder %s is on a file system that nothing can be written to: name another with --data (%w)",
			cfg.Data, err)
	case inside && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not write to the data folder %s: name another with --data (%w)", cfg.Data, err)
	case inside && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be used as the data folder: name another with --data (%w)", cfg.Data, err)
	}
	return err
}

// within tells whether a path is a folder or in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
