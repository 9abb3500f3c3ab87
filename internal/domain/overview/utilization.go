package overview

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
)

// mostShown is how many boxes, lanes and repositories one read shows.
const mostShown = 1000

// Boxes tells of the boxes of an account.
type Boxes interface {
	// Loads lists the boxes of tx.Account that are not revoked, the newest first and at most
	// most.
	Loads(tx *db.Tx, most int) ([]BoxLoad, error)
}

// Knowledge tells of the knowledge base.
type Knowledge interface {
	// Ages tells how old the pages of repositories of tx.Account are, by the id of the repository.
	// It lacks those without pages.
	Ages(tx *db.Tx, repoIDs []string) (map[string]PageAge, error)
}

// PageAge is how old the pages of a repository are.
type PageAge struct {
	Pages, Fresh int64 // Fresh: what they were written from is as it was
	Newest       time.Time
}

// Utilization is what a fleet does now.
type Utilization struct {
	_       struct{}    `doc:"What the fleet does now, and what waits for it." schema:"FleetUtilization"`
	At      time.Time   `json:"at" doc:"when it was read"`
	Slots   int64       `json:"slots" example:"8" doc:"runs that the boxes which are online and enrolled take at once"`
	Active  int64       `json:"active" example:"3" doc:"runs that all boxes hold"`
	Boxes   []BoxLoad   `json:"boxes" doc:"the account's boxes that are not revoked, newest first"`
	Keys    []KeyHeat   `json:"keys" doc:"the key pool, by provider"`
	Backlog BacklogLoad `json:"backlog" doc:"the queue"`
	KB      []RepoKB    `json:"kb" doc:"the knowledge base of each enabled repository, by its name"`
	More    bool        `json:"more" doc:"true: of boxes, lanes or repositories there are more than the 1000 that are shown"`
}

// BoxLoad is what a box does.
type BoxLoad struct {
	_        struct{}         `doc:"What a box does now." schema:"BoxLoad"`
	ID       string           `json:"id" format:"uuid" doc:"id of the box"`
	Name     string           `json:"name" example:"build-3" doc:"its name"`
	State    measure.BoxState `json:"state" doc:"as box.get has it"`
	Presence measure.Presence `json:"presence" doc:"as box.get has it"`
	Version  string           `json:"version" example:"1.4.0" doc:"of the program on it; empty before its first beat"`
	Unfit    *string          `json:"unfit" example:"null" doc:"why it takes no work; null: nothing is wrong with it"`
	Active   int64            `json:"active" example:"2" doc:"runs it holds"`
	Slots    int64            `json:"slots" example:"4" doc:"runs it takes at once"`
	DiskFree *int64           `json:"disk_free" example:"52000000000" doc:"bytes free on the disk it works on; null before its first beat"`
}

// KeyHeat is how the keys of a provider are used.
type KeyHeat struct {
	_        struct{} `doc:"How hot the keys of a provider are: n of d calls at once." schema:"KeyHeat"`
	Provider string   `json:"provider" example:"anthropic" doc:"whose keys"`
	Keys     int64    `json:"keys" example:"2" doc:"how many there are"`
	Failing  int64    `json:"failing" example:"0" doc:"of those, refused by the provider at their last use"`
	Status   Grade    `json:"status" doc:"bad: none works, or n reaches d; warn: one is failing, or n reaches four fifths of d; no_data: no capacity is known"`
	N        int64    `json:"n" example:"3" doc:"sessions of runs under way that call it; each has one call at once, mostly"`
	D        int64    `json:"d" example:"8" doc:"the capacities of its keys, added up; 0 where one has none"`
}

// BacklogLoad is the queue of an account.
type BacklogLoad struct {
	_       struct{}      `doc:"What waits in the queue." schema:"FleetBacklog"`
	Pending int64         `json:"pending" example:"9" doc:"tasks in the queue"`
	Ready   int64         `json:"ready" example:"6" doc:"of those, what a box could take at once"`
	Lanes   []BacklogLane `json:"lanes" doc:"the ready tasks, the deepest lane first"`
}

