package astray

import (
	"strings"
	"testing"
	"time"
)

func TestSettingTheClock(t *testing.T) {
	if !Possible {
		Set(time.Hour)
		if d := time.Until(time.Now()); d > time.Minute {
			t.Fatalf("the clock was set by %s where that is not possible", d)
		}
		return
	}
	defer Set(0)
	right := time.Now()
	for _, by := range []time.Duration{time.Hour, -3 * time.Hour, 0, 2 * time.Second} {
		Set(by)
		now := time.Now()
		if off := now.Round(0).Sub(right.Round(0)) - by; off < 0 || off > time.Minute {
			t.Errorf("set by %s, the clock is wrong by %s", by, off)
		}
		if took := now.Sub(right); took < 0 || took > time.Minute {
			t.Errorf("set by %s, %s have passed since the test began", by, took)
		}
		if passed := time.Now().UnixNano() - now.UnixNano(); passed < 0 || passed > int64(time.Minute) {
			t.Errorf("set by %s, the clock stands still or runs: %d", by, passed)
		}
	}
}

func TestFollowing(t *testing.T) {
	defer Set(0)
	right := time.Now().Round(0)
	if err := Follow(strings.NewReader("7200\n-60\n3600\n")); err != nil {
		t.Fatal(err)
	}
	if off := time.Now().Round(0).Sub(right) - time.Hour; Possible && (off < 0 || off > time.Minute) {
		t.Errorf("the clock is wrong by %s", off)
	}
	if err := Follow(strings.NewReader("soon\n")); err == nil {
		t.Error("a clock was set to soon")
	}
}
