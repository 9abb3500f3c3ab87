package db

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// StmtWith is a declared statement without rows whose parameters are named after
// the fields of A: ":account_id" is the field AccountID, or the field with the tag
// `db:"account_id"`. A name may occur several times in the text.
type StmtWith[A any] struct {
	stmt Stmt
	args *arguments
}

// SWith declares a statement with named parameters; like S, it is for
// package-level variables. A statement with more than three parameters has to name
// them.
//
//go:noinline
func SWith[A any](text constant) StmtWith[A] {
	args := &arguments{of: reflect.TypeFor[A](), raw: string(text)}
	return StmtWith[A]{Stmt{at: declare("", nil, args)}, args}
}

// Exec runs the statement and returns how many rows it changed.
func (s StmtWith[A]) Exec(tx *Tx, a A) (int64, error) {
	s.stmt.text = s.args.numbered().text
	return s.stmt.Exec(tx, s.args.values(reflect.ValueOf(&a).Elem())...)
}

// QueryWith is a Query whose parameters are named after the fields of A, like those
// of StmtWith.
type QueryWith[A, T any] struct {
	query Query[T]
	args  *arguments
}

// QWith declares a query with named parameters; like Q, it is for package-level
// variables.
//
//go:noinline
func QWith[A, T any](text constant) QueryWith[A, T] {
	args := &arguments{of: reflect.TypeFor[A](), raw: string(text)}
	return QueryWith[A, T]{Query[T]{at: declare("", reflect.TypeFor[T](), args)}, args}
}

// numbered is the query with numbers in place of the names.
func (q QueryWith[A, T]) numbered() Query[T] {
	q.query.text = q.args.numbered().text
	return q.query
}

// ForUpdate is Query.ForUpdate.
func (q QueryWith[A, T]) ForUpdate() QueryWith[A, T] {
	q.query = q.query.ForUpdate()
	return q
}

// One is Query.One.
func (q QueryWith[A, T]) One(tx *Tx, a A) (T, error) {
	return q.numbered().One(tx, q.args.values(reflect.ValueOf(&a).Elem())...)
}

// Maybe is Query.Maybe.
func (q QueryWith[A, T]) Maybe(tx *Tx, a A) (T, bool, error) {
	return q.numbered().Maybe(tx, q.args.values(reflect.ValueOf(&a).Elem())...)
}

// All is Query.All.
func (q QueryWith[A, T]) All(tx *Tx, a A) ([]T, error) {
	return q.numbered().All(tx, q.args.values(reflect.ValueOf(&a).Elem())...)
}

// arguments are the named parameters of a statement: the text with numbers in place
// of the names, and the field for each number. They are read when the statement is first
// used: there are several hundred, each start of the program declares them all, and a command
// uses none.
type arguments struct {
	of   reflect.Type
	raw  string // with names
	once sync.Once

	text   string
	names  []string
	fields [][]int // by number; nil: of has no such field
	unused []reflect.StructField
}

// numbered is a, read.
func (a *arguments) numbered() *arguments {
	a.once.Do(a.read)
	return a
}

// read numbers the parameters in the order of their first occurrence.
func (a *arguments) read() {
	text, of := a.raw, a.of
	number := map[string]int{}
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\'':
			end := i + 1
			for end < len(text) && text[end] != '\'' {
				end++
			}
			end = min(end+1, len(text))
			b.WriteString(text[i:end])
			i = end
		case c == ':' && i+1 < len(text) && isName(text[i+1]):
			end := i + 1
			for end < len(text) && isName(text[end]) {
				end++
			}
			name := text[i+1 : end]
			if number[name] == 0 {
				a.names = append(a.names, name)
				number[name] = len(a.names)
			}
			fmt.Fprintf(&b, "$%d", number[name])
			i = end
		default:
			b.WriteByte(c)
			i++
		}
	}
	a.text = b.String()
	a.fields = make([][]int, len(a.names))
	if of.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(of) {
		tag := f.Tag.Get("db")
		if tag == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		name := tag
		if name == "" {
			name = snake(f.Name)
		}
		if n := number[name]; n > 0 {
			a.fields[n-1] = f.Index
		} else {
			a.unused = append(a.unused, f)
		}
	}
}

func isName(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// values returns the arguments in the order of their numbers.
func (a *arguments) values(of reflect.Value) []any {
	out := make([]any, len(a.fields))
	for i, index := range a.fields {
		if index == nil {
			panic("db: " + a.of.String() + " has no field for :" + a.names[i])
		}
		out[i] = of.FieldByIndex(index).Interface()
	}
	return out
}

// Parameter is a named parameter of a declared statement.
type Parameter struct {
	Name string
	Type reflect.Type // of the field that it is bound to; nil: there is no such field
}

// Parameters lists the named parameters, in the order of their numbers.
func (d Declaration) Parameters() []Parameter {
	if d.args == nil {
		return nil
	}
	out := make([]Parameter, len(d.args.names))
	for i, name := range d.args.names {
		out[i].Name = name
		if index := d.args.fields[i]; index != nil {
			out[i].Type = d.args.of.FieldByIndex(index).Type
		}
	}
	return out
}

// mostNumbered limits the parameters of a statement that does not name them.
const mostNumbered = 3

// checkArguments returns an error if the parameters are bound wrongly. A type of
// rows may have fields that the statement does not use; a type made for one
// statement may not.
func (d Declaration) checkArguments() error {
	if d.args == nil {
		if n := highest(d.SQL); n > mostNumbered {
			return fmt.Errorf("db: %d numbered parameters: name them, with SWith or QWith", n)
		}
		return nil
	}
	for _, p := range d.Parameters() {
		if p.Type == nil {
			return fmt.Errorf("db: :%s has no field in %s", p.Name, d.args.of)
		}
	}
	for _, f := range d.args.unused {
		// An embedded row may have fields that the statement does not use.
		if embedded := len(f.Index) > 1 && isRow(d.args.of.Field(f.Index[0]).Type); !embedded && !isRow(d.args.of) {
			return fmt.Errorf("db: the field %s of %s is no parameter", f.Name, d.args.of)
		}
	}
	return nil
}

// isRow tells whether a declared query returns rows of the type.
func isRow(t reflect.Type) bool {
	rows.Do(func() {
		for _, d := range Declared() {
			if d.Row != nil {
				rows.types.Store(d.Row, true)
			}
		}
	})
	_, ok := rows.types.Load(t)
	return ok
}

var rows struct {
	sync.Once
	types sync.Map
}

// highest returns the number of the last numbered parameter of a text.
func highest(text string) (n int) {
	for i := range len(text) {
		if text[i] != '$' {
			continue
		}
		at := 0
		for j := i + 1; j < len(text) && text[j] >= '0' && text[j] <= '9'; j++ {
			at = at*10 + int(text[j]-'0')
		}
		n = max(n, at)
	}
	return n
}

// Form returns the form in which the values of a Go type are stored: text, integer,
// boolean, bytes or number; "" if the form depends on the value.
func Form(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "integer"
	case strings.HasPrefix(t.String(), "db.JSON["):
		return "text"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
	}
	return ""
}
