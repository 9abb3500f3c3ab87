package overview

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
)

const (
	// publicDays is the length of the window of public numbers.
	publicDays = 30
	// publicAge is how long numbers are answered again. Whether a repository shows them
	// is read for every call.
	publicAge = time.Minute
	// mostCached is how many repositories are kept in memory.
	mostCached = 1000
)

// Donations answers what repositories were given.
type Donations interface {
	// Received counts the gifts that a repository of tx.Account has now.
	Received(tx *db.Tx, repoID string) (*Received, error)
}

// Received is what a repository was given and has now.
type Received struct {
	_       struct{} `doc:"Gifts that a repository has now, counted." schema:"ReceivedDonations"`
	Money   int64    `json:"money" example:"0" doc:"gifts of money"`
	Compute int64    `json:"compute" example:"1" doc:"machines that were lent"`
	LLM     int64    `json:"llm" example:"2" doc:"model keys that were lent"`
}

// Authored counts the pull requests of agents.
type Authored struct {
	_        struct{} `doc:"Pull requests that agents opened, counted over the window." schema:"AgentAuthored"`
	Merged   int64    `json:"merged" example:"12" doc:"merged in the window"`
	Reverted int64    `json:"reverted" example:"0" doc:"of those, reverted since: a merged pull request names the merge commit after \"This reverts commit\", or is titled Revert \"TITLE\""`
}

// PublicStats are the numbers that a repository shows everybody.
type PublicStats struct {
	_             struct{}  `doc:"What a repository shows everybody of its activity. A member is null unless the repository consents to it." schema:"PublicStats"`
	Repo          string    `json:"repo" doc:"owner/name"`
	WindowDays    int       `json:"window_days" example:"30" doc:"how many days back is counted"`
	Donations     *Received `json:"donations" doc:"what it was given and has now; null unless donations_enabled"`
	AgentAuthored *Authored `json:"agent_authored" doc:"pull requests opened by a task, without those that only raise a version for a release; null unless public_stats_enabled"`
	HumanApproved *int64    `json:"human_approved_30d" example:"9" doc:"how many of the merged ones of agent_authored a person had approved when asked; null unless public_stats_enabled"`
	HumanDays     *int64    `json:"days_since_human_commit" example:"3" doc:"whole days since the newest pull request of a person was merged; a push past pull requests is not seen; null if there is none, and unless public_stats_enabled"`
}

// counted are the numbers of a repository, whoever may see them.
type counted struct {
	at       time.Time
	received *Received
	authored Authored
	approved int64
	human    *time.Time // when the newest pull request of a person was merged
}

// cache keeps the numbers of repositories for a while.
type cache struct {
	mu   sync.Mutex
	byID map[string]counted
}

func (c *cache) get(repoID string, now time.Time) (counted, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.byID[repoID]
	age := now.Sub(n.at)
	return n, ok && age >= 0 && age < publicAge
}

func (c *cache) put(repoID string, n counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil || len(c.byID) >= mostCached {
		c.byID = map[string]counted{}
	}
	c.byID[repoID] = n
}

func (s *Service) public(ctx context.Context, in nameIn) (op.Reply, error) {
	var out PublicStats
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := selectPublic.Maybe(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("repository that shows its activity")
		}
		n, fresh := s.cached.get(r.ID, tx.Now)
		if !fresh {
			if err := tx.As(r.AccountID, func() (err error) {
				n, err = s.count(tx, r)
				return err
			}); err != nil {
				return err
			}
			s.cached.put(r.ID, n)
		}
		out = shown(r, n, tx.Now)
		return nil
	})
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{ContentType: "application/json", Header: map[string]string{"Cache-Control": "public, max-age=60"}, Body: out}, nil
}

// shown are those numbers of a repository that it consents to show.
func shown(r publicRow, n counted, now time.Time) PublicStats {
	out := PublicStats{Repo: r.Owner + "/" + r.Name, WindowDays: publicDays}
	if r.DonationsEnabled {
		out.Donations = n.received
	}
	if r.PublicStatsEnabled {
		out.AgentAuthored, out.HumanApproved = &n.authored, &n.approved
		if n.human != nil {
			days := max(0, int64(now.Sub(*n.human)/(24*time.Hour)))
			out.HumanDays = &days
		}
	}
	return out
}

// count counts the activity of a repository of tx.Account.
func (s *Service) count(tx *db.Tx, r publicRow) (n counted, err error) {
	n.at = tx.Now
	if n.received, err = s.Donations.Received(tx, r.ID); err != nil {
		return n, err
	}
	a, err := measure.AuthoredOf(tx, r.ID, measure.Since(tx.Now.AddDate(0, 0, -publicDays)))
	if err != nil {
		return n, err
	}
	n.authored, n.approved = Authored{Merged: a.Merged, Reverted: a.Reverted}, a.Approved
	n.human, err = selectHuman.One(tx, tx.Account, r.ID)
	return n, err
}
