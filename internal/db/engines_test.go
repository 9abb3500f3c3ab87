package db_test

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

func TestEngines(t *testing.T) {
	both := []db.Engine{db.SQLite, db.Postgres}
	for said, want := range map[string][]db.Engine{"": both, "both": both, "sqlite": both[:1], "postgres": both[1:]} {
		t.Setenv("YARDMASTER_ENGINES", said)
		if got := dbtest.Engines(); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
	for said, want := range map[string][]db.Engine{
		"sqlite internal/domain/run internal/db": both, "sqlite internal/domain/db": both[:1], "sqlite nal/db": both[:1],
	} {
		t.Setenv("YARDMASTER_ENGINES", said)
		if got := dbtest.Engines(); !slices.Equal(got, want) {
			t.Errorf("here at %q: %v, want %v", said, got, want)
		}
	}
	t.Setenv("YARDMASTER_ENGINES", "sqllite")
	defer func() {
		if recover() == nil {
			t.Error("a word that is no choice was taken")
		}
	}()
	dbtest.Engines()
}
