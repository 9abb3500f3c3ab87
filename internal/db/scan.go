package db

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// plan maps the columns of a result to the fields of a row type.
type plan struct {
	scalar bool
	fields [][]int // by column: the index path of the field
}

type planKey struct {
	row     reflect.Type
	columns string
}

var plans sync.Map // planKey -> *plan

var scannerType = reflect.TypeFor[sql.Scanner]()

func planFor(row reflect.Type, columns []string) (*plan, error) {
	key := planKey{row, strings.Join(columns, ",")}
	if p, ok := plans.Load(key); ok {
		return p.(*plan), nil
	}
	p, err := newPlan(row, columns)
	if err != nil {
		return nil, err
	}
	plans.Store(key, p)
	return p, nil
}

func newPlan(row reflect.Type, columns []string) (*plan, error) {
	if row.Kind() != reflect.Struct || row == reflect.TypeFor[time.Time]() || reflect.PointerTo(row).Implements(scannerType) {
		if len(columns) != 1 {
			return nil, fmt.Errorf("db: %d columns (%s) for one %s", len(columns), strings.Join(columns, ", "), row)
		}
		return &plan{scalar: true}, nil
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(row) {
		tag := f.Tag.Get("db")
		if tag == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		name := tag
		if name == "" {
			name = snake(f.Name)
		}
		if _, ok := fields[name]; ok {
			return nil, fmt.Errorf("db: two fields of %s for column %s", row, name)
		}
		fields[name] = f.Index
	}
	p := &plan{fields: make([][]int, len(columns))}
	for i, c := range columns {
		index, ok := fields[c]
		if !ok {
			return nil, fmt.Errorf("db: column %s has no field of its own in %s", c, row)
		}
		p.fields[i] = index
		delete(fields, c)
	}
	for name := range fields {
		return nil, fmt.Errorf("db: no column for the field %s of %s", name, row)
	}
	return p, nil
}

// targets fills dest with pointers into one row.
func (p *plan) targets(row reflect.Value, dest []any) {
	if p.scalar {
		dest[0] = target(row)
		return
	}
	for i, index := range p.fields {
		dest[i] = target(row.FieldByIndex(index))
	}
}

func target(v reflect.Value) any {
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		return microTime{to}
	case **time.Time:
		return nullMicroTime{to}
	default:
		return to
	}
}

// scan reads up to limit rows, or all of them if limit is negative, and closes
// rows.
func scan[T any](rows *sql.Rows, limit int) (out []T, err error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	p, err := planFor(reflect.TypeFor[T](), columns)
	if err != nil {
		return nil, err
	}
	dest := make([]any, len(columns))
	for len(out) != limit && rows.Next() {
		if limit < 0 && len(out) == cap(out) {
			out = slices.Grow(out, max(8, len(out))) // rows are large, so fewer copies pay
		}
		out = append(out, *new(T))
		p.targets(reflect.ValueOf(&out[len(out)-1]).Elem(), dest)
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
	}
	return out, rows.Err()
}

// snake returns the column of a field: AccountID is account_id.
func snake(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			after := i > 0 && !unicode.IsUpper(runes[i-1])
			before := i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if after || before {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
