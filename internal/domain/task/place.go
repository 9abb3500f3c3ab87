package task

import (
	"cmp"
	"slices"

	"yardmaster/internal/db"
)

// line is the lanes of an account's queue, set out so that places in it can be
// told one after the other.
type line struct {
	lanes  []lane
	byRepo map[string][]lane // each repository's in its own order
}

func lineOf(lanes []lane) *line {
	q := &line{lanes: lanes, byRepo: map[string][]lane{}}
	for _, l := range lanes {
		q.byRepo[l.RepoID] = append(q.byRepo[l.RepoID], l)
	}
	for _, ls := range q.byRepo {
		slices.SortStableFunc(ls, func(a, b lane) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	return q
}

// ready is how many tasks of a lane are.
func (q *line) ready(own lane) int64 {
	for _, l := range q.byRepo[own.RepoID] {
		if l.Template == own.Template && l.Priority == own.Priority {
			return l.Ready
		}
	}
	return 0
}

// ahead is how many of the tasks are claimed before one that has inLane others
// of its own lane before it, as far as can be told: if every box could take
// each of them, and none was added.
func (q *line) ahead(own lane, inLane int64) (n int64) {
	var spent int64
	ls, ok := q.byRepo[own.RepoID]
	switch {
	case ok:
		spent = ls[0].Place + ls[0].Priority
		for _, l := range ls {
			spent = max(spent, l.Place+l.Priority)
			if l.Priority > own.Priority {
				n += l.Ready
			}
		}
	case len(q.lanes) > 0:
		spent = q.lanes[0].Place + defaultPriority // it comes in where the others are
	}
	n += inLane
	place := spent + n*turnCost - own.Priority
	for repo, ls := range q.byRepo {
		if repo == own.RepoID {
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

// countedFrom is how far into a lane it is counted from one end before the
// other is tried.
const countedFrom = 1000

// position is the place of a pending task in the queue, 1-based: how many
// ready tasks have their turn before it, as things are, and one.
func (q *line) position(tx *db.Tx, t *Row) (int64, error) {
	first, err := q.inLane(tx, t)
	return q.ahead(t.lane(), first) + 1, err
}

// inLane is how many ready tasks of its lane are before a pending one.
func (q *line) inLane(tx *db.Tx, t *Row) (int64, error) {
	key := []any{t.AccountID, t.RepoID, t.Template, t.Priority, t.CreatedAt, t.ID}
	whole := q.ready(t.lane())
	first, err := countAhead.One(tx, append(key, countedFrom)...)
	if err == nil && first == countedFrom {
		var last int64
		if last, err = countAfter.One(tx, append(key, countedFrom)...); err == nil && last < countedFrom {
			first = whole - last
		} else if err == nil {
			first, err = countAhead.One(tx, append(key, whole)...)
		}
	}
	return first, err
}

// lookedAround is how many ready tasks, besides those that are asked about, are
// looked at to tell the places of all of them at once.
const lookedAround = 200

// positions are the places of pending tasks of one account, by id. If these are
// its newest, they tell each other's. Among the newest the few ready tasks that
// are as new do. Elsewhere those between two of them are counted, and each
// lane's from its nearer end.
func (q *line) positions(tx *db.Tx, account string, rows []Row, newest bool) (map[string]int64, error) {
	out := make(map[string]int64, len(rows))
	switch {
	case newest:
		all := make([]waiter, 0, len(rows))
		for i := range rows {
			if t := &rows[i]; t.ready() {
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
	most := len(rows) + lookedAround
	newer, err := selectReadyFrom.All(tx, account, oldest.CreatedAt, oldest.ID, most)
	if err != nil {
		return nil, err
	}
	if len(newer) < most {
		q.fromBehind(rows, newer, out)
		return out, nil
	}
	return out, q.between(tx, account, rows, out)
}

func byAge(a, b Row) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) }

// fromBehind tells places from all ready tasks that are as new as the oldest of
// rows.
func (q *line) fromBehind(rows []Row, newer []waiter, out map[string]int64) {
	lanes := map[lane][]waiter{}
	for i := range newer {
		lanes[newer[i].lane()] = append(lanes[newer[i].lane()], newer[i])
	}
	for i := range rows {
		t := &rows[i]
		var after int64
		for _, w := range lanes[lane{RepoID: t.RepoID, Template: t.Template, Priority: t.Priority}] {
			if cmp.Or(w.CreatedAt.Compare(t.CreatedAt), cmp.Compare(w.ID, t.ID)) >= 0 {
				after++
			}
		}
		own := t.lane()
		out[t.ID] = q.ahead(own, q.ready(own)-after) + 1
	}
}

// between tells places by counting in each lane: to the oldest of rows there,
// and from each to the next.
func (q *line) between(tx *db.Tx, account string, rows []Row, out map[string]int64) error {
	ids := make([]string, len(rows))
	lanes := map[lane][]Row{}
	for i := range rows {
		ids[i] = rows[i].ID
		lanes[rows[i].lane()] = append(lanes[rows[i].lane()], rows[i])
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
