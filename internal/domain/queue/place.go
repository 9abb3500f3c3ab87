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
	repos  [][]*lane      // each repository's in its own order
	byRepo map[string]int // where in repos
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

// ahead returns how many tasks are claimed before a task that is behind inLane others
// of its own lane. It assumes that every box can take every task, and that no task is
// added.
func (q *line) ahead(own task.Lane, inLane int64) (n int64) {
	var spent int64
	same := q.of(own.RepoID)
	switch {
	case len(same) > 0:
		spent = same[0].Place + same[0].Priority
		for _, l := range same {
			spent = max(spent, l.Place+l.Priority)
			if l.Priority > own.Priority {
				n += l.Ready
			}
		}
	case len(q.lanes) > 0:
		spent = q.lanes[0].Place + task.DefaultPriority // its lane comes in where the others are
	}
	n += inLane
	place := spent + n*turnCost - own.Priority
	for _, ls := range q.repos {
		if ls[0].RepoID == own.RepoID {
			continue
		}
		var taken int64
		for _, l := range ls {
			first := l.Place + taken*turnCost // the place of its first task
			if first >= place {
				break
			}
			got := min(l.Ready, (place-first-1)/turnCost+1)
			n, taken = n+got, taken+got
		}
	}
	return n
}

// countedFrom is how many tasks of a lane are counted from one end before the other end
// is tried.
const countedFrom = 1000

// position returns the place of a pending task in the queue, from 1.
func (q *line) position(tx *db.Tx, t *task.Row) (int64, error) {
	first, err := q.inLane(tx, t)
	return q.ahead(t.Lane(), first) + 1, err
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
	out := make(map[string]int64, len(rows))
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
		own := t.Lane()
		out[t.ID] = q.ahead(own, q.ready(own)-after) + 1
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
	for own, in := range lanes {
		slices.SortFunc(in, byAge)
		before, err := q.inLane(tx, &in[0])
		if err != nil {
			return err
		}
		for i := range in {
			out[in[i].ID] = q.ahead(own, before) + 1
			before += gaps[in[i].ID]
		}
	}
	return nil
}
