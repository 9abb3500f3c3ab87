package arch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestDump(t *testing.T) {
	w := map[string]map[string][]string{}
	r := map[string]map[string][]string{}
	put := func(m map[string]map[string][]string, a, b, at string) {
		if m[a] == nil {
			m[a] = map[string][]string{}
		}
		m[a][b] = append(m[a][b], at)
	}
	for _, s := range statements(t) {
		for _, x := range s.writes {
			put(w, x, s.pkg, s.at)
		}
		for _, x := range s.reads {
			put(r, x, s.pkg, s.at)
		}
	}
	for _, x := range slices.Sorted(maps.Keys(w)) {
		fmt.Print("W ", x, ":")
		for _, p := range slices.Sorted(maps.Keys(w[x])) {
			fmt.Print(" ", p, "(", len(w[x][p]), ")")
		}
		fmt.Println()
	}
	for _, x := range slices.Sorted(maps.Keys(r)) {
		for _, p := range slices.Sorted(maps.Keys(r[x])) {
			if w[x][p] == nil {
				fmt.Println("R ", x, p, r[x][p])
			}
		}
	}
}
