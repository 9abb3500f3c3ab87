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
	// ErrNoRows is what Query.One returns when there is no row.
	ErrNoRows = sql.ErrNoRows
	// ErrNested is a Read or Write inside a running transaction of the same
	// DB, a mistake in the program: pass the *Tx on instead.
	ErrNested = errors.New("db: transaction inside a transaction")
	// ErrClosed is a Read or Write after Close.
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

// noRoom tells whether the database had no room to store something. SQLite says
// IOERR where it could not make the file longer that its processes share.
func noRoom(err error) bool {
	return violates(err, "53100", sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// violated tells whether err is a violated constraint of SQLite, of any kind.
func violated(err error) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && lite.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// transient tells whether PostgreSQL asks for the transaction to be run again:
// a serialization failure or a deadlock.
func transient(err error) bool {
	return violates(err, "40001") || violates(err, "40P01")
}
