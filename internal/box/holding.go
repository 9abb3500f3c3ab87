package box

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// holding records the protections that each level gave at its last trial on this
// machine.
type holding struct {
	mu           sync.Mutex
	by           map[sandbox.Level][]string
	startLimited []string // protections by the limits of a run, at every level
}

// noteLimits notes which protections the limits of a run give.
func (h *holding) noteLimits(held map[limits.Resource]limits.Means) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startLimited = nil
	for resource, p := range map[limits.Resource]sandbox.Protection{limits.Memory: sandbox.Memory, limits.Disk: sandbox.Disk} {
		if m := held[resource]; m != limits.NotHeld && m != limits.NotSet {
			h.startLimited = append(h.startLimited, string(p))
		}
	}
	slices.Sort(h.startLimited)
	slices.Reverse(h.startLimited) // memory first, as it is shown
}

// note records a finding and tells whether it differs from the one before. A level
// that could not be tried keeps its former protections.
func (h *holding) note(f sandbox.Finding, log *slog.Logger) (changed bool) {
	if f.Err != nil {
		return false
	}
	holds := make([]string, len(f.Holds))
	for i, p := range f.Holds {
		holds[i] = string(p)
	}
	h.mu.Lock()
	before, known := h.by[f.Level]
	if h.by == nil {
		h.by = map[sandbox.Level][]string{}
	}
	h.by[f.Level] = holds
	h.mu.Unlock()
	if changed = !known || !slices.Equal(before, holds); changed && f.Level != sandbox.None && !protocol.Keeps(string(f.Level), holds) {
		log.Warn("an isolation level holds less than it should: runs that demand it are not taken",
			"level", f.Level, "holds", holds, "agents can", f.Open)
	}
	return changed
}

// at lists the protections of a level.
func (h *holding) at(l sandbox.Level) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(append([]string{}, h.by[l]...), h.startLimited...)
}

// keeps tells whether a level gives all that its name promises.
func (h *holding) keeps(l sandbox.Level) bool { return protocol.Keeps(string(l), h.at(l)) }

// retry tries the level that runs get once more and tells whether its protections
// have changed.
func (s *setup) retry(ctx context.Context, log *slog.Logger) (changed bool) {
	f := sandbox.ProbeLevel(ctx, s.levels[0], s.work, s.program)
	if f.Err != nil {
		log.Warn("isolation not tried again", "level", f.Level, "reason", f.Err)
	}
	return s.holding.note(f, log)
}
