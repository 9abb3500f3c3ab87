package measure

import (
	"math"
	"testing"
)

// The intervals are those of Wilson's formula, as tables have them.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r         Rate
		low, high float64
	}{
		{Rate{0, 0}, 0, 1}, {Rate{0, 10}, 0, .2775}, {Rate{10, 10}, .7225, 1}, {Rate{5, 10}, .2366, .7634}, {Rate{1, 1}, .2065, 1},
		{Rate{81, 263}, .2553, .3662},
	} {
		if low, high := c.r.Wilson(); math.Abs(low-c.low) > .0001 || math.Abs(high-c.high) > .0001 {
			t.Errorf("%+v: %f to %f", c.r, low, high)
		}
	}
}
