package dbtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"yardmaster/internal/db"
)

// enginesEnv names the engines of Engines: "sqlite", "postgres", or "both" as if it were
// not set; and after it, with spaces between, folders whose tests play on both.
const enginesEnv = "YARDMASTER_ENGINES"

// Engines returns the engines on which a test of the whole program plays: both, or the
// one that YARDMASTER_ENGINES names, unless it names the folder of the caller. Tests
// of a store do not ask: they play on both always, with Run.
func Engines() []db.Engine {
	_, file, _, _ := runtime.Caller(1)
	return EnginesOf(path.Dir(filepath.ToSlash(file)))
}

// EnginesOf is Engines for the tests of a folder, which is given by its path or the end
// of it.
func EnginesOf(folder string) []db.Engine {
	said, both, _ := strings.Cut(os.Getenv(enginesEnv), " ")
	if slices.ContainsFunc(strings.Fields(both), func(f string) bool { return strings.HasSuffix("/"+folder, "/"+f) }) {
		said = "both"
	}
	switch said {
	case "", "both":
		return []db.Engine{db.SQLite, db.Postgres}
	case "sqlite":
		return []db.Engine{db.SQLite}
	case "postgres":
		return []db.Engine{db.Postgres}
	default:
		panic(fmt.Sprintf("%s=%s: say sqlite, postgres or both", enginesEnv, said))
	}
}
