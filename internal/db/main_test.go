package db_test

import (
	"fmt"
	"os"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// childEnv makes this binary the child of a test: the address of its database.
const childEnv = "YARDMASTER_TEST_CHILD"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		fmt.Fprintln(os.Stderr, writeForever(dsn))
		os.Exit(1)
	}
	dbtest.Main(m)
}
