package dbtest

import (
	"database/sql/driver"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// recompiled is how often SQLite has compiled a statement anew that was run twice, with zeros
// for its parameters, in a transaction that is undone. It does so, at four times the cost of a
// short statement, where it looks at the value of a parameter to find its way. The driver does
// not tell; its handles are read.
func recompiled(conn driver.Conn, text string) (n int32, err error) {
	s, err := conn.Prepare(text)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	handle, thread := field(s, "pstmt"), field(conn, "tls")
	if !handle.IsValid() || handle.Kind() != reflect.Uintptr || handle.Uint() == 0 || !thread.IsValid() {
		return 0, fmt.Errorf("the driver has other handles than were known: %T, %T", s, conn)
	}
	tx, err := conn.Begin() //nolint:staticcheck // the driver's own, without options
	if err != nil {
		return 0, err
	}
	defer func() {
		if rolled := tx.Rollback(); err == nil {
			err = rolled
		}
	}()
	zeros := make([]driver.Value, 64) // more than any has
	for i := range zeros {
		zeros[i] = int64(0)
	}
	for range 2 {
		rows, err := s.Query(zeros) //nolint:staticcheck // as above
		if err != nil {
			continue // of a constraint, when it was compiled already
		}
		row := make([]driver.Value, len(rows.Columns()))
		for rows.Next(row) == nil {
		}
		rows.Close()
	}
	tls := (*libc.TLS)(unsafe.Pointer(thread.Pointer()))
	return sqlite3.Xsqlite3_stmt_status(tls, uintptr(handle.Uint()), sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0), nil
}

// again are the statements that SQLite compiled anew while tests ran them, by text: also those
// that are built, with the values that they were given.
var again struct {
	sync.Mutex
	texts map[string]runs
}

// runs is how often a statement was run, and compiled anew for that, by all connections.
type runs struct{ anew, all int32 }

// oftenAgain is how often a statement is compiled anew at least where it is so as a rule: SQLite
// does it for a schema that has changed, too, once a connection.
const oftenAgain = 32

// countAgain notes what SQLite compiled anew for a connection.
func countAgain(conn any) error {
	handle, thread := field(conn, "db"), field(conn, "tls")
	if !handle.IsValid() || handle.Kind() != reflect.Uintptr || handle.Uint() == 0 || !thread.IsValid() {
		return fmt.Errorf("the driver has other handles than were known: %T", conn)
	}
	tls, of := (*libc.TLS)(unsafe.Pointer(thread.Pointer())), uintptr(handle.Uint())
	again.Lock()
	defer again.Unlock()
	for s := sqlite3.Xsqlite3_next_stmt(tls, of, 0); s != 0; s = sqlite3.Xsqlite3_next_stmt(tls, of, s) {
		text := oneLine(libc.GoString(sqlite3.Xsqlite3_sql(tls, s)))
		r := again.texts[text]
		r.all += sqlite3.Xsqlite3_stmt_status(tls, s, sqlite3.SQLITE_STMTSTATUS_RUN, 0)
		r.anew += sqlite3.Xsqlite3_stmt_status(tls, s, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0)
		again.texts[text] = r
	}
	return nil
}

// toldAgain writes the statements that were compiled anew for every other run, and tells whether
// there were any.
func toldAgain() (told bool) {
	again.Lock()
	defer again.Unlock()
	for _, text := range slices.Sorted(maps.Keys(again.texts)) {
		if r := again.texts[text]; r.anew >= oftenAgain && 2*r.anew >= r.all {
			told = true
			fmt.Fprintf(os.Stderr, "SQLite compiled it anew %d of %d times it was run: %s\n", r.anew, r.all, text)
		}
	}
	if told {
		fmt.Fprintln(os.Stderr, "an expression hides the parameter whose value it looks at ($1 + 0, $1 || '')")
	}
	return told
}

// field is a field of what a pointer in v points to.
func field(v any, name string) reflect.Value {
	at := reflect.ValueOf(v)
	if at.Kind() != reflect.Pointer || at.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return at.Elem().FieldByName(name)
}
