package queue

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// Status is the answer of task.stalls. Every pending task is counted as
// claimable or occurs in at least one stall, and so does every task that is held
// because money, or a price for its model, is lacking.
type Status struct {
	_             struct{} `doc:"The pending tasks of the account, counted by what holds them."`
	QueueDepth    int64    `json:"queue_depth" doc:"pending tasks"`
	QueueDepthCap int64    `json:"queue_depth_cap" doc:"-1 is uncapped"`
	Claimable     int64    `json:"claimable" doc:"pending tasks that an online box can take now"`
	Data          []Stall  `json:"data" doc:"the reasons, the one that holds most tasks first"`
	NextCursor    *string  `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

// Stall is one reason that holds pending tasks back.
type Stall struct {
	_          struct{}    `doc:"One reason that holds pending tasks, and how many." schema:"TaskStall"`
	Reason     string      `json:"reason" known:"hold_reasons" doc:"slug of the reason, as in the holds of a task"`
	Count      int64       `json:"count" doc:"tasks it holds: pending ones, and those held for want of money or of a price"`
	Since      time.Time   `json:"since" doc:"when it began to hold the first of them"`
	ClearsWhen string      `json:"clears_when" example:"a box of the account comes online" doc:"what has to happen for it to end, in words"`
	Clear      *task.Clear `json:"clear" doc:"the call that clears it; null when it only clears by itself"`
	TaskIDs    []string    `json:"task_ids" format:"uuid" doc:"up to five of the tasks"`

	key string // tells apart the stalls of one reason
}

const (
	stallExamples = 5
	// waitingExamples is how many waiting tasks are read to name some.
	waitingExamples = 200
)

type stallsIn struct {
	op.PageIn
}

func (s *Service) stalls(ctx context.Context, in stallsIn) (out Status, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		f, groups, err := s.cohorts(tx, tx.Account)
		if err != nil {
			return err
		}
		waiting, err := selectWaiting.All(tx, tx.Account, waitingExamples)
		if err != nil {
			return err
		}
		out = Status{QueueDepthCap: s.Most}
		st := stalls{index: map[string]int{}}
		for i := range groups {
			g := &groups[i]
			out.QueueDepth += g.n
			holds := f.holds(&g.Row)
			if len(holds) == 0 {
				out.Claimable += g.n
				continue
			}
			names, err := g.names(tx, waiting)
			if err != nil {
				return err
			}
			for _, h := range holds {
				st.add(h, g.n, names)
			}
		}
		if len(waiting) > 0 {
			all, err := s.obstacles(tx, tx.Account)
			if err == nil {
				err = st.addBehind(tx, f, all, waiting)
			}
			if err != nil {
				return err
			}
		}
		unpaid, err := task.HeldForMoney(tx, waitingExamples)
		if err != nil {
			return err
		}
		if err := s.unpaid(tx, &st, unpaid); err != nil {
			return err
		}
		page := op.Cut(in.PageIn, st.all, rank)
		out.Data, out.NextCursor = page.Data, page.NextCursor
		return nil
	})
	return out, err
}

// unpaid adds tasks that are held because money, or a price, is lacking.
func (s *Service) unpaid(tx *db.Tx, st *stalls, unpaid []task.Row) error {
	if len(unpaid) == 0 {
		return nil
	}
	ids := make([]string, len(unpaid))
	for i := range unpaid {
		ids[i] = unpaid[i].ID
	}
	stops, err := s.Related.Stops(tx, ids)
	if err != nil {
		return err
	}
	for i := range unpaid {
		for _, h := range task.HeldFor(&unpaid[i], nil, stops) {
			st.add(h, 1, ids[i:i+1])
		}
	}
	return nil
}

// cohort is pending tasks that wait for the same. Its Row stands for all of them.
type cohort struct {
	task.Row
	n         int64
	toldApart bool // from tasks that other people asked for
}

// cohorts returns the pending tasks of an account, with the facts about them. The cost
// depends on the number of lanes, and of tasks that are not ready.
func (s *Service) cohorts(tx *db.Tx, account string) (*facts, []cohort, error) {
	var out []cohort
	lanes, err := lanesOf(tx, account)
	if err != nil {
		return nil, nil, err
	}
	waiting, err := countWaiting.All(tx, account, tx.Now)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.facts(tx, account, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	samples := make([]task.Row, len(lanes))
	for i, l := range lanes {
		samples[i] = sample(l.Lane)
	}
	if err := s.learn(tx, f, account, samples); err != nil {
		return nil, nil, err
	}
	if f.byPerson() {
		crowds, err := countReadyBy.All(tx, account)
		if err != nil {
			return nil, nil, err
		}
		waiting, lanes = append(waiting, crowds...), nil
	}
	for i, l := range lanes {
		g := cohort{Row: samples[i], n: l.Ready}
		g.QueuedAt = time.UnixMicro(l.HeadAt).UTC()
		g.UpdatedAt = g.QueuedAt
		out = append(out, g)
	}
	for _, c := range waiting {
		l := task.Lane{AccountID: account, RepoID: c.RepoID, Template: c.Template, Priority: c.Priority}
		g := cohort{Row: sample(l), n: c.N, toldApart: c.ToldApart}
		g.RequestedBy, g.QueuedAt, g.UpdatedAt, g.NotBefore = c.RequestedBy, c.Queued, c.Updated, time.UnixMicro(0)
		if g.toldApart && g.RequestedBy == nil {
			g.RequestedBy = new(string) // nobody
		}
		if c.Waits {
			g.WaitingDeps = 1
		}
		if c.Later {
			g.NotBefore = *c.NotBefore
		}
		if c.ConflictWith != nil {
			g.ConflictWith, g.ConflictAt = c.ConflictWith, &g.UpdatedAt
		}
		out = append(out, g)
	}
	rows := make([]task.Row, len(out))
	for i := range out {
		rows[i] = out[i].Row
	}
	return f, out, s.learn(tx, f, account, rows)
}

// names returns the ids of the first few tasks of the cohort.
func (g *cohort) names(tx *db.Tx, waiting []task.Row) (ids []string, err error) {
	var rows []task.Row
	head := headArgs{g.AccountID, g.RepoID, g.Template, g.Priority, stallExamples}
	switch {
	case !g.Ready():
		rows = slices.DeleteFunc(slices.Clone(waiting), func(t task.Row) bool {
			return t.RepoID != g.RepoID || t.Template != g.Template || (t.WaitingDeps > 0) != (g.WaitingDeps > 0) ||
				t.NotBefore.After(tx.Now) != g.NotBefore.After(tx.Now) || !equal(t.ConflictWith, g.ConflictWith)
		})
	case g.toldApart && *g.RequestedBy == "":
		rows, err = selectHeadOfNobody.All(tx, head)
	case g.toldApart:
		rows, err = selectHeadBy.All(tx, headByArgs{head, *g.RequestedBy})
	default:
		rows, err = selectHead.All(tx, head)
	}
	for _, t := range rows[:min(len(rows), stallExamples)] {
		ids = append(ids, t.ID)
	}
	return ids, err
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// stalls gathers holds. Holds of one reason that different calls clear, such as those of
// two disabled repositories, become stalls of their own.
type stalls struct {
	all   []Stall
	index map[string]int
}

func (s *stalls) add(h task.Hold, count int64, ids []string) {
	key := h.Reason
	if h.Clear != nil {
		for _, k := range slices.Sorted(maps.Keys(h.Clear.Args)) {
			key += "\x00" + h.Clear.Args[k]
		}
	} else if slices.Contains([]string{task.HoldUnfit, task.HoldAgent, task.HoldIsolation, task.HoldConflict}, h.Reason) {
		key += "\x00" + h.ClearsWhen
	}
	n, ok := s.index[key]
	if !ok {
		n = len(s.all)
		s.index[key] = n
		s.all = append(s.all, Stall{
			Reason: h.Reason, Since: h.Since, ClearsWhen: h.ClearsWhen, Clear: h.Clear, TaskIDs: []string{}, key: key,
		})
	}
	st := &s.all[n]
	st.Count += count
	if h.Since.Before(st.Since) {
		st.Since = h.Since
	}
	st.TaskIDs = append(st.TaskIDs, ids[:min(len(ids), stallExamples-len(st.TaskIDs))]...)
}

// addBehind adds the tasks that wait, directly or through others, for obstacles.
func (s *stalls) addBehind(tx *db.Tx, f *facts, all []obstacle, waiting []task.Row) error {
	counts, err := crowdsBehind(tx, all)
	if err != nil {
		return err
	}
	if err := f.behind(tx, all, waiting); err != nil {
		return err
	}
	for i := range all {
		o := &all[i]
		n := counts[o.ID]
		var names []string
		since := f.Now
		for k := range waiting {
			t := &waiting[k]
			if !slices.ContainsFunc(f.Behind[t.ID], func(b obstacle) bool { return b.ID == o.ID }) {
				continue
			}
			if names = append(names, t.ID); t.QueuedAt.Before(since) {
				since = t.QueuedAt
			}
		}
		if n > 0 {
			s.add(o.holdFrom(since), n, names)
		}
	}
	return nil
}

// rank is the sort key of a stall: the stalls of most tasks come first, and of equal ones
// those that a person clears, in the order of task.PersonReasons.
func rank(t Stall) []string {
	at := slices.Index(task.PersonReasons(), t.Reason)
	if at < 0 {
		at = len(task.PersonReasons())
	}
	return []string{fmt.Sprintf("%019d %02d", math.MaxInt64-t.Count, at), t.key}
}
