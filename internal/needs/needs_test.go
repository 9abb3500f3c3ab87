package needs

import (
	"io"
	"strings"
	"testing"
)

type given struct {
	Out   io.Writer
	Log   *strings.Builder
	Now   func() int
	Table map[string]int
	Name  string
	Cache io.Reader `optional:"requests are counted without one"`
}

func TestWhole(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := given{Out: &b, Log: &b, Now: func() int { return 1 }, Table: map[string]int{}}
	Whole(all)
	for want, lack := range map[string]func(*given){
		"needs.given.Out is not given":   func(g *given) { g.Out = nil },
		"needs.given.Log is not given":   func(g *given) { g.Log = nil },
		"needs.given.Now is not given":   func(g *given) { g.Now = nil },
		"needs.given.Table is not given": func(g *given) { g.Table = nil },
	} {
		some := all
		lack(&some)
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("it says %v, not %q", got, want)
				}
			}()
			Whole(some)
		}()
	}
}
