package review

import "yardmaster/internal/codehost"

// place is where a finding is posted.
type place struct {
	Side      string // codehost.SideBase or SideHead
	StartLine int    // 0: one line
	Line      int    // 0: in the text of the review, not at a line
}

// placeOf places the lines start to end of a file of a diff, all of them in the file of the
// side. symbol answers the section around a line of the head. A line that is not in a hunk
// goes to the nearest one within the same section; without one, to the text of the review.
func placeOf(f *codehost.File, side string, start, end int, symbol func(line int) string) place {
	out := place{Side: side}
	if f == nil || f.Cut || f.Binary {
		return out
	}
	var nearest, distance int
	for _, h := range f.Hunks {
		first, count := h.NewStart, h.NewLines
		if side == codehost.SideBase {
			first, count = h.OldStart, h.OldLines
		}
		if count == 0 {
			continue
		}
		last := first + count - 1
		if first <= end && end <= last {
			out.Line = end
			if first <= start && start < end {
				out.StartLine = start
			}
			return out
		}
		for _, edge := range []int{first, last} {
			if d := max(edge-end, end-edge); nearest == 0 || d < distance {
				nearest, distance = edge, d
			}
		}
	}
	if nearest > 0 && side == codehost.SideHead && symbol(nearest) != "" && symbol(nearest) == symbol(end) {
		out.Line = nearest
	}
	return out
}
