package tree

import (
	"errors"

	flag "github.com/spf13/pflag"
)

var errTwice = errors.New("it is given twice")

// single is the value of a flag that is given once: a list has one filter of a kind.
type single struct {
	at    *string
	given bool
}

func (s *single) String() string {
	if s.at == nil {
		return ""
	}
	return *s.at
}

func (s *single) Set(text string) error {
	if s.given {
		return errTwice
	}
	*s.at, s.given = text, true
	return nil
}

func (s *single) Type() string { return "string" }

// Once declares a flag that is given once.
func Once(fl *flag.FlagSet, name, doc string) *string {
	at := new(string)
	fl.Var(&single{at: at}, name, doc)
	return at
}
