package moves

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// situation is facts and rules, some of them not filled in.
type situation struct {
	Facts
	Rules
}

// field is one fact: its name, and how many values it has.
type field struct {
	name string
	size uint8
}

// fields are the facts and rules in the order of their bytes in situation.
var fields, fieldOf = func() (all []field, of map[unset]int) {
	of = map[unset]int{}
	for _, part := range []reflect.Type{reflect.TypeFor[Facts](), reflect.TypeFor[Rules]()} {
		for i := range part.NumField() {
			f := part.Field(i)
			values := reflect.Zero(f.Type).MethodByName("Values").Call(nil)[0]
			name := f.Type.Name() // fact[yardmaster/internal/domain/pull/moves.state]
			of[unset(name[strings.LastIndexByte(name, '.')+1:len(name)-1])] = len(all)
			all = append(all, field{f.Name, uint8(values.Len())})
		}
	}
	if len(all) != int(unsafe.Sizeof(situation{})) {
		panic("a fact is no byte")
	}
	return all, of
}()

func (s *situation) at(i int) *uint8 {
	return &(*[unsafe.Sizeof(situation{})]uint8)(unsafe.Pointer(s))[i]
}

func (s situation) String() (out string) {
	v := reflect.ValueOf(s)
	for p := range 2 {
		for i := range v.Field(p).NumField() {
			if x := v.Field(p).Field(i); x.Uint() != 0 {
				out += fmt.Sprintf(" %s=%q", v.Field(p).Type().Field(i).Name, x.Interface())
			}
		}
	}
	return out
}

// try calls fn. If fn reads a fact that is not filled in, try answers which one.
func try[T any](fn func() T) (out T, missing int) {
	missing = -1
	defer func() {
		switch p := recover().(type) {
		case nil:
		case unset:
			missing = fieldOf[p]
		default:
			panic(p)
		}
	}()
	return fn(), -1
}

// readers are the exclusions that read a fact, by fact.
var readers = func() (of [64][]int) {
	for i, e := range exclusions {
		seen := map[int]bool{}
		var read func(s situation)
		read = func(s situation) {
			_, missing := try(func() bool { return e.Is(s.Facts) })
			if missing < 0 {
				return
			}
			seen[missing] = true
			for v := range fields[missing].size {
				*s.at(missing) = v + 1
				read(s)
			}
		}
		read(situation{})
		for f := range seen {
			of[f] = append(of[f], i)
		}
	}
	return of
}()

// walk calls check for all facts and rules that can occur. It fills in a fact only once
// check, or what check calls, has read it: so one call stands for all values of the facts
// that were never read. That is no assumption: what was not read had no value.
type walk struct {
	check func(Facts, Rules) error
	calls int    // that came to an end
	stood uint64 // combinations that these calls stand for
	fault func(situation, error)
}

func (w *walk) all(s situation) {
	err, missing := try(func() error { return w.check(s.Facts, s.Rules) })
	if missing < 0 && err != nil { // a fault, unless the facts cannot occur
		var valid bool
		if valid, missing = try(func() bool { return Valid(s.Facts) }); missing < 0 && valid {
			w.fault(s, err)
		}
	}
	if missing < 0 {
		w.calls++
		n := uint64(1)
		for i := range fields {
			if *s.at(i) == 0 {
				n *= uint64(fields[i].size)
			}
		}
		w.stood += n
		return
	}
	for v := range fields[missing].size {
		*s.at(missing) = v + 1
		if !excluded(s, missing) {
			w.all(s)
		}
	}
}

// excluded tells whether an exclusion holds already that reads a fact.
func excluded(s situation, fact int) bool {
	for _, i := range readers[fact] {
		if is, missing := try(func() bool { return exclusions[i].Is(s.Facts) }); missing < 0 && is {
			return true
		}
	}
	return false
}

// everywhere has check hold for all facts and rules that can occur.
func everywhere(t *testing.T, check func(Facts, Rules) error) *walk {
	t.Helper()
	faults := 0
	w := &walk{check: check}
	w.fault = func(s situation, err error) {
		if faults++; faults <= 5 {
			t.Errorf("%v\n\t%v", err, s)
		}
	}
	w.all(situation{})
	if faults > 5 {
		t.Errorf("and %d more", faults-5)
	}
	return w
}
