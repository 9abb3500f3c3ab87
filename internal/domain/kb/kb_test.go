package kb

import (
	"testing"

	"yardmaster/internal/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}
