package ci

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/flake"
)

// endRow is the end of one attempt of a job at a host.
type endRow struct {
	ID        string
	AccountID string
	RepoID    string
	SHA       string `db:"sha"`
	Source    string
	Job       string
	HostID    string
	Attempt   int64
	Side      string
	BaseRef   string
	PRID      string `db:"pr_id"`
	Passed    bool
	Class     string
	Prints    db.JSON[[]flake.Print]
	Told      db.JSON[told]
	Excerpt   string
	Verdict   string
	At        time.Time
}

// failure is what a failed attempt is recognised by; nil if it passed.
func (e endRow) failure() *flake.Failure {
	if e.Passed {
		return nil
	}
	return &flake.Failure{Class: flake.Class(e.Class), Prints: e.Prints.V}
}

// insertEndArgs are the parameters of insertEnd.
type insertEndArgs struct {
	ID, AccountID, RepoID string
	SHA                   string `db:"sha"`
	Source, Job, HostID   string
	Side, BaseRef         string
	PRID                  string `db:"pr_id"`
	Passed                bool
	Class                 string
	Prints                db.JSON[[]flake.Print]
	Excerpt               string
	At                    int64
}

// notePrintArgs are the parameters of notePrint.
type notePrintArgs struct {
	RepoID, FP, AccountID string
	Job, Test, Error      string
	Now                   int64
}

// insertRerunArgs are the parameters of insertRerun.
type insertRerunArgs struct {
	FailureID, IntentID, RepoID string
	SHA                         string `db:"sha"`
	Source, Job                 string
	Now                         int64
}

// breakBaseArgs are the parameters of breakBase.
type breakBaseArgs struct {
	ID, AccountID, RepoID string
	BaseRef, Source, Job  string
	Prints                db.JSON[[]string]
	Now                   int64
}

// Parameters of other statements, by their names.
type (
	endsOfJobArgs struct {
		RepoID, Source, Job string
		After               int64
		Most                int
	}
	judgeEndArgs struct {
		ID, Was, Verdict string
		Told             db.JSON[told]
	}
	countPrintArgs struct {
		RepoID, FP string
		N, D       int
	}
	rerunsOfJobArgs struct {
		RepoID      string
		SHA         string `db:"sha"`
		Source, Job string
	}
	brokenBasesArgs struct{ RepoID, BaseRef, Source, Job string }
	mendBaseArgs    struct {
		RepoID, BaseRef, Source, Job string
		Now                          int64
	}
)

// brokenRow is a set of fingerprints with which a job fails at a base.
type brokenRow struct{ Prints db.JSON[[]string] }

// printRow is a fingerprint that was seen.
type printRow struct {
	FP      string `db:"fp"`
	Job     string
	Test    string
	Error   string
	N       int64
	D       int64
	FirstAt time.Time
	LastAt  time.Time
}

const endColumns = `SELECT id, account_id, repo_id, sha, source, job, host_id, attempt, side, base_ref, pr_id, passed, class, prints, told,
	excerpt, verdict, at FROM ci_failures WHERE `

