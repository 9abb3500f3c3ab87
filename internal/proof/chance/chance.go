// Package chance seeds the tests that draw at random. A run that decides whether a change
// is good draws from the number in YARDMASTER_SEED, which follows from the change: the
// change is refused for what is wrong with it, and not by a lot that falls on whoever
// comes by. Without the variable each run draws anew, and finds more.
//
// A test with a generator of its own calls Seed. One that calls rapid imports this package
// without a name: rapid then draws from the same number.
package chance

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that holds a seed: a whole number above 0.
const Variable = "YARDMASTER_SEED"

// given is the seed of the environment; 0: there is none.
var given uint64

// Packages are initialized in the order of their paths, so rapid has its flags by now. The
// command line is read later, and may name another seed.
func init() {
	text := os.Getenv(Variable)
	if text == "" {
		return
	}
	var err error
	if given, err = strconv.ParseUint(text, 10, 64); err != nil || given == 0 {
		panic(fmt.Sprintf("%s=%s is no whole number above 0", Variable, text))
	}
	if f := flag.Lookup("rapid.seed"); f != nil {
		if err := f.Value.Set(text); err != nil {
			panic(err)
		}
	}
}

// Seed returns the seed of a test, that of the environment or one by chance, and logs how
// to draw the same again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	n := given
	for n == 0 {
		n = rand.Uint64()
	}
	t.Logf("to draw the same again: %s=%d", Variable, n)
	return n
}