// BacklogLane is a part of a queue that the same boxes can take.
type BacklogLane struct {
	_        struct{}  `doc:"Ready tasks that the same boxes can take." schema:"BacklogLane"`
	Repo     string    `json:"repo" doc:"owner/name"`
	Template string    `json:"template" example:"default" doc:"their template; empty: they are checks"`
	Priority int64     `json:"priority" example:"50" doc:"their priority"`
	Depth    int64     `json:"depth" example:"4" doc:"how many"`
	Since    time.Time `json:"since" doc:"when the oldest was filed, or a little before"`
}

// RepoKB is how fresh the knowledge base of a repository is.
type RepoKB struct {
	_      struct{}   `doc:"How fresh the knowledge base of a repository is: n of d pages." schema:"RepoKBFreshness"`
	Repo   string     `json:"repo" doc:"owner/name"`
	Status Grade      `json:"status" doc:"ok from nine tenths, warn from half; no_data: it has no page"`
	N      int64      `json:"n" example:"11" doc:"pages whose sources are as they were"`
	D      int64      `json:"d" example:"12" doc:"pages"`
	Newest *time.Time `json:"newest" doc:"when a page was last written; null: none was"`
	Pushed *time.Time `json:"last_activity_at" doc:"when the default branch was last pushed to; null: never"`
}

func (s *Service) utilization(ctx context.Context, _ op.None) (out Utilization, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = Utilization{At: tx.Now, Keys: []KeyHeat{}, KB: []RepoKB{}, Backlog: BacklogLoad{Lanes: []BacklogLane{}}}
		boxes, err := s.Boxes.Loads(tx, mostShown+1)
		if err != nil {
			return err
		}
		out.Boxes = cut(boxes, &out.More)
		for _, b := range boxes {
			out.Active += b.Active
			if b.Presence == "online" && b.State == "enrolled" {
				out.Slots += b.Slots
			}
		}
		heats, err := measure.Heats(tx)
		if err != nil {
			return err
		}
		for _, h := range heats {
			out.Keys = append(out.Keys, heat(h))
		}
		waits, err := measure.BacklogOf(tx)
		if err != nil {
			return err
		}
		out.Backlog.Pending, out.Backlog.Ready = waits.Pending, waits.Ready
		lanes, err := measure.Lanes(tx, mostShown+1)
		if err != nil {
			return err
		}
		for _, l := range cut(lanes, &out.More) {
			out.Backlog.Lanes = append(out.Backlog.Lanes, BacklogLane{
				Repo: l.Repo, Template: l.Template, Priority: l.Priority, Depth: l.Ready, Since: l.Since,
			})
		}
		repos, err := measure.EnabledRepos(tx, mostShown+1)
		if err != nil {
			return err
		}
		return s.pages(tx, cut(repos, &out.More), &out)
	})
	return out, err
}

// cut leaves as many rows as are shown, and says in more whether there were others.
func cut[T any](rows []T, more *bool) []T {
	if len(rows) > mostShown {
		*more = true
		return rows[:mostShown]
	}
	return rows
}

// heat grades the use of keys.
func heat(h measure.Heat) KeyHeat {
	out := KeyHeat{Provider: h.Provider, Keys: h.Keys, Failing: h.Failing, N: h.Sessions, D: h.Capacity, Status: gradeOK}
	if h.Unknown > 0 {
		out.D = 0
	}
	switch {
	case h.Failing == h.Keys || out.D > 0 && out.N >= out.D:
		out.Status = gradeBad
	case h.Failing > 0 || out.D > 0 && 5*out.N >= 4*out.D:
		out.Status = gradeWarn
	case out.D == 0:
		out.Status = gradeNoData
	}
	return out
}

// pages adds how fresh the pages of repositories are.
func (s *Service) pages(tx *db.Tx, repos []measure.Known, out *Utilization) error {
	ids := make([]string, len(repos))
	for i, r := range repos {
		ids[i] = r.ID
	}
	ages, err := s.Knowledge.Ages(tx, ids)
	if err != nil {
		return err
	}
	for _, r := range repos {
		kb := RepoKB{Repo: r.Repo, Status: gradeNoData, Pushed: r.LastActivityAt}
		if a, ok := ages[r.ID]; ok {
			fresh := objective{ok: 900, warn: 500}
			kb.Status, kb.N, kb.D, kb.Newest = fresh.grade(measure.Rate{N: a.Fresh, D: a.Pages}), a.Fresh, a.Pages, &a.Newest
		}
		out.KB = append(out.KB, kb)
	}
	return nil
}