var (
	// insertEnd counts the attempts of a job on a commit by what was seen of them.
	insertEnd = db.SWith[insertEndArgs](`INSERT INTO ci_failures (id, account_id, repo_id, sha, source, job, host_id, attempt, side, base_ref,
		pr_id, passed, class, prints, excerpt, at)
		SELECT :id, :account_id, :repo_id, :sha, :source, :job, :host_id, (SELECT COUNT(*) + 1 FROM ci_failures c
		WHERE c.repo_id = :repo_id AND c.sha = :sha AND c.source = :source AND c.job = :job), :side, :base_ref, :pr_id, :passed, :class,
		:prints, :excerpt, :at
		WHERE TRUE ON CONFLICT (repo_id, sha, source, job, host_id) DO NOTHING`)
	endsOf = db.Q[endRow](endColumns + `repo_id = $1 AND sha = $2 ORDER BY source, job, attempt`)
	// endsOfJob are the ends of a job, newest first.
	endsOfJob = db.QWith[endsOfJobArgs, endRow](endColumns + `repo_id = :repo_id AND source = :source AND job = :job AND at > :after
		ORDER BY at DESC, attempt DESC LIMIT :most`)
	judgeEnd = db.SWith[judgeEndArgs](`UPDATE ci_failures SET verdict = :verdict, told = :told WHERE id = :id AND verdict = :was`)

	notePrint = db.SWith[notePrintArgs](`INSERT INTO ci_fingerprints (repo_id, fp, account_id, job, test, error, first_at, last_at)
		VALUES (:repo_id, :fp, :account_id, :job, :test, :error, :now, :now)
		ON CONFLICT (repo_id, fp) DO UPDATE SET last_at = excluded.last_at, job = excluded.job`)
	countPrint = db.SWith[countPrintArgs](`UPDATE ci_fingerprints SET n = :n, d = :d WHERE repo_id = :repo_id AND fp = :fp`)

	// flakyPrints are the fingerprints that come and go, the most frequent first.
	flakyPrints = db.Q[printRow](`SELECT fp, job, test, error, n, d, first_at, last_at FROM ci_fingerprints
		WHERE account_id = $1 AND repo_id = $2 AND n > 0 ORDER BY n DESC, last_at DESC, fp LIMIT 200`)

	insertRerun = db.SWith[insertRerunArgs](`INSERT INTO ci_reruns (failure_id, intent_id, repo_id, sha, source, job, at)
		VALUES (:failure_id, :intent_id, :repo_id, :sha, :source, :job, :now)`)
	rerunsOfJob = db.QWith[rerunsOfJobArgs, int](`SELECT COUNT(*) FROM ci_reruns WHERE repo_id = :repo_id AND sha = :sha AND source = :source
		AND job = :job`)
	rerunsOfRepo = db.Q[int](`SELECT COUNT(*) FROM ci_reruns WHERE repo_id = $1 AND at > $2`)
	rerunAt      = db.Q[time.Time](`SELECT at FROM ci_reruns WHERE failure_id = $1`)
	refuseReruns = db.S(`UPDATE ci_failures SET verdict = 'real' WHERE verdict = 'rerun'
		AND id IN (SELECT failure_id FROM ci_reruns WHERE intent_id = $1)`)

	breakBase = db.SWith[breakBaseArgs](`INSERT INTO ci_broken_bases (id, account_id, repo_id, base_ref, source, job, prints, begun_at)
		VALUES (:id, :account_id, :repo_id, :base_ref, :source, :job, :prints, :now) ON CONFLICT DO NOTHING`)
	mendBase = db.SWith[mendBaseArgs](`UPDATE ci_broken_bases SET ended_at = :now WHERE repo_id = :repo_id AND base_ref = :base_ref
		AND source = :source AND job = :job AND ended_at IS NULL`)
	brokenBases = db.QWith[brokenBasesArgs, brokenRow](`SELECT prints FROM ci_broken_bases WHERE repo_id = :repo_id AND base_ref = :base_ref
		AND source = :source AND job = :job AND ended_at IS NULL`)
	anyBroken = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM ci_broken_bases WHERE repo_id = $1 AND base_ref = $2 AND ended_at IS NULL)`)
	wakeHeld  = db.Q[string](`UPDATE host_heads SET open = TRUE, want = want + 1
		WHERE repo_id = $1 AND base_ref = $2 AND hold = 'base_broken' RETURNING sha`)

	takeTidying  = db.S(`UPDATE ci_tidying SET due_at = $2 WHERE name = 'failures' AND due_at <= $1`)
	hurryTidying = db.S(`UPDATE ci_tidying SET due_at = $1 WHERE due_at > $2`)
	dropPassed   = db.S(`DELETE FROM ci_failures WHERE passed AND at < $1`)
	dropTexts    = db.S(`UPDATE ci_failures SET excerpt = '' WHERE at < $1 AND excerpt <> ''`)
	dropFailures = db.S(`DELETE FROM ci_failures WHERE at < $1`)
	dropPrints   = db.S(`DELETE FROM ci_fingerprints WHERE last_at < $1`)
	dropReruns   = db.S(`DELETE FROM ci_reruns WHERE at < $1`)
	dropBroken   = db.S(`DELETE FROM ci_broken_bases WHERE ended_at < $1`)
)
