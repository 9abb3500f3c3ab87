package run

import (
	"encoding/json"
	"time"

	"yardmaster/internal/clock"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/money"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

const columns = `id, account_id, task_id, repo_id, attempt, box_id, claim_id, state, lease_expires_at, committed_seq, isolation,
	isolation_holds, agent, agent_version, template, model, resume_sha, agent_session, outcome, failure_kind, error, report, report_by, tip,
	created_at, accepted_at, started_at, progress_at, woken_at, ended_at, halting, halting_why, halting_until, box_right, consent_by, consent_at,
	left_out`

// mayHold is the condition that the box of the run w may hold it now. What a box is given
// of a run is read with it.
const mayHold = `EXISTS (SELECT 1 FROM boxes b WHERE b.id = w.box_id AND ` + fleet.MayHoldOf + `)`

type (
	branchRow struct{ RepoID, Branch string }
	liveRow   struct {
		BoxID string
		N     int
	}
	stateCount struct {
		State string
		N     int64
	}
)

var (
	// The key of the process that claimed the run.
	claimKey  = db.S(`UPDATE runs SET secrets_key = $2, prompt_sha256 = $3 WHERE id = $1`)
	selectKey = db.Q[string](`SELECT COALESCE(secrets_key, '') FROM runs WHERE id = $1`)

	// givenOnce changes the row only the first time that the secrets of a run
	// are fetched.
	givenOnce = db.S(`UPDATE runs SET secrets_given = TRUE WHERE id = $1 AND secrets_given = FALSE`)

	insertRun = db.SWith[insertRunArgs](`INSERT INTO runs (id, account_id, task_id, repo_id, attempt, box_id, claim_id, state,
		lease_expires_at, agent, template, model, created_at, progress_at, secrets_key, box_right, consent_by, consent_at,
		prompt_sha256)
		VALUES (:id, :account_id, :task_id, :repo_id, :attempt, :box_id, :claim_id, 'leased', :lease_expires_at, :agent,
		:template, :model, :created_at, :progress_at, :secrets_key, :box_right, :consent_by, :consent_at,
		:prompt_sha256)`)
	insertToken = db.SWith[insertTokenArgs](`INSERT INTO run_tokens (hash, run_id, kind, expires_at)
		VALUES (:hash, :run_id, :kind, :expires_at)`)

	// A box sees its own runs only, and a person those of the account; the
	// first predicate of each statement says so.
	selectOfBox = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE box_id = $1 AND id = $2`)
	// selectHeld finds a live attempt of a box that may hold it now.
	selectHeld = db.Q[Row](`SELECT ` + columns + ` FROM runs w WHERE box_id = $1 AND id = $2 AND attempt = $3 AND ended_at IS NULL
		AND ` + mayHold)
	selectOfAccount = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE account_id = $1 AND id = $2`)
	// Operators see runs of every account; each view is recorded.
	selectAnywhere  = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE id = $1`)
	selectClaim     = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE box_id = $1 AND claim_id = $2`)
	selectLive      = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE account_id = $1 AND task_id = $2 AND ended_at IS NULL`)
	selectLiveOnBox = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE box_id = $1 AND ended_at IS NULL ORDER BY id`)
	countStates     = db.Q[stateCount](`SELECT state, COUNT(*) AS n FROM runs WHERE ended_at IS NULL GROUP BY state`)
	selectAttempts  = db.Q[Row](`SELECT ` + columns + ` FROM runs WHERE account_id = $1 AND task_id = $2 ORDER BY created_at, id`)

	pageAttempts = db.QWith[pageAttemptsArgs, Row](`SELECT ` + columns + ` FROM runs
		WHERE account_id = :account_id AND task_id = :task_id AND (created_at, id) > (:created_at, :id)
		ORDER BY created_at, id LIMIT :limit`)

	// selectLast reads the newest ended run of a task, except the given one.
	selectLast = db.Q[last](`SELECT r.id, r.attempt, r.outcome, r.failure_kind, r.ended_at, b.presence FROM runs r
		JOIN boxes b ON b.id = r.box_id
		WHERE r.account_id = $1 AND r.task_id = $2 AND r.id <> $3 AND r.ended_at IS NOT NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1`)

	// selectHead reads the fields of a run that ordinary events need.
	selectHead = db.Q[head](`SELECT account_id, task_id, attempt, committed_seq, event_bytes, ended_at,
		CASE WHEN ` + mayHold + ` THEN FALSE ELSE TRUE END AS strayed FROM runs w WHERE box_id = $1 AND id = $2`)
	selectBranch = db.Q[branchRow](`SELECT t.repo_id, t.branch FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.box_id = $1
		AND r.id = $2 AND r.ended_at IS NULL`)
	advance = db.SWith[advanceArgs](`UPDATE runs SET committed_seq = :committed_seq, progress_at = :progress_at,
		event_bytes = event_bytes + :event_bytes, activity = COALESCE(CAST(:activity AS TEXT), activity)
		WHERE id = :id AND committed_seq = :seq AND ended_at IS NULL`)

	updateRun = db.SWith[Row](`UPDATE runs SET state = :state, isolation = :isolation, agent_version = :agent_version,
		model = :model, resume_sha = :resume_sha, agent_session = :agent_session, tip = :tip, accepted_at = :accepted_at,
		started_at = :started_at, isolation_holds = :isolation_holds
		WHERE id = :id AND ended_at IS NULL`)
	endRun = db.SWith[Row](`UPDATE runs SET state = 'ended', outcome = :outcome, failure_kind = :failure_kind,
		error = :error, report = :report, report_by = :report_by, tip = :tip, agent_session = :agent_session, ended_at = :ended_at,
		left_out = :left_out WHERE id = :id AND ended_at IS NULL`)
	setHalting = db.S(`UPDATE runs SET halting = $2, halting_why = $3 WHERE id = $1 AND ended_at IS NULL`)
	setParking = db.S(`UPDATE runs SET halting_until = $2 WHERE id = $1 AND ended_at IS NULL`)
	// wakeRun changes no row of a run that has ended, or that its box may not hold any more,
	// so that no message is queued for one.
	wakeRun = db.S(`UPDATE runs AS w SET woken_at = CASE WHEN state = 'parked' THEN $2 ELSE woken_at END
		WHERE id = $1 AND ended_at IS NULL AND ` + mayHold)
	resumeRun    = db.S(`UPDATE runs SET woken_at = NULL WHERE id = $1`)
	revokeTokens = db.S(`UPDATE run_tokens SET revoked_at = $2 WHERE run_id = $1 AND revoked_at IS NULL`)
	forgetTokens = db.S(`DELETE FROM run_tokens WHERE run_id = $1`)
	forgetKind   = db.S(`DELETE FROM run_tokens WHERE run_id = $1 AND kind = $2`)

	renewLease = db.SWith[renewLeaseArgs](`UPDATE runs AS w SET lease_expires_at = :lease_expires_at
		WHERE box_id = :box_id AND id = :id AND attempt = :attempt AND ended_at IS NULL AND ` + mayHold)

	selectExpired = db.Q[lease](`SELECT id, account_id, task_id FROM runs WHERE ended_at IS NULL AND lease_expires_at < $1
		ORDER BY lease_expires_at LIMIT 100`)
	// byLent selects whether a run on a lent box was of a task, or of one about a pull request.
	byLent = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM runs WHERE box_right = '` + fleet.Gift + `'
		AND (task_id = $1 OR task_id IN (SELECT id FROM tasks WHERE pr_id = $2))) AS lent`)
	// selectStrayed lists live runs whose boxes may not hold them any more.
	selectStrayed      = db.Q[lease](`SELECT id, account_id, task_id FROM runs w WHERE ended_at IS NULL AND NOT ` + mayHold + ` LIMIT 100`)
	selectStrayedOnBox = db.Q[lease](`SELECT id, account_id, task_id FROM runs w WHERE box_id = $1 AND ended_at IS NULL
		AND NOT ` + mayHold + ` ORDER BY id`)
	// CROSS makes SQLite begin with the few live runs, not with all tasks.
	selectStalled = db.Q[lease](`SELECT r.id, r.account_id, r.task_id FROM runs r CROSS JOIN tasks t
		WHERE t.id = r.task_id AND r.ended_at IS NULL AND r.progress_at < $1 AND r.state <> 'parked' AND t.stuck = FALSE
		AND t.status = 'running' LIMIT 100`)
	selectMoving = db.Q[lease](`SELECT r.id, r.account_id, r.task_id FROM runs r CROSS JOIN tasks t
		WHERE t.id = r.task_id AND r.ended_at IS NULL AND r.progress_at >= $1 AND t.stuck = TRUE AND t.status = 'running' LIMIT 100`)

	selectEvents = db.Q[storedEvent](`SELECT seq, t, mono, kind, data FROM run_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`)

	// selectOutput reads the events with the output of a command.
	selectOutput = db.Q[outputEvent](`SELECT e.seq, e.kind, e.data FROM runs r JOIN run_events e ON e.run_id = r.id
		WHERE r.account_id = $1 AND r.id = $2 AND e.seq > $3 AND e.kind IN ('agent.update', 'output.truncated', 'run.finished')
		ORDER BY e.seq LIMIT 100`)
	wasCut = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM run_events WHERE run_id = $1 AND kind = 'output.truncated')`)

	// selectMessages reads the events of the messages to a run, oldest first.
	selectMessages = db.Q[string](`SELECT data FROM run_events WHERE run_id = $1 AND kind = 'user.message' ORDER BY seq`)
	countDeclared  = db.Q[int64](`SELECT COUNT(*) FROM run_events WHERE run_id = $1 AND seq <= $2
		AND kind IN ('ask.filed', 'blocker.declared', 'action.proposed', 'page.proposed')`)
	// selectDeclared reads the declarations of all tries of a task.
	selectDeclared = db.Q[declaration](`SELECT r.id AS run_id, e.kind, e.data FROM runs r
		JOIN run_events e ON e.run_id = r.id AND e.kind IN ('ask.filed', 'blocker.declared')
		WHERE r.account_id = $1 AND r.task_id = $2 ORDER BY r.created_at, e.seq`)

	// selectTransfers reads how a run stands that its box may hold.
	selectTransfers = db.Q[transfers](`SELECT w.ended_at, w.outcome, t.status AS task_status FROM runs w JOIN tasks t ON t.id = w.task_id
		WHERE w.id = $1 AND ` + mayHold)

	selectAccess = db.Q[access](`SELECT w.id AS run_id, w.attempt, w.account_id, w.task_id, w.repo_id, w.box_id, w.template, w.model,
		k.kind, k.expires_at, k.revoked_at, w.ended_at, w.outcome, t.branch, t.status AS task_status, t.kind AS task_kind, t.budget_micros,
		s.id AS session_id, t.requested_by, t.unbound, w.pref_provider, w.pref_model,
		COALESCE(w.box_right, '') = '` + fleet.Gift + `' AS lent
		FROM run_tokens k JOIN runs w ON w.id = k.run_id JOIN tasks t ON t.id = w.task_id JOIN sessions s ON s.run_id = w.id
		WHERE k.hash = $1 AND k.kind = $2 AND ` + mayHold + ` ORDER BY s.started_at, s.id LIMIT 1`)
)

