package db_test

import (
	"testing"

	"yardmaster/internal/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
