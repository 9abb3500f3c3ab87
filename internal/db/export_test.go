package db

import sqlite3 "modernc.org/sqlite/lib"

// OpenSchema is Open with another set of migrations.
var OpenSchema = open

// Waiting returns how many writers wait in line on SQLite.
func Waiting(d *DB) int {
	w := d.backend.(*sqliteBackend).writer
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// GroupOf identifies the commit that a running SQLite Write will share.
func GroupOf(tx *Tx) any { return tx.db.backend.(*sqliteBackend).writer.open }

// MaxGroup bounds the members of a group.
const MaxGroup = maxGroup

// IsForeign tells whether err is a violated foreign key.
func IsForeign(err error) bool {
	return violates(err, "23503", sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

// Begin and Climb are the two ways to a schema: in one step, and by the migrations.
var Begin, Climb = begin, climb
