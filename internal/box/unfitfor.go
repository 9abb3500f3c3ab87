package box

import (
	"maps"
	"sync"
	"time"

	"yardmaster/internal/protocol"
)

// unfitForTime is how long a box takes no work of a repository whose cache it could not
// repair. After that it tries again.
const unfitForTime = 10 * time.Minute

// unfitFor are the repositories of which a box takes no work, although it is fit, with the
// reason.
type unfitFor struct {
	mu    sync.Mutex
	repos map[string]unfitReason
}

type unfitReason struct {
	why   string
	until time.Time
}

func (u *unfitFor) note(repo, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.repos == nil {
		u.repos = map[string]unfitReason{}
	}
	u.repos[repo] = unfitReason{keepStart(why, protocol.MaxUnfit), time.Now().Add(unfitForTime)}
}

func (u *unfitFor) clear(repo string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.repos, repo)
}

// now returns the reasons that count, by repository; nil if there are none.
func (u *unfitFor) now() map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.repos, func(_ string, r unfitReason) bool { return !time.Now().Before(r.until) })
	if len(u.repos) == 0 {
		return nil
	}
	out := map[string]string{}
	for repo, r := range u.repos {
		if len(out) == protocol.MaxUnfitFor {
			break
		}
		out[repo] = r.why
	}
	return out
}
