package dbtest

import (
	"fmt"
	"os"

	"yardmaster/internal/db"
)

// enginesEnv names the engines of Engines: "sqlite", "postgres", or "both" as if it were
// not set.
const enginesEnv = "YARDMASTER_ENGINES"

// Engines returns the engines on which a test of the whole program plays: both, or the
// one that YARDMASTER_ENGINES names. Tests of a store do not ask: they play
// on both always, with Run.
func Engines() []db.Engine {
	switch said := os.Getenv(enginesEnv); said {
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