// renewLeaseArgs are the parameters of renewLease.
type renewLeaseArgs struct {
	BoxID, ID      string
	Attempt        int64
	LeaseExpiresAt time.Time
}

// advanceArgs are the parameters of advance.
type advanceArgs struct {
	ID                string
	Seq, CommittedSeq int64
	ProgressAt        time.Time
	EventBytes        int64
	Activity          *string // nil: as before
}

// pageAttemptsArgs are the parameters of pageAttempts.
type pageAttemptsArgs struct {
	AccountID, TaskID string
	CreatedAt         int64
	ID                string
	Limit             int
}

// insertTokenArgs are the parameters of insertToken.
type insertTokenArgs struct {
	Hash, RunID, Kind string
	ExpiresAt         time.Time
}

// insertRunArgs are the parameters of insertRun.
type insertRunArgs struct {
	ID, AccountID, TaskID, RepoID string
	Attempt                       int64
	BoxID, ClaimID                string
	LeaseExpiresAt                time.Time
	Agent, Template, Model        string
	CreatedAt, ProgressAt         time.Time
	SecretsKey                    string
	BoxRight                      string
	ConsentBy                     *string
	ConsentAt                     *time.Time
	PromptSHA256                  *string `db:"prompt_sha256"`
}

type (
	last struct {
		ID                   string
		Attempt              int64
		Outcome, FailureKind *string
		EndedAt              *time.Time
		Presence             string
	}
	head struct {
		AccountID    string
		TaskID       string
		Attempt      int64
		CommittedSeq int64
		EventBytes   int64
		Strayed      bool // its box may not hold it any more
		EndedAt      *time.Time
	}
	lease       struct{ ID, AccountID, TaskID string }
	storedEvent struct {
		Seq  int64
		T    int64
		Mono int64
		Kind string
		Data string
	}
	outputEvent struct {
		Seq        int64
		Kind, Data string
	}
	declaration struct{ RunID, Kind, Data string }
	transfers   struct {
		EndedAt    *time.Time
		Outcome    *string
		TaskStatus task.Status
	}
	access struct {
		RunID        string
		Attempt      int64
		AccountID    string
		TaskID       string
		RepoID       string
		BoxID        string
		Template     string
		Model        string
		Kind         string
		ExpiresAt    time.Time
		RevokedAt    *time.Time
		EndedAt      *time.Time
		Outcome      *string
		TaskStatus   task.Status
		Branch       string
		TaskKind     string
		BudgetMicros *int64
		SessionID    string
		RequestedBy  *string
		Unbound      bool
		PrefProvider *string
		PrefModel    *string
		Lent         bool
	}
)

