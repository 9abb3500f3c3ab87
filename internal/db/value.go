package db

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/fault"
)

// Micros returns t as Unix microseconds, the form of all times in the database.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time returns the UTC time of Unix microseconds.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// NullText returns a value for a text column that is NULL for the empty text.
func NullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// JSON stores a value as JSON text in a TEXT column, as argument and as field.
// *JSON may be NULL.
type JSON[T any] struct{ V T }

// Value encodes the value as JSON text.
func (j JSON[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(j.V)
	return string(b), err
}

// Scan decodes the JSON text.
func (j *JSON[T]) Scan(src any) error {
	j.V = *new(T)
	switch s := src.(type) {
	case string:
		if empty(s, any(&j.V)) {
			return nil
		}
		return json.Unmarshal([]byte(s), &j.V)
	case []byte:
		return json.Unmarshal(s, &j.V)
	}
	return fmt.Errorf("JSON from %T", src)
}

// empty decodes an empty list or map, the most frequent values, without a decoder.
func empty(text string, to any) bool {
	switch to := to.(type) {
	case *[]string:
		if text == "[]" {
			*to = []string{}
			return true
		}
	case *map[string]string:
		if text == "{}" {
			*to = map[string]string{}
			return true
		}
	}
	return false
}

// microTime and nullMicroTime scan microseconds.
type (
	microTime     struct{ to *time.Time }
	nullMicroTime struct{ to **time.Time }
)

func (m microTime) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("time from %T, not from microseconds", src)
	}
	*m.to = Time(n)
	return nil
}

func (m nullMicroTime) Scan(src any) error {
	if src == nil {
		*m.to = nil
		return nil
	}
	*m.to = new(time.Time)
	return microTime{*m.to}.Scan(src)
}

// bind converts arguments to types that both drivers treat alike.
func bind(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, a := range args {
		v, err := bindOne(a)
		if err != nil {
			return nil, fmt.Errorf("argument $%d: %w", i+1, err)
		}
		out[i] = v
	}
	return out, nil
}

func bindOne(arg any) (any, error) {
	switch v := arg.(type) {
	case nil, int64, bool, []byte, float64:
		return v, nil
	case string:
		return text(v)
	case int:
		return int64(v), nil
	case time.Time:
		return Micros(v), nil
	}
	rv := reflect.ValueOf(arg)
	if rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return nil, nil
		}
		return bindOne(rv.Elem().Interface())
	}
	if v, ok := arg.(driver.Valuer); ok {
		made, err := v.Value()
		if err != nil {
			return nil, err
		}
		return bindOne(made)
	}
	switch rv.Kind() {
	case reflect.String:
		return text(rv.String())
	case reflect.Bool:
		return rv.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int(), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(rv.Uint()), nil
	case reflect.Float32:
		return rv.Float(), nil
	case reflect.Slice:
		if rv.Type().Elem().Kind() == reflect.Uint8 {
			return rv.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("a %T cannot be stored", arg)
}

// text refuses text that PostgreSQL cannot store. It returns a fault of kind
// Invalid, because such text can only come from a request.
func text(s string) (any, error) {
	if !utf8.ValidString(s) {
		return nil, fault.New(fault.Invalid, "", "Text must be valid UTF-8.")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return nil, fault.New(fault.Invalid, "", "Text may not hold the character U+0000.")
	}
	return s, nil
}
