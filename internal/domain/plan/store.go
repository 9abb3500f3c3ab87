package plan

import (
	"time"

	"yardmaster/internal/db"
)

const planColumns = `id, account_id, repo_id, title, overview, source, dir, revision, digest, commit_sha, hold, scout_task_id, ask_id, note,
	approved_tasks, approved_at, cancelled_at, failed_at, created_by, created_at, requested_by`

type row struct {
	ID            string
	AccountID     string
	RepoID        string
	Title         string
	Overview      string
	Source        string
	Dir           *string
	Revision      int64
	Digest        string
	CommitSHA     *string `db:"commit_sha"`
	Hold          bool
	ScoutTaskID   *string
	AskID         *string
	Note          *string
	ApprovedTasks *db.JSON[[]string]
	ApprovedAt    *time.Time
	CancelledAt   *time.Time
	FailedAt      *time.Time
	CreatedBy     string
	CreatedAt     time.Time
	RequestedBy   *string
}

type problemRow struct{ ID, Problem string }

type groupRow struct {
	ID       string
	RepoID   string
	Place    int64
	Slug     string
	Title    string
	Files    db.JSON[[]string]
	Template string
	Closed   string
}

type edgeRow struct {
	GroupID    string
	UpstreamID string
	Kind       string
}

type progressRow struct {
	PlanID         string
	RepoID         string
	Status         string
	Bucket         Bucket
	Merged         int64
	Total          int64
	HeldCount      int64
	LastActivityAt time.Time
}

type listRow struct {
	ID             string
	RepoID         string
	Title          string
	Status         string
	Bucket         Bucket
	Source         string
	Dir            *string
	Revision       int64
	Merged         int64
	Total          int64
	HeldCount      int64
	AskID          *string
	Note           *string
	CreatedBy      string
	RequestedBy    *string
	CreatedAt      time.Time
	LastActivityAt time.Time
}

type (
	bucketCount struct {
		Bucket Bucket
		N      int64
	}
	planRepo  struct{ PlanID, Repo string }
	fanoutRow struct {
		ID        string
		Ask       string
		CreatedBy string
		CreatedAt time.Time
	}
)

