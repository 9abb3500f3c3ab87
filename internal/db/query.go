package db

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
)

// constant is SQL text written in the program. Other packages can convert only
// constants to it, so that no value can become SQL.
type constant string

// Query is a declared statement whose rows become T. T is a struct whose fields
// match the columns one to one, by the tag `db:"column"` or else by their names in
// snake case (`db:"-"` leaves a field out); or T is a single value for a single
// column. Fields are strings, integers, bools, []byte, time.Time and JSON, or
// pointers to them where NULL is possible.
type Query[T any] struct {
	text string
	lock string // suffix of the text on PostgreSQL
	at   place
	keep *keeper // nil: not kept
}

// Q declares a query. It is for package-level variables: every declaration is
// recorded for the test that prepares all of them.
//
//go:noinline
func Q[T any](text constant) Query[T] {
	at := declare(string(text), reflect.TypeFor[T](), nil)
	return Query[T]{text: string(text), at: at}
}

const forUpdate = " FOR NO KEY UPDATE"

// ForUpdate locks the rows of a SELECT until the transaction ends, so that other
// transactions can neither lock nor change them. A transaction that adds a row with
// a reference to one of them does not wait, and so cannot cause a deadlock. SQLite
// has one writer and needs no lock.
func (q Query[T]) ForUpdate() Query[T] {
	q.lock = forUpdate
	return q
}

// SkipLocked is ForUpdate that leaves out the rows that other transactions have
// locked.
func (q Query[T]) SkipLocked() Query[T] {
	q.lock = forUpdate + " SKIP LOCKED"
	return q
}

// One returns the only row. It returns ErrNoRows if there is none, and another
// error if there are several.
func (q Query[T]) One(tx *Tx, args ...any) (T, error) {
	row, ok, err := q.Maybe(tx, args...)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", q.at, ErrNoRows)
	}
	return row, err
}

// Maybe is One for a row that may be missing; ok tells whether there is one.
func (q Query[T]) Maybe(tx *Tx, args ...any) (row T, ok bool, err error) {
	rows, err := q.rows(tx, args, 2)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	if len(rows) > 1 {
		return row, false, fmt.Errorf("%s: more than one row", q.at)
	}
	return rows[0], true, nil
}

// All returns all rows, nil if there are none.
func (q Query[T]) All(tx *Tx, args ...any) ([]T, error) { return q.rows(tx, args, -1) }

func (q Query[T]) rows(tx *Tx, args []any, limit int) ([]T, error) {
	if m, ok := tx.q.(*member); ok && q.keep != nil {
		return keptRows(tx, m, &q, args)
	}
	text := q.text
	if q.lock != "" && tx.Engine() == Postgres {
		text += q.lock
	}
	return selectRows[T](tx, q.at, text, args, limit)
}

func selectRows[T any](tx *Tx, at place, text string, args []any, limit int) ([]T, error) {
	rows, err := run(tx, at, text, args, tx.q.query)
	if err != nil {
		return nil, err
	}
	out, err := scan[T](rows, limit)
	if err != nil {
		return nil, tx.fail(fmt.Errorf("%s: %w", at, err))
	}
	return out, nil
}

// Stmt is a declared statement without rows.
type Stmt struct {
	text string
	at   place
}

// S declares a statement; like Q, it is for package-level variables.
//
//go:noinline
func S(text constant) Stmt {
	return Stmt{string(text), declare(string(text), nil, nil)}
}

// Exec runs the statement and returns how many rows it changed.
func (s Stmt) Exec(tx *Tx, args ...any) (int64, error) {
	result, err := run(tx, s.at, s.text, args, tx.q.exec)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func run[R any](tx *Tx, at place, text string, args []any, do func(context.Context, string, []any) (R, error)) (R, error) {
	var none R
	if err := tx.usable(); err != nil {
		return none, fmt.Errorf("%s: %w", at, err)
	}
	bound, err := bind(args)
	if err != nil {
		return none, fmt.Errorf("%s: %w", at, err)
	}
	r, err := do(tx.ctx, text, bound)
	if err != nil {
		return none, tx.fail(fmt.Errorf("%s: %w", at, err))
	}
	return r, nil
}

// Declaration is a statement declared with Q, S, QWith or SWith.
type Declaration struct {
	SQL string       // with numbered parameters
	At  string       // folder/file.go:line
	Row reflect.Type // nil for S

	args *arguments // nil: the parameters are numbered
	from place
}

// Check returns an error if the columns of the statement do not match its rows, or
// its parameters the fields they are bound to.
func (d Declaration) Check(columns []string) error {
	if err := d.checkArguments(); err != nil {
		return err
	}
	if d.Row == nil {
		return nil
	}
	if len(columns) == 0 {
		return errors.New("db: a query without columns; declare it with S")
	}
	_, err := newPlan(d.Row, columns)
	return err
}

// expected is somewhat more than how many statements the program declares.
const expected = 2048

// declared is filled while packages initialise and only read afterwards.
var declared struct {
	sync.Mutex
	all []Declaration
}

// Declared lists all statements declared in the packages of this program.
func Declared() []Declaration {
	declared.Lock()
	defer declared.Unlock()
	out := make([]Declaration, len(declared.all))
	for i, d := range declared.all {
		d.At = d.from.String()
		if d.args != nil {
			d.SQL = d.args.numbered().text
		}
		out[i] = d
	}
	return out
}

// place is the place in the source where a statement is declared. It is made a text when it
// is wanted: there are over a thousand, and each start of the program declares them all.
type place uintptr

// built is the place of a query that was put together.
const built place = 0

// String is folder/file.go:line.
func (p place) String() string {
	if p == built {
		return "built query"
	}
	f, _ := runtime.CallersFrames([]uintptr{uintptr(p)}).Next()
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File), f.Line)
}

// declare records a statement, whose text is that of args if it has such, and returns the place of the caller of Q or S. Those
// must not be inlined, because the initialisation of a variable would then lose the
// line.
func declare(text string, row reflect.Type, args *arguments) place {
	var caller [1]uintptr
	runtime.Callers(3, caller[:])
	from := place(caller[0])
	declared.Lock()
	defer declared.Unlock()
	if declared.all == nil {
		declared.all = make([]Declaration, 0, expected)
	}
	declared.all = append(declared.all, Declaration{SQL: text, Row: row, args: args, from: from})
	return from
}
