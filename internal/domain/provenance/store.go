package provenance

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

type row struct {
	PRID        string `db:"pr_id"`
	AccountID   string
	RepoID      string
	MergeSHA    string `db:"merge_sha"`
	Envelope    string
	PublicKey   string
	SignedAt    *time.Time
	ArtifactID  *string
	Artifact    string
	ArtifactWhy string
	Note        string
	NoteWhy     string
}

type (
	insertArgs struct {
		PRID      string `db:"pr_id"`
		AccountID string
		RepoID    string
		MergeSHA  string `db:"merge_sha"`
		CreatedAt time.Time
	}
	signedArgs struct {
		PRID                string `db:"pr_id"`
		Envelope, PublicKey string
		SignedAt            time.Time
	}
	mergeRow struct {
		ID, Owner, Name, Host, URL              string
		Private, Public                         bool
		Number                                  int64
		HeadSHA                                 string `db:"head_sha"`
		BaseRef, AuthorKind, Checks             string
		MergedAt                                *time.Time
		MergedBy, TaskID                        *string
		RequestedBy, CreatedBy, AskID, AskStory *string
		Verdict                                 *db.JSON[verdict]
	}
	verdict struct {
		Kind string `json:"kind"`
	}
	runRow struct {
		ID, TaskID, Kind string
		Attempt          int64
		Outcome          *string
		Template, Agent  string
		AgentVersion     *string
		Model            *string
		PromptSHA256     *string `db:"prompt_sha256"`
		BoxID            string
		Isolation        *string
		IsolationHolds   *db.JSON[[]string]
	}
	reviewRow struct {
		HeadSHA  string `db:"head_sha"`
		State    string
		Verdict  *string
		Template string
	}
	decisionRow struct {
		Kind, State string
		By          *string
		At          *time.Time
		HeadSHA     string `db:"head_sha"`
		CarriedFrom *string
	}
	rerunRow struct {
		Source, Job string
		At          time.Time
	}
	spendRow struct {
		Micros   *int64
		Unpriced int64
	}
)

const columns = `pr_id, account_id, repo_id, merge_sha, envelope, public_key, signed_at, artifact_id, artifact, artifact_why, note, note_why`

// itsTasks are the tasks of a pull request $2 that came of a task $3: that one, and those that
// repaired and reviewed it.
const itsTasks = `t.account_id = $1 AND t.kind <> 'ci' AND (t.id = $3 OR t.pr_id = $2)`

var (
	insert = db.SWith[insertArgs](`INSERT INTO provenances (pr_id, account_id, repo_id, merge_sha, created_at)
		VALUES (:pr_id, :account_id, :repo_id, :merge_sha, :created_at) ON CONFLICT (pr_id) DO NOTHING`)
	byPR   = db.Q[row](`SELECT ` + columns + ` FROM provenances WHERE account_id = $1 AND pr_id = $2`)
	byKey  = db.Q[row](`SELECT ` + columns + ` FROM provenances WHERE pr_id = $1 AND (artifact = 'due' OR note = 'due')`)
	undone = db.Q[openRow](`SELECT pr_id AS key, account_id AS account FROM provenances WHERE artifact = 'due' OR note = 'due' LIMIT $1`)
	signed = db.SWith[signedArgs](`UPDATE provenances SET envelope = :envelope, public_key = :public_key, signed_at = :signed_at
		WHERE pr_id = :pr_id AND envelope = ''`)
	kept    = db.S(`UPDATE provenances SET artifact_id = $2 WHERE pr_id = $1 AND artifact_id IS NULL`)
	setKept = db.S(`UPDATE provenances SET artifact = $2, artifact_why = $3 WHERE pr_id = $1 AND artifact = 'due'`)
	setNote = db.S(`UPDATE provenances SET note = $2, note_why = $3 WHERE pr_id = $1 AND note = 'due'`)
	// ofCommit are the statements about one commit that may be in its note.
	ofCommit = db.Q[string](`SELECT envelope FROM provenances WHERE repo_id = $1 AND merge_sha = $2 AND envelope <> ''
		AND note <> 'none' ORDER BY pr_id`)
	isPull = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND id = $2) AS known`)

	merge = db.Q[mergeRow](`SELECT p.id, r.owner, r.name, r.host, p.host_url AS url, r.private, r.public_stats_enabled AS public, p.number,
		p.head_sha, p.base_ref, p.author_kind, p.checks, p.merged_at, p.merged_by, p.task_id, t.requested_by, t.created_by, t.ask_id,
		a.source AS ask_story, a.verdict
		FROM pulls p JOIN repos r ON r.id = p.repo_id LEFT JOIN tasks t ON t.id = p.task_id LEFT JOIN asks a ON a.id = t.ask_id
		WHERE p.account_id = $1 AND p.id = $2`)
	runs = db.Q[runRow](`SELECT w.id, w.task_id, t.kind, w.attempt, w.outcome, w.template, w.agent, w.agent_version, s.model, w.prompt_sha256,
		w.box_id, w.isolation, w.isolation_holds
		FROM tasks t JOIN runs w ON w.task_id = t.id LEFT JOIN sessions s ON s.run_id = w.id
		WHERE ` + itsTasks + ` ORDER BY w.created_at, w.id LIMIT 500`)
	reviews = db.Q[reviewRow](`SELECT head_sha, state, verdict, template FROM review_runs WHERE account_id = $1 AND pr_id = $2
		ORDER BY created_at, id LIMIT 500`)
	decisions = db.Q[decisionRow](`SELECT kind, state, decided_by AS by, decided_at AS at, head_sha, carried_from FROM pull_actions
		WHERE account_id = $1 AND pr_id = $2 AND decided_at IS NOT NULL ORDER BY decided_at, id LIMIT 500`)
	hostReviews = db.Q[decisionRow](`SELECT 'review' AS kind, state, label AS by, created_at AS at, head_sha, CAST(NULL AS TEXT) AS carried_from
		FROM host_reviews WHERE account_id = $1 AND pr_id = $2 AND counts = 'yes' ORDER BY created_at, id LIMIT 500`)
	reruns = db.Q[rerunRow](`SELECT source, job, at FROM ci_reruns WHERE repo_id = $1 AND sha = $2 ORDER BY at, job LIMIT 500`)
	spend  = db.Q[spendRow](`SELECT CAST(SUM(s.cost_micros) AS BIGINT) AS micros, CAST(COALESCE(SUM(s.unpriced), 0) AS BIGINT) AS unpriced
		FROM tasks t JOIN sessions s ON s.task_id = t.id WHERE ` + itsTasks)
)

type openRow struct{ Key, Account string }

// load reads what is still to be done about a merge.
func load(tx *db.Tx, key string) (row, bool, error) { return byKey.Maybe(tx, key) }

func open(tx *db.Tx, most int) (out []due.Open, err error) {
	all, err := undone.All(tx, most)
	for _, o := range all {
		out = append(out, due.Open(o))
	}
	return out, err
}
