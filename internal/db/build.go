package db

import (
	"context"
	"strconv"
	"strings"
)

// Builder builds a list query whose filters are optional. Texts are constants of
// the program, and values always become parameters:
//
//	b := db.Build("SELECT id, title FROM task WHERE account_id = ", tx.Account)
//	if f.Status != "" {
//		b.And("status = ", f.Status)
//	}
//	if after != nil {
//		b.And("(created_at, id) < ", db.Tuple(after.At, after.ID))
//	}
//	b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", limit+1)
//	tasks, err := db.Select[Task](tx, b)
type Builder struct {
	text strings.Builder
	args []any
	lock bool
	few  bool
}

// tuple is several values in parentheses.
type tuple []any

// Tuple returns a row value, for comparing keysets and for VALUES.
func Tuple(values ...any) any { return tuple(values) }

// Build starts a query with a text and the values after it, separated by commas.
func Build(text constant, values ...any) *Builder {
	return new(Builder).SQL(text, values...)
}

// SQL appends a text and the values after it, separated by commas.
func (b *Builder) SQL(text constant, values ...any) *Builder {
	b.text.WriteString(string(text))
	b.list(values)
	return b
}

// And appends a condition to a query that already has a WHERE.
func (b *Builder) And(text constant, values ...any) *Builder {
	b.text.WriteString(" AND ")
	return b.SQL(text, values...)
}

// Is appends the condition that column is a text. SQLite does not see which: where a partial index
// names one, it would compile the statement anew for each run, to see whether it may use that.
func (b *Builder) Is(column constant, value any) *Builder {
	return b.And(column+" = ", value).SQL(" || ''")
}

// In appends the condition that column is one of values; an empty list matches
// nothing. The list is filled up with its last value to a power of two, so that
// lists of all lengths make few different statements to prepare.
func (b *Builder) In(column constant, values []string) *Builder {
	if len(values) == 0 {
		b.text.WriteString(" AND FALSE")
		return b
	}
	size := 1
	for size < len(values) {
		size *= 2
	}
	all := make(tuple, size)
	for i := range all {
		all[i] = values[min(i, len(values)-1)]
	}
	return b.And(column+" IN ", all)
}

// Few tells that the conditions leave few rows, which an index finds, such as those of one
// task: Newest sorts them then. SQLite would rather read all rows of an account in the order
// of another index, until it has seen so many of the few as the page has room for.
func (b *Builder) Few() *Builder {
	b.few = true
	return b
}

// OlderThan appends the condition that a row comes behind the one with this time and id in
// the order of Newest. It comes after Few.
func (b *Builder) OlderThan(at, id constant, micros int64, last string) *Builder {
	return b.And("("+b.unordered(at)+", "+id+") < ", Tuple(micros, last))
}

// Newest appends the order by a time and an id, newest first, and the limit.
func (b *Builder) Newest(at, id constant, limit int) *Builder {
	return b.SQL(" ORDER BY "+b.unordered(at)+" DESC, "+id+" DESC LIMIT ", limit)
}

// unordered is a column of whole numbers, as an expression that no index orders if the rows
// are few.
func (b *Builder) unordered(column constant) constant {
	if b.few {
		return "+" + column
	}
	return column
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Contains appends the condition that part occurs in column. Case matters only for
// letters outside ASCII.
func (b *Builder) Contains(column constant, part string) *Builder {
	return b.And("lower("+column+") LIKE lower(", "%"+likeEscapes.Replace(part)+"%").SQL(`) ESCAPE '\'`)
}

// ForUpdate is Query.ForUpdate for a built query.
func (b *Builder) ForUpdate() *Builder {
	b.lock = true
	return b
}

func (b *Builder) list(values []any) {
	for i, v := range values {
		if i > 0 {
			b.text.WriteString(", ")
		}
		if t, ok := v.(tuple); ok {
			b.text.WriteByte('(')
			b.list(t)
			b.text.WriteByte(')')
			continue
		}
		b.args = append(b.args, v)
		b.text.WriteByte('$')
		b.text.WriteString(strconv.Itoa(len(b.args)))
	}
}

// Select runs a built query and returns all rows.
func Select[T any](tx *Tx, b *Builder) ([]T, error) {
	text := b.text.String()
	if b.lock && tx.Engine() == Postgres {
		text += forUpdate
	}
	if told, ok := tx.ctx.Value(builtKey{}).(func(string)); ok {
		told(text)
	}
	return selectRows[T](tx, built, text, b.args, -1)
}

type builtKey struct{}

// TellBuilt makes each built query of the transactions of ctx tell f its text, for tests that
// ask how such a query is carried out.
func TellBuilt(ctx context.Context, f func(text string)) context.Context {
	return context.WithValue(ctx, builtKey{}, f)
}
