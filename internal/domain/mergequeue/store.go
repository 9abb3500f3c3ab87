package mergequeue

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/flake"
)

type entryRow struct {
	ID        string
	AccountID string
	RepoID    string
	BaseRef   string
	PRID      string `db:"pr_id"`
	Number    int64
	ActionID  string
	HeadSHA   string `db:"head_sha"`
	Kind      string
	State     string
	BatchID   string
	Place     int64
	Most      int64
	Expects   string
	GroupSHA  string `db:"group_sha"`
	Reason    string
	Why       string
	Log       string
	OrderedAt time.Time
	EnteredAt time.Time
	ChangedAt time.Time
}

type batchRow struct {
	ID        string
	AccountID string
	RepoID    string
	BaseRef   string
	State     string
	BaseSHA   string `db:"base_sha"`
	SHA       string `db:"sha"`
	Tree      string
	Ref       string
	TaskID    string
	Command   string
	Try       int64
	Prints    db.JSON[[]flake.Print]
	DueAt     time.Time
	CreatedAt time.Time
}

// placeRow is a base with something in line.
type placeRow struct{ AccountID, RepoID, BaseRef string }

// placedRow is the place of a pull request.
type placedRow struct {
	PRID      string `db:"pr_id"`
	Kind      string
	State     string
	Place     int64
	EnteredAt time.Time
	Rank      int64
}

func (p placedRow) wire() Place {
	out := Place{Queue: QueueKind(p.Kind), State: PlaceState(p.State), Position: p.Rank, At: p.EnteredAt}
	if p.Kind == Host {
		out.Position = p.Place
	}
	if out.State == Refused {
		out.State = Waiting
	}
	return out
}

type resultRow struct {
	Passed   bool
	Why, Log string
}

type refRow struct{ ID, AccountID, RepoID, Ref string }

const (
	entryColumns = `id, account_id, repo_id, base_ref, pr_id, number, action_id, head_sha, kind, state, batch_id, place, most, expects,
		group_sha, reason, why, log, ordered_at, entered_at, changed_at FROM merge_entries`
	batchColumns = `id, account_id, repo_id, base_ref, state, base_sha, sha, tree, ref, task_id, command, try, prints, due_at, created_at
		FROM merge_batches`
)