var (
	insertPlan = db.SWith[row](`INSERT INTO plans (` + planColumns + `)
		VALUES (:id, :account_id, :repo_id, :title, :overview, :source, :dir, :revision, :digest,
		:commit_sha, :hold, :scout_task_id, :ask_id, :note, :approved_tasks, :approved_at, :cancelled_at, :failed_at,
		:created_by, :created_at, :requested_by) ON CONFLICT DO NOTHING`)
	selectPlan  = db.Q[row](`SELECT ` + planColumns + ` FROM plans WHERE account_id = $1 AND id = $2`)
	selectByDir = db.QWith[selectByDirArgs, row](`SELECT ` + planColumns + ` FROM plans
		WHERE account_id = :account_id AND repo_id = :repo_id AND dir = :dir AND revision = :revision`)
	selectLast = db.Q[row](`SELECT ` + planColumns + ` FROM plans
		WHERE account_id = $1 AND repo_id = $2 AND dir = $3 ORDER BY revision DESC LIMIT 1`)

	approvePlan = db.SWith[approvePlanArgs](`UPDATE plans SET approved_at = :approved_at, approved_tasks = :approved_tasks,
		requested_by = :requested_by
		WHERE account_id = :account_id AND id = :id`)
	cancelPlan = db.S(`UPDATE plans SET cancelled_at = $3 WHERE account_id = $1 AND id = $2`)
	draftPlan  = db.SWith[draftPlanArgs](`UPDATE plans SET title = :title, overview = :overview, failed_at = :failed_at, note = :note
		WHERE account_id = :account_id AND id = :id`)

	insertGroup = db.SWith[insertGroupArgs](`INSERT INTO plan_groups (id, account_id, plan_id, repo_id, place, slug, title, problem,
		files, template, closed)
		VALUES (:id, :account_id, :plan_id, :repo_id, :place, :slug, :title, :problem, :files, :template, '')`)
	// selectGroups does not read the texts: those of a large plan are megabytes, and a plan
	// is read whenever one of its tasks moves.
	selectGroups = db.Q[groupRow](`SELECT id, repo_id, place, slug, title, files, template, closed FROM plan_groups
		WHERE account_id = $1 AND plan_id = $2 ORDER BY place, id`)
	// selectProblems reads the texts of all groups of a plan, to mint their tasks.
	selectProblems = db.Q[problemRow](`SELECT id, problem FROM plan_groups WHERE account_id = $1 AND plan_id = $2`)
	// selectProblem reads the text of a group that the caller has found in tx.Account.
	selectProblem = db.Q[string](`SELECT problem FROM plan_groups WHERE account_id = $1 AND id = $2`)
	closeGroup    = db.S(`UPDATE plan_groups SET closed = $3 WHERE account_id = $1 AND id = $2`)

	insertEdge = db.SWith[insertEdgeArgs](`INSERT INTO plan_edges (group_id, upstream_id, plan_id, kind)
		VALUES (:group_id, :upstream_id, :plan_id, :kind)`)
	deleteEdge = db.S(`DELETE FROM plan_edges WHERE plan_id = $1 AND group_id = $2 AND upstream_id = $3`)
	// selectEdges needs no account: the caller has found the plan in one.
	selectEdges = db.Q[edgeRow](`SELECT group_id, upstream_id, kind FROM plan_edges WHERE plan_id = $1 ORDER BY group_id, upstream_id`)

	insertProgress = db.SWith[insertProgressArgs](`INSERT INTO plan_progress (plan_id, account_id, repo_id, status, bucket,
		last_activity_at)
		VALUES (:plan_id, :account_id, :repo_id, :status, :bucket, :last_activity_at)`)
	selectProgress = db.Q[progressRow](`SELECT plan_id, repo_id, status, bucket, merged, total, held_count, last_activity_at
		FROM plan_progress
		WHERE account_id = $1 AND plan_id = $2`)
	updateProgress = db.SWith[updateProgressArgs](`UPDATE plan_progress SET status = :status, bucket = :bucket, merged = :merged,
		total = :total, held_count = :held_count, last_activity_at = :last_activity_at
		WHERE account_id = :account_id AND plan_id = :plan_id`)

	selectRepos = db.Q[string](`SELECT r.owner || '/' || r.name AS repo FROM repos r WHERE r.id IN (
		SELECT p.repo_id FROM plan_progress p WHERE p.account_id = $1
		UNION SELECT g.repo_id FROM plan_groups g WHERE g.account_id = $1) ORDER BY repo`)

	insertFanout = db.SWith[insertFanoutArgs](`INSERT INTO plan_fanouts (id, account_id, ask, created_by, created_at)
		VALUES (:id, :account_id, :ask, :created_by, :created_at)`)
	insertScout  = db.S(`INSERT INTO plan_fanout_tasks (fanout_id, place, task_id) VALUES ($1, $2, $3)`)
	selectFanout = db.Q[fanoutRow](`SELECT id, ask, created_by, created_at FROM plan_fanouts WHERE account_id = $1 AND id = $2`)
	countFanouts = db.Q[int64](`SELECT COUNT(*) FROM plan_fanout_tasks WHERE task_id = $1`)
	selectScouts = db.Q[string](`SELECT task_id FROM plan_fanout_tasks WHERE fanout_id = $1 ORDER BY place`)

	selectSwitch = db.Q[bool](`SELECT enabled FROM plan_file_switches WHERE account_id = $1`)
	setSwitch    = db.S(`INSERT INTO plan_file_switches (account_id, enabled) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET enabled = excluded.enabled`)
)

// insertGroupArgs are the parameters of insertGroup.
type insertGroupArgs struct {
	ID, AccountID, PlanID, RepoID string
	Place                         int64
	Slug, Title, Problem          string
	Files                         db.JSON[[]string]
	Template                      string
}

// draftPlanArgs are the parameters of draftPlan.
type draftPlanArgs struct {
	AccountID, ID, Title, Overview string
	FailedAt                       *time.Time
	Note                           *string
}

// selectByDirArgs are the parameters of selectByDir.
type selectByDirArgs struct {
	AccountID, RepoID string
	Dir               *string
	Revision          int64
}

// insertFanoutArgs are the parameters of insertFanout.
type insertFanoutArgs struct {
	ID, AccountID, Ask, CreatedBy string
	CreatedAt                     time.Time
}

// updateProgressArgs are the parameters of updateProgress.
type updateProgressArgs struct {
	AccountID, PlanID, Status, Bucket string
	Merged, Total, HeldCount          int64
	LastActivityAt                    time.Time
}

// insertProgressArgs are the parameters of insertProgress.
type insertProgressArgs struct {
	PlanID, AccountID, RepoID, Status, Bucket string
	LastActivityAt                            time.Time
}

// insertEdgeArgs are the parameters of insertEdge.
type insertEdgeArgs struct {
	GroupID, UpstreamID, PlanID, Kind string
}

// approvePlanArgs are the parameters of approvePlan.
type approvePlanArgs struct {
	row
	AccountID string
}

// insert stores a plan. It returns false if its directory has a plan of that
// revision.
func insert(tx *db.Tx, p *row) (bool, error) {
	n, err := insertPlan.Exec(tx, *p)
	if err != nil || n == 0 {
		return false, err
	}
	_, err = insertProgress.Exec(tx, insertProgressArgs{
		PlanID: p.ID, AccountID: p.AccountID, RepoID: p.RepoID, Status: Held, Bucket: BucketHeld,
		LastActivityAt: tx.Now,
	})
	return true, err
}

