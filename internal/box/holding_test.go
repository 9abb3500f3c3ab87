package box

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// TestLevelThatHoldsLessMeetsNoDemand holds that a level meets a demand only while
// it gives what its name promises.
func TestLevelThatHoldsLessMeetsNoDemand(t *testing.T) {
	t.Parallel()
	whole := []sandbox.Protection{sandbox.Files, sandbox.Processes, sandbox.UnixSockets, sandbox.Network}
	quiet := slog.New(slog.DiscardHandler)
	b := &box{setup: &setup{levels: []sandbox.Level{sandbox.Landlock, sandbox.None}}}
	if got := (&holding{}).at(sandbox.Landlock); got == nil || len(got) != 0 {
		t.Errorf("what was never tried holds %v", got)
	}
	for _, x := range []struct {
		found   sandbox.Finding
		news    bool
		demands map[string]sandbox.Level // the level that a demand gets; empty: it is refused
	}{
		{sandbox.Finding{Level: sandbox.Landlock, Holds: whole[:1]}, true, map[string]sandbox.Level{"": "landlock", "none": "landlock",
			"landlock": "", "bubblewrap": ""}},
		{sandbox.Finding{Level: sandbox.Landlock, Holds: whole}, true, map[string]sandbox.Level{"": "landlock", "none": "landlock",
			"landlock": "landlock", "bubblewrap": "", "best": ""}},
		{sandbox.Finding{Level: sandbox.Landlock, Holds: whole}, false, nil},
		{sandbox.Finding{Level: sandbox.Landlock, Err: errors.New("the disk is full")}, false,
			map[string]sandbox.Level{"landlock": "landlock"}},
		{sandbox.Finding{Level: sandbox.Landlock, Holds: whole[1:]}, true, map[string]sandbox.Level{"landlock": ""}},
	} {
		if news := b.setup.holding.note(x.found, quiet); news != x.news {
			t.Errorf("%+v: news: %v", x.found, news)
		}
		for least, want := range x.demands {
			if got, err := b.isolation(protocol.Start{Isolation: least}); got != want || (err == nil) != (want != "") || err != nil &&
				!strings.Contains(err.Error(), "which holds") {
				t.Errorf("%+v: a demand of %q gets %q, %v", x.found, least, got, err)
			}
		}
	}
	b.setup.levels = append([]sandbox.Level{sandbox.Bubblewrap}, b.setup.levels...)
	b.setup.holding.note(sandbox.Finding{Level: sandbox.Bubblewrap, Holds: whole[1:]}, quiet)
	b.setup.holding.note(sandbox.Finding{Level: sandbox.Landlock, Holds: whole}, quiet)
	if got, err := b.isolation(protocol.Start{Isolation: "landlock"}); got != sandbox.Landlock {
		t.Errorf("the worse of two levels, which holds, is not taken: %q %v", got, err)
	}
}

// TestProtectionsAreTheProtocols holds that the box and the protocol use the same
// names of protections.
func TestProtectionsAreTheProtocols(t *testing.T) {
	t.Parallel()
	if want := []string{string(sandbox.Files), string(sandbox.Processes), string(sandbox.UnixSockets),
		string(sandbox.Network)}; !slices.Equal(protocol.Isolated, want) {
		t.Errorf("%v", protocol.Isolated)
	}
}

// TestBoundsAreSaid holds that the limits of every run are reported for every
// level, and only while they hold.
func TestBoundsAreSaid(t *testing.T) {
	t.Parallel()
	var h holding
	h.noteLimits(map[limits.Resource]limits.Means{limits.Memory: limits.ByWatch, limits.Disk: limits.ByWatch, limits.CPU: limits.NotHeld})
	if got := h.at(sandbox.None); !slices.Equal(got, []string{"memory", "disk"}) {
		t.Errorf("none holds %v", got)
	}
	h.noteLimits(map[limits.Resource]limits.Means{limits.Memory: limits.NotSet, limits.Disk: limits.ByWatch})
	if got := h.at(sandbox.None); !slices.Equal(got, []string{"disk"}) {
		t.Errorf("without a limit of memory none holds %v", got)
	}
}
