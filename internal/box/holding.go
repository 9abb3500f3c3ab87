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

// holding is what each level held when it was last tried on this machine.
type holding struct {
	mu    sync.Mutex
	by    map[sandbox.Level][]string
	bound []string // what every run is held to, at any level
}

// bounded notes which protections the limits of a run give.
func (h *holding) bounded(held map[limits.Resource]limits.Means) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bound = nil
	for resource, p := range map[limits.Resource]sandbox.Protection{limits.Memory: sandbox.Memory, limits.Disk: sandbox.Disk} {
		if m := held[resource]; m != limits.NotHeld && m != limits.NotSet {
			h.bound = append(h.bound, string(p))
		}
	}
	slices.Sort(h.bound)
	slices.Reverse(h.bound) // memory first, as it is shown
}

// note keeps a finding and tells whether it says anything new. A level that
// could not be tried keeps what it held before.
func (h *holding) note(f sandbox.Finding, log *slog.Logger) (news bool) {
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
	if news = !known || !slices.Equal(before, holds); news && f.Level != sandbox.None && !protocol.Keeps(string(f.Level), holds) {
		log.Warn("an isolation level holds less than it should: runs that demand it are not taken", "level", f.Level, "holds", holds, "agents can", f.Open)
	}
	return news
}

// at is what a level holds.
func (h *holding) at(l sandbox.Level) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(append([]string{}, h.by[l]...), h.bound...)
}

// keeps tells whether a level is what its name promises.
func (h *holding) keeps(l sandbox.Level) bool { return protocol.Keeps(string(l), h.at(l)) }

// retry tries the level that runs get once more and tells whether that says
// anything new.
func (s *setup) retry(ctx context.Context, log *slog.Logger) (news bool) {
	f := sandbox.ProbeLevel(ctx, s.levels[0], s.work, s.program)
	if f.Err != nil {
		log.Warn("isolation not tried again", "level", f.Level, "reason", f.Err)
	}
	return s.holding.note(f, log)
}