var (
	insertEntry = db.SWith[entryRow](`INSERT INTO merge_entries (id, account_id, repo_id, base_ref, pr_id, number, action_id, head_sha, kind,
		state, most, ordered_at, entered_at, changed_at)
		VALUES (:id, :account_id, :repo_id, :base_ref, :pr_id, :number, :action_id, :head_sha, :kind, :state, :most, :ordered_at,
			:entered_at, :changed_at)
		ON CONFLICT DO NOTHING`)
	entryOfPull = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE pr_id = $1 AND left_at IS NULL`)
	entryByID   = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE id = $1 AND left_at IS NULL`)
	line        = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND left_at IS NULL
		ORDER BY ordered_at, id`)
	lineOfRepo = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE account_id = $1 AND repo_id = $2 AND left_at IS NULL
		ORDER BY base_ref, ordered_at, id`)
	entryOfNumber = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE repo_id = $1 AND number = $2 AND kind = 'host' AND left_at IS NULL`)
	// lastFailure is the newest refusal of a head by its check.
	lastFailure = db.Q[entryRow](`SELECT ` + entryColumns + ` WHERE pr_id = $1 AND head_sha = $2 AND state = 'out' AND reason = 'check'
		ORDER BY left_at DESC, id DESC LIMIT 1`)
	refusals = db.Q[int64](`SELECT COUNT(*) FROM merge_entries WHERE action_id = $1 AND head_sha = $2 AND reason = 'rule'`)
	lines    = db.Q[placeRow](`SELECT account_id, repo_id, base_ref FROM merge_entries WHERE left_at IS NULL
		UNION SELECT account_id, repo_id, base_ref FROM merge_batches WHERE ended_at IS NULL`)
	// setEntry changes an entry that is in the state Was yet.
	setEntry = db.SWith[setEntryArgs](`UPDATE merge_entries SET state = :state, batch_id = :batch_id, place = :place, most = :most,
		expects = :expects, changed_at = :now WHERE id = :id AND state = :was AND left_at IS NULL`)
	refuseEntry = db.SWith[refuseArgs](`UPDATE merge_entries SET state = 'refused', reason = :reason, why = :why, log = :log,
		changed_at = :now WHERE id = :id AND state <> 'refused' AND left_at IS NULL`)
	leaveEntry = db.SWith[leaveArgs](`UPDATE merge_entries SET state = :state, why = CASE WHEN :why = '' THEN why ELSE :why END,
		expects = '', left_at = :now, changed_at = :now WHERE id = :id AND left_at IS NULL`)
	setGroupOf = db.S(`UPDATE merge_entries SET group_sha = $2, changed_at = $3 WHERE id = $1 AND left_at IS NULL`)
	// setPlace notes what the host says of the place of an entry.
	setPlace = db.SWith[setPlaceArgs](`UPDATE merge_entries SET state = 'queued', place = :place,
		group_sha = CASE WHEN :sha = '' THEN group_sha ELSE :sha END, changed_at = CASE WHEN state = 'queued' THEN changed_at ELSE :now END
		WHERE id = :id AND state IN ('waiting', 'queued') AND left_at IS NULL`)

	insertBatch = db.SWith[insertBatchArgs](`INSERT INTO merge_batches (id, account_id, repo_id, base_ref, state, ref, due_at, created_at)
		VALUES (:id, :account_id, :repo_id, :base_ref, 'building', :ref, :now, :now) ON CONFLICT DO NOTHING`)
	openBatch   = db.Q[batchRow](`SELECT ` + batchColumns + ` WHERE account_id = $1 AND repo_id = $2 AND base_ref = $3 AND ended_at IS NULL`)
	openOfRepo  = db.Q[batchRow](`SELECT ` + batchColumns + ` WHERE account_id = $1 AND repo_id = $2 AND ended_at IS NULL ORDER BY base_ref`)
	batchByID   = db.Q[batchRow](`SELECT ` + batchColumns + ` WHERE id = $1 AND ended_at IS NULL`)
	holdBatch   = db.S(`UPDATE merge_batches SET due_at = $3 WHERE id = $1 AND state = 'building' AND due_at <= $2 AND ended_at IS NULL`)
	putOffBatch = db.S(`UPDATE merge_batches SET due_at = $2 WHERE id = $1 AND ended_at IS NULL`)
	candidate   = db.SWith[candidateArgs](`UPDATE merge_batches SET state = :state, base_sha = :base_sha, sha = :sha, tree = :tree,
		task_id = :task_id, command = :command, due_at = :now
		WHERE id = :id AND state = 'building' AND try = :try AND ended_at IS NULL`)
	putSoon = db.S(`UPDATE merge_batches SET ref_due = $2 WHERE id = $1 AND ref_due IS NULL AND ended_at IS NULL`)
	rebuild = db.SWith[rebuildArgs](`UPDATE merge_batches SET state = 'building', try = try + 1, prints = :prints, due_at = :due_at
		WHERE id = :id AND state = 'checking' AND try = :try AND ended_at IS NULL`)
	setMerging = db.S(`UPDATE merge_batches SET state = 'merging', task_id = '' WHERE id = $1 AND state = 'checking' AND ended_at IS NULL`)
	endBatch   = db.SWith[endBatchArgs](`UPDATE merge_batches SET state = :state, why = :why, ended_at = :now,
		ref_due = CASE WHEN ref_due IS NULL THEN NULL ELSE CAST(:now AS BIGINT) END WHERE id = :id AND ended_at IS NULL`)
	takeRefs = db.Q[refRow](`UPDATE merge_batches SET ref_due = $2 WHERE id IN (SELECT id FROM merge_batches
		WHERE ended_at IS NOT NULL AND ref_due <= $1 ORDER BY ref_due LIMIT 20) AND ref_due <= $1 RETURNING id, account_id, repo_id, ref`)
	anyRefDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM merge_batches WHERE ended_at IS NOT NULL AND ref_due <= $1)`)
	refGone   = db.S(`UPDATE merge_batches SET ref_due = NULL WHERE id = $1 AND ended_at IS NOT NULL`)

	resultOf   = db.Q[resultRow](`SELECT passed, why, log FROM merge_results WHERE repo_id = $1 AND tree = $2 AND command = $3`)
	noteResult = db.SWith[noteArgs](`INSERT INTO merge_results (repo_id, tree, command, account_id, passed, why, log, at)
		VALUES (:repo_id, :tree, :command, :account_id, :passed, :why, :log, :now)
		ON CONFLICT (repo_id, tree, command) DO UPDATE SET passed = excluded.passed, why = excluded.why, log = excluded.log, at = excluded.at`)
	forgetOld  = db.S(`DELETE FROM merge_results WHERE at < $1`)
	pullInAll  = db.S(`UPDATE merge_batches SET due_at = $1 WHERE due_at > $2 AND ended_at IS NULL`)
	pullInRefs = db.S(`UPDATE merge_batches SET ref_due = $1 WHERE ref_due > $2 AND ended_at IS NOT NULL`)
)

