package kb

import (
	"slices"
	"strings"
)

// mostEdits bounds the work of a diff. Texts that differ in more lines are shown as one place.
const mostEdits = 400

// hunks are the places at which two texts differ, by lines.
func hunks(before, after string) []Hunk {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := []Hunk{}
	ca, cb := a[head:len(a)-tail], b[head:len(b)-tail]
	at, bt := 0, 0 // behind the last lines that both have
	end := func(x, y int) {
		if x > at || y > bt {
			out = append(out, Hunk{
				OldLine: head + at + 1, NewLine: head + bt + 1, Removed: list(ca[at:x]), Added: list(cb[bt:y]),
			})
		}
	}
	for _, p := range common(ca, cb) {
		if p[0] != at || p[1] != bt {
			end(p[0], p[1])
		}
		at, bt = p[0]+1, p[1]+1
	}
	end(len(ca), len(cb))
	return out
}

// common are pairs of indexes of lines that both texts have, in order: the longest row of
// them (Myers), or none if the texts differ in more than mostEdits lines.
func common(a, b []string) [][2]int {
	most := min(len(a)+len(b), mostEdits)
	reach := make([]int, 2*most+2) // by diagonal: how far in a
	var steps [][]int
	for d := 0; d <= most; d++ {
		steps = append(steps, append([]int(nil), reach...))
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				if k == -d || k != d && reach[most+k-1] < reach[most+k+1] {
					x = reach[most+k+1]
				} else {
					x = reach[most+k-1] + 1
				}
			}
			y := x - k
			for x < len(a) && y >= 0 && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			reach[most+k] = x
			if x >= len(a) && y >= len(b) {
				return walk(steps, most, d, len(a), len(b))
			}
		}
	}
	return nil
}

// walk goes the way of common back.
func walk(steps [][]int, most, d, x, y int) [][2]int {
	var back [][2]int
	for ; d > 0; d-- {
		reach, k := steps[d], x-y
		from := k - 1
		if k == -d || k != d && reach[most+k-1] < reach[most+k+1] {
			from = k + 1
		}
		px := reach[most+from]
		py := px - from
		for x > px && y > py {
			x, y = x-1, y-1
			back = append(back, [2]int{x, y})
		}
		x, y = px, py
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		back = append(back, [2]int{x, y})
	}
	slices.Reverse(back)
	return back
}
