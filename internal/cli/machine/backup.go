package machine

import (
	"context"
	"os"
	"strconv"
	"syscall"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/config"
)

// Backup is the definition of backup.
func Backup(fl *flag.FlagSet) tree.Action {
	keys := fl.Bool("with-keys", false,
		"put the master keys and the signed heads of the record into it as well: whoever has the backup then has every secret in it")
	part := fl.Bool("part", false, "of a cluster: make it of the database and of the repositories that are in this node's folder")
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		yield()
		return app.Backup{Version: This.Version, Keys: *keys, Part: *part, Out: Progress}.Make(ctx, cfg, plain[0])
	})
}

// niceness is how far a backup stands back where the processor is short: the server goes first.
const niceness = 10

// yield lets other processes go first. It is tried alone: a backup that competes is better than none.
func yield() {
	threads, _ := os.ReadDir("/proc/self/task") // on Linux each thread has its own, and hands it on to those that it starts
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)
		}
	}
}

// Restore is the definition of restore.
func Restore(fl *flag.FlagSet) tree.Action {
	drill := fl.Bool("drill", false, "try the backup: on a folder and addresses that end with the command, by a server that reaches nobody")
	compare := fl.Bool("compare", false, "without BACKUP: say which repositories of --data are not of the time of the database, and what to do")
	spare := fl.String("spare", "", "with --drill, `postgres://…` of an empty database to try a backup of PostgreSQL in")
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		b := app.Backup{Version: This.Version, Out: Progress}
		switch {
		case *compare && (*drill || len(plain) > 0):
			return exit.Misuse("--compare is about what is there: it takes no BACKUP")
		case *compare:
			return b.Compare(ctx, cfg)
		case len(plain) == 0:
			return exit.Misuse("give the folder of a BACKUP, or --compare")
		}
		if *drill {
			return b.Drill(ctx, cfg, plain[0], *spare)
		}
		return b.Restore(ctx, cfg, plain[0])
	})
}