// setEntryArgs are the parameters of setEntry.
type setEntryArgs struct {
	ID, Was, State, BatchID string
	Place, Most             int64
	Expects                 string
	Now                     int64
}

// refuseArgs are the parameters of refuseEntry.
type refuseArgs struct {
	ID, Reason, Why, Log string
	Now                  int64
}

// leaveArgs are the parameters of leaveEntry.
type leaveArgs struct {
	ID, State, Why string
	Now            int64
}

// setPlaceArgs are the parameters of setPlace.
type setPlaceArgs struct {
	ID    string
	Place int64
	SHA   string `db:"sha"`
	Now   int64
}

// insertBatchArgs are the parameters of insertBatch.
type insertBatchArgs struct {
	ID, AccountID, RepoID, BaseRef, Ref string
	Now                                 int64
}

// candidateArgs are the parameters of candidate.
type candidateArgs struct {
	ID, State    string
	BaseSHA      string `db:"base_sha"`
	SHA          string `db:"sha"`
	Tree, TaskID string
	Command      string
	Try          int64
	Now          int64
}

// rebuildArgs are the parameters of rebuild.
type rebuildArgs struct {
	ID     string
	Try    int64
	Prints db.JSON[[]flake.Print]
	DueAt  int64
}

// endBatchArgs are the parameters of endBatch.
type endBatchArgs struct {
	ID, State, Why string
	Now            int64
}

// noteArgs are the parameters of noteResult.
type noteArgs struct {
	RepoID, Tree, Command, AccountID string
	Passed                           bool
	Why, Log                         string
	Now                              int64
}

// ClockSetBack makes those batches due that would wait for longer than is ever asked.
func ClockSetBack(tx *db.Tx) error {
	if _, err := pullInAll.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(buildHold))); err != nil {
		return err
	}
	_, err := pullInRefs.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(refHold)))
	return err
}

// Places answers the places of pull requests in queues, by id.
func Places(tx *db.Tx, prIDs []string) (map[string]Place, error) {
	out := map[string]Place{}
	if len(prIDs) == 0 {
		return out, nil
	}
	own, err := db.Select[placedRow](tx, db.Build(`SELECT e.pr_id, e.kind, e.state, e.place, e.entered_at, (SELECT COUNT(*)
		FROM merge_entries o WHERE o.repo_id = e.repo_id AND o.base_ref = e.base_ref AND o.left_at IS NULL AND o.kind = e.kind
			AND (o.ordered_at < e.ordered_at OR o.ordered_at = e.ordered_at AND o.id <= e.id)) AS rank
		FROM merge_entries e WHERE e.left_at IS NULL AND e.account_id = `, tx.Account).In("e.pr_id", prIDs))
	for _, p := range own {
		out[p.PRID] = p.wire()
	}
	return out, err
}
