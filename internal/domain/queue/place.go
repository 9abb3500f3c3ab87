package queue

import (
	"cmp"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// line holds the lanes of an account by repository, to find the places of tasks.
type line struct {
	lanes  []lane
	repos  [][]*lane        // each repository's in its own order
	byRepo map[string]int   // where in repos
	begins map[string]int64 // the points at which a repository without a lane comes in; under "" those of one that had no turn
}

func lineOf(lanes []lane) *line {
	q := &line{lanes: lanes, byRepo: map[string]int{}}
	for i := range lanes {
		at, ok := q.byRepo[lanes[i].RepoID]
		if !ok {
			at = len(q.repos)
			q.byRepo[lanes[i].RepoID] = at
			q.repos = append(q.repos, nil)
		}
		q.repos[at] = append(q.repos[at], &lanes[i])
	}
	for _, ls := range q.repos {
		slices.SortStableFunc(ls, func(a, b *lane) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	return q
}

// admit reads where repositories come in that have no lane now, if one of those is asked for.
func (q *line) admit(tx *db.Tx, account string, repoIDs ...string) error {
	if q.begins != nil || len(q.lanes) == 0 || !slices.ContainsFunc(repoIDs, func(id string) bool { return len(q.of(id)) == 0 }) {
		return nil
	}
	all, err := selectBegins.All(tx, account)
	q.begins = make(map[string]int64, len(all))
	for _, b := range all {
		q.begins[b.RepoID] = b.Spent
	}
	return err
}

// spent returns the points of a repository when its next task is served.
func (q *line) spent(repoID string) int64 {
	same := q.of(repoID)
	if len(same) == 0 {
		at, has := q.begins[repoID]
		if others := q.begins[""]; !has || others > at {
			return others
		}
		return at
	}
	out := same[0].Place + same[0].Priority
	for _, l := range same {
		out = max(out, l.Place+l.Priority)
	}
	return out
}

// of returns the lanes of a repository.
func (q *line) of(repoID string) []*lane {
	if at, ok := q.byRepo[repoID]; ok {
		return q.repos[at]
	}
	return nil
}

// ready returns how many tasks a lane has.
func (q *line) ready(own task.Lane) int64 {
	for _, l := range q.of(own.RepoID) {
		if l.Lane == own {
			return l.Ready
		}
	}
	return 0
}

// at returns the place, from 1, of a task with so many others of its lane before it. It
// assumes that every box can take every task, and that no task is added. Of two lanes with
// equal places that whose first task has waited longer has the turn, as in a claim: which
// of their later tasks is older is not known here.
func (q *line) at(t *task.Row, behind int64) int64 {
	own := lane{Lane: t.Lane(), HeadAt: db.Micros(t.CreatedAt)}
	n := behind
	for _, l := range q.of(own.RepoID) {
		if l.Priority > own.Priority {
			n += l.Ready
		}
		if l.Lane == own.Lane {
			own.HeadAt = l.HeadAt
		}
	}
	place := q.spent(own.RepoID) + n*turnCost - own.Priority
	for _, ls := range q.repos {
		if ls[0].RepoID == own.RepoID {
			continue
		}
		var taken int64
		for _, l := range ls {
			end := place // the first place that comes after the task
			if l.before(&own) {
				end++
			}
			first := l.Place + taken*turnCost // the place of its first task
			if first >= end {
				continue
			}
			got := min(l.Ready, (end-first-1)/turnCost+1)
			n, taken = n+got, taken+got
		}
	}
	return n + 1
}

// before is the order of selectLanes among lanes of equal places.
func (l *lane) before(o *lane) bool {
	return cmp.Or(cmp.Compare(l.HeadAt, o.HeadAt), compareLanes(l.Lane, o.Lane)) < 0
}

// countedFrom is how many tasks of a lane are counted from one end before the other end
// is tried.
const countedFrom = 1000

// position returns the place of a pending task in the queue, from 1.
func (q *line) position(tx *db.Tx, t *task.Row) (int64, error) {
	if err := q.admit(tx, t.AccountID, t.RepoID); err != nil {
		return 0, err
	}
	first, err := q.inLane(tx, t)
	return q.at(t, first), err
}

// inLane returns how many ready tasks of its lane are before a pending task.
func (q *line) inLane(tx *db.Tx, t *task.Row) (int64, error) {
	whole := q.ready(t.Lane())
	first, err := countAhead.One(tx, placeArgs{*t, countedFrom})
	if err == nil && first == countedFrom {
		var last int64
		if last, err = countAfter.One(tx, placeArgs{*t, countedFrom}); err == nil && last < countedFrom {
			first = whole - last
		} else if err == nil {
			first, err = countAhead.One(tx, placeArgs{*t, whole})
		}
	}
	return first, err
}

// mostNewer is how many ready tasks, besides those of a page, are read to find all
// places of the page at once.
const mostNewer = 200

// positions returns the places of pending tasks of one account, by id. If rows are the
// newest tasks of the account, their places follow from each other. If few ready tasks
// are newer than the oldest of rows, these are read. Otherwise the tasks between each
// two of rows are counted, and those up to the oldest from the nearer end of its lane.
func (q *line) positions(tx *db.Tx, account string, rows []task.Row, newest bool) (map[string]int64, error) {
	out, repoIDs := make(map[string]int64, len(rows)), make([]string, len(rows))
	for i := range rows {
		repoIDs[i] = rows[i].RepoID
	}
	if err := q.admit(tx, account, repoIDs...); err != nil {
		return nil, err
	}
	switch {
	case newest:
		all := make([]waiter, 0, len(rows))
		for i := range rows {
			if t := &rows[i]; t.Ready() {
				all = append(all, waiter{t.RepoID, t.Template, t.Priority, t.CreatedAt, t.ID})
			}
		}
		q.fromBehind(rows, all, out)
		return out, nil
	case len(rows) == 1:
		at, err := q.position(tx, &rows[0])
		out[rows[0].ID] = at
		return out, err
	}
	oldest := slices.MinFunc(rows, byAge)
	most := len(rows) + mostNewer
	newer, err := selectReadyFrom.All(tx, selectReadyFromArgs{
		AccountID: account, CreatedAt: oldest.CreatedAt, ID: oldest.ID, Limit: most,
	})
	if err != nil {
		return nil, err
	}
	if len(newer) < most {
		q.fromBehind(rows, newer, out)
		return out, nil
	}
	return out, q.between(tx, account, rows, out)
}

func byAge(a, b task.Row) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// fromBehind finds places by the ready tasks that are as new as the oldest of rows; newer
// are all of them.
func (q *line) fromBehind(rows []task.Row, newer []waiter, out map[string]int64) {
	byRepo := map[string][]*waiter{}
	for i := range newer {
		byRepo[newer[i].RepoID] = append(byRepo[newer[i].RepoID], &newer[i])
	}
	for i := range rows {
		t := &rows[i]
		var after int64
		for _, w := range byRepo[t.RepoID] {
			if w.Priority == t.Priority && w.Template == t.Template && w.notBefore(t) {
				after++
			}
		}
		out[t.ID] = q.at(t, q.ready(t.Lane())-after)
	}
}

// notBefore tells whether w is the task t, or comes after it in their lane.
func (w *waiter) notBefore(t *task.Row) bool {
	if at := w.CreatedAt.Compare(t.CreatedAt); at != 0 {
		return at > 0
	}
	return w.ID >= t.ID
}

// between finds places by counting in each lane: up to the oldest of rows in it, and
// from each to the next.
func (q *line) between(tx *db.Tx, account string, rows []task.Row, out map[string]int64) error {
	ids := make([]string, len(rows))
	lanes := map[task.Lane][]task.Row{}
	for i := range rows {
		ids[i] = rows[i].ID
		lanes[rows[i].Lane()] = append(lanes[rows[i].Lane()], rows[i])
	}
	gaps, err := selectGaps(tx, account, ids)
	if err != nil {
		return err
	}
	for _, in := range lanes {
		slices.SortFunc(in, byAge)
		before, err := q.inLane(tx, &in[0])
		if err != nil {
			return err
		}
		for i := range in {
			out[in[i].ID] = q.at(&in[i], before)
			before += gaps[in[i].ID]
		}
	}
	return nil
}
