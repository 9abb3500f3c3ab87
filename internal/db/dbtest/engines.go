package dbtest

import (
	"fmt"
	"os"

	"yardmaster/internal/db"
)

// enginesEnv names the engines of Engines: "sqlite", or "both" as if it were not set.
const enginesEnv = "YARDMASTER_ENGINES"

// Engines returns the engines on which a test of the whole program plays: both, or
// SQLite alone if YARDMASTER_ENGINES says sqlite. Tests of a store do not ask: they play
// on both always, with Run.
func Engines() []db.Engine {
	switch said := os.Getenv(enginesEnv); said {
	case "", "both":
		return []db.Engine{db.SQLite, db.Postgres}
	case "sqlite":
		return []db.Engine{db.SQLite}
	default:
		panic(fmt.Sprintf("%s=%s: say sqlite or both", enginesEnv, said))
	}
}