// Exists tells whether tx.Account has a plan with the id.
func Exists(tx *db.Tx, planID string) (bool, error) {
	_, ok, err := selectPlan.Maybe(tx, tx.Account, planID)
	return ok, err
}

// named lists the plans of tx.Account whose ids begin or end with a part.
func named(tx *db.Tx, part string) ([]string, error) {
	return db.IDs(tx, `SELECT id FROM plans WHERE account_id`, part)
}

// narrow adds the filters of a list, except the bucket.
func (in *listIn) narrow(b *db.Builder, repoID string) {
	if repoID != "" {
		b.And("(g.repo_id = ", repoID).
			SQL(" OR EXISTS (SELECT 1 FROM plan_groups x WHERE x.plan_id = g.plan_id AND x.repo_id = ", repoID).SQL("))")
	}
	if in.ID != "" {
		b.In("g.plan_id", in.named).Few()
	}
	if in.Q != "" {
		b.Contains("p.title", in.Q)
	}
}

func countBuckets(tx *db.Tx, in *listIn, repoID string) ([]bucketCount, error) {
	b := db.Build(`SELECT g.bucket, COUNT(*) AS n FROM plan_progress g JOIN plans p ON p.id = g.plan_id WHERE g.account_id = `, tx.Account)
	in.narrow(b, repoID)
	return db.Select[bucketCount](tx, b.SQL(" GROUP BY g.bucket"))
}

const listed = `p.id, p.repo_id, p.title, g.status, g.bucket, p.source, p.dir, p.revision, g.merged, g.total, g.held_count, p.ask_id,
	p.note, p.created_by, p.requested_by, p.created_at, g.last_activity_at FROM plan_progress g JOIN plans p ON p.id = g.plan_id`

// Rows lists the plans of tx.Account that have one of the ids or, for nil,
// those that changed last, up to limit, as the list shows them.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Plan, error) {
	b := db.Build(`SELECT `+listed+` WHERE g.account_id = `, tx.Account)
	if ids != nil {
		b.In("g.plan_id", ids).Few()
	}
	rows, err := db.Select[listRow](tx, b.Newest("g.last_activity_at", "g.plan_id", limit))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return s.view(tx, rows)
}

// GroupRows lists the groups of the plans of tx.Account with the ids, as plan.get shows
// them. For nil it lists at most limit groups of the plans that were active last.
func (s *Service) GroupRows(tx *db.Tx, planIDs []string, limit int) ([]Group, error) {
	b := db.Build(`SELECT plan_id FROM plan_progress WHERE account_id = `, tx.Account)
	if planIDs != nil {
		b.In("plan_id", planIDs).Few()
	}
	plans, err := db.Select[string](tx, b.Newest("last_activity_at", "plan_id", limit))
	var out []Group
	for i := 0; i < len(plans) && err == nil && (planIDs != nil || len(out) < limit); i++ {
		var n *net
		if n, err = readNet(tx, plans[i]); err != nil {
			break
		}
		var groups []Group
		groups, err = s.viewGroups(tx, plans[i], n, n.groups)
		out = append(out, groups...)
	}
	if planIDs == nil && len(out) > limit {
		out = out[:limit]
	}
	return out, err
}

func list(tx *db.Tx, in *listIn, repoID string) ([]listRow, error) {
	b := db.Build(`SELECT `+listed+` WHERE g.account_id = `, tx.Account)
	in.narrow(b, repoID)
	if in.Bucket != "" {
		b.And("g.bucket = ", in.Bucket)
	}
	return db.Select[listRow](tx, b.Newest("g.last_activity_at", "g.plan_id", in.PerPage).SQL(" OFFSET ", (in.Page-1)*in.PerPage))
}

// reposOf lists the repositories in which plans work, by plan.
func reposOf(tx *db.Tx, planIDs []string) (map[string][]string, error) {
	rows, err := db.Select[planRepo](tx, db.Build(`SELECT DISTINCT g.plan_id, r.owner || '/' || r.name AS repo FROM plan_groups g
		JOIN repos r ON r.id = g.repo_id WHERE g.account_id = `, tx.Account).In("g.plan_id", planIDs).SQL(" ORDER BY repo"))
	out := map[string][]string{}
	for _, r := range rows {
		out[r.PlanID] = append(out[r.PlanID], r.Repo)
	}
	return out, err
}

// OfFanout tells whether a task of any account is a scout of a fan-out.
func OfFanout(tx *db.Tx, taskID string) (bool, error) {
	n, err := countFanouts.One(tx, taskID)
	return n > 0, err
}