func (e storedEvent) wire() Event {
	return Event{Seq: e.Seq, T: time.UnixMilli(e.T).UTC(), Mono: e.Mono, Kind: e.Kind, Data: json.RawMessage(e.Data)}
}

func usageOf(u session.Usage) Usage {
	return Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheTokens: u.CacheTokens,
		CostUSD: money.DollarsOrNone(u.CostMicros)}
}

// store writes the fields that the events of a live run change.
func store(tx *db.Tx, r *Row) error {
	_, err := updateRun.Exec(tx, *r)
	return err
}

// chunk is the most events that one statement inserts. Shorter batches are cut
// into powers of two, so that few different statements are prepared.
const chunk = 64

func insertEvents(tx *db.Tx, runID string, attempt int, events []protocol.Event) error {
	for len(events) > 0 {
		n := chunk
		for n > len(events) {
			n /= 2
		}
		b := db.Build(`INSERT INTO run_events (run_id, seq, attempt, t, mono, kind, data) VALUES `)
		for i, e := range events[:n] {
			if i > 0 {
				b.SQL(", ")
			}
			data := string(e.Data)
			if data == "" {
				data = "{}"
			}
			b.SQL("", db.Tuple(runID, e.Seq, attempt, e.T, e.Mono, e.Kind, data))
		}
		if _, err := db.Select[int64](tx, b.SQL(" RETURNING seq")); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// Active counts the live runs of boxes: those of one account, or all for an empty one. The
// map lacks a box without one.
func (s *Service) Active(tx *db.Tx, boxIDs []string, accountID string) (map[string]int, error) {
	if len(boxIDs) == 0 {
		return nil, nil
	}
	b := db.Build(`SELECT box_id, COUNT(*) AS n FROM runs WHERE ended_at IS NULL`).In("box_id", boxIDs)
	if accountID != "" {
		b.And("account_id = ", accountID)
	}
	rows, err := db.Select[liveRow](tx, b.SQL(" GROUP BY box_id"))
	out := make(map[string]int, len(rows))
	for _, r := range rows {
		out[r.BoxID] = r.N
	}
	return out, err
}

// TaskOf returns the id of the task of a run of tx.Account. ok is false if there is no such
// run.
func TaskOf(tx *db.Tx, runID string) (taskID string, ok bool, err error) {
	r, ok, err := selectOfAccount.Maybe(tx, tx.Account, runID)
	return r.TaskID, ok, err
}

// Record says how a run was carried out.
type Record struct {
	Template       string
	Isolation      *string // nil: the agent never started
	IsolationHolds *db.JSON[[]string]
	FailureKind    *string
	LastSeq        int64 // number of its last event
}

// RecordOf returns the record of a run of any account. ok is false if there is
// no such run.
func RecordOf(tx *db.Tx, runID string) (rec Record, ok bool, err error) {
	r, ok, err := selectAnywhere.Maybe(tx, runID)
	return Record{r.Template, r.Isolation, r.IsolationHolds, r.FailureKind, r.CommittedSeq}, ok, err
}

// PlaceOf finds the task and the repository of a run of tx.Account.
func PlaceOf(tx *db.Tx, runID string) (taskID, repoID string, ok bool, err error) {
	r, ok, err := selectOfAccount.Maybe(tx, tx.Account, runID)
	return r.TaskID, r.RepoID, ok, err
}

// EventsAfter lists the events of a run after the number seq, limit at most.
// The caller has checked that the run is the account's.
func EventsAfter(tx *db.Tx, runID string, seq int64, limit int) ([]Event, error) {
	rows, err := selectEvents.All(tx, runID, seq, limit)
	out := make([]Event, len(rows))
	for i, e := range rows {
		out[i] = e.wire()
	}
	return out, err
}

// Kinds of an attempt's tokens.
const (
	TokenGit   = "git"
	TokenModel = "model"
)

// mint makes a token of a live run. Only its hash is stored.
func mint(tx *db.Tx, runID, kind string, ttl time.Duration) (string, error) {
	token := id.Secret(id.Attempt)
	_, err := insertToken.Exec(tx, insertTokenArgs{Hash: seal.Hash(token), RunID: runID, Kind: kind, ExpiresAt: tx.Now.Add(ttl)})
	return token, err
}

var limitLeases = db.S(`UPDATE runs SET lease_expires_at = $1 WHERE ended_at IS NULL AND lease_expires_at > $2`)

// ClockSetBack shortens leases to the end that a renewal would give now.
func (s *Service) ClockSetBack(tx *db.Tx) error {
	end := s.redispatchAt(tx)
	_, err := limitLeases.Exec(tx, end, end.Add(clock.Tolerated))
	return err
}
