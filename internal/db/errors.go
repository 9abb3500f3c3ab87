package db

import (
	"database/sql"
	"errors"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrNoRows is returned by Query.One when there is no row.
	ErrNoRows = sql.ErrNoRows
	// ErrNested is returned by a Read or Write inside a running transaction of the
	// same DB. It is a mistake in the program: pass the *Tx on instead.
	ErrNested = errors.New("db: transaction inside a transaction")
	// ErrClosed is returned by a Read or Write after Close.
	ErrClosed = errors.New("db: closed")
)

// IsUnique tells whether err is a violated unique constraint or primary key.
func IsUnique(err error) bool {
	return violates(err, "23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

func violates(err error, state string, codes ...int) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == state
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		for _, code := range codes {
			if lite.Code() == code {
				return true
			}
		}
	}
	return false
}

// diskFull tells whether the disk of the database is full. SQLite reports IOERR if it
// cannot extend the file that its processes share.
func diskFull(err error) bool {
	return violates(err, "53100", sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// violated tells whether err is a violated constraint of SQLite, of any kind.
func violated(err error) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && lite.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// transient tells whether PostgreSQL asks to run the transaction again, after a
// serialization failure or a deadlock.
func transient(err error) bool {
	return violates(err, "40001") || violates(err, "40P01")
}
