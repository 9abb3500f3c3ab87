package release

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

// row is a program for a build target.
type row struct {
	ID, Channel, Version, Target string
	Size                         int64
	SHA256                       string `db:"sha256"`
	Signature, SignedBy          string
	Oldest                       string // '': it follows any version
	CommitSHA                    string `db:"commit_sha"`
	BuiltWith                    string
	PublishedAt                  time.Time
	HaltedAt                     *time.Time
	HaltedBy                     *string
	HaltedWhy                    string
	StoredAt                     *time.Time // nil: its bytes are not in the store of objects
}

const columns = `id, channel, version, target, size, sha256, signature, signed_by, oldest, commit_sha, built_with, published_at,
	halted_at, halted_by, halted_why, stored_at`

// versionArgs name the builds of a version.
type versionArgs struct{ Channel, Version string }

// haltArgs are the parameters of halt.
type haltArgs struct {
	versionArgs
	At  time.Time
	By  string
	Why string
}

var (
	// put publishes a build. Of a version that is there it replaces what was built, and leaves it
	// halted if it is.
	put = db.SWith[row](`INSERT INTO releases (` + columns + `)
		VALUES (:id, :channel, :version, :target, :size, :sha256, :signature, :signed_by, :oldest, :commit_sha, :built_with,
		:published_at, NULL, NULL, '', :stored_at)
		ON CONFLICT (channel, version, target) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256,
		signature = excluded.signature, signed_by = excluded.signed_by, oldest = excluded.oldest, commit_sha = excluded.commit_sha,
		built_with = excluded.built_with, published_at = excluded.published_at, stored_at = excluded.stored_at
		WHERE releases.sha256 <> excluded.sha256 OR releases.signed_by <> excluded.signed_by`)
	// built tells whether a build is there already, signed by the same key. A program of one commit,
	// version and Go is the same to the byte.
	built = db.QWith[row, bool](`SELECT EXISTS (SELECT 1 FROM releases WHERE channel = :channel AND version = :version
		AND target = :target AND commit_sha = :commit_sha AND commit_sha <> '' AND built_with = :built_with AND signed_by = :signed_by)`)
	allStored = db.Q[row](`SELECT ` + columns + ` FROM releases WHERE stored_at IS NOT NULL ORDER BY id`)
	byID      = db.Q[row](`SELECT ` + columns + ` FROM releases WHERE id = $1`)
	ofChannel = db.Q[row](`SELECT ` + columns + ` FROM releases WHERE channel = $1 ORDER BY published_at, id`)
	stored    = db.S(`UPDATE releases SET stored_at = $3 WHERE id = $1 AND sha256 = $2`)
	ofVersion = db.QWith[versionArgs, row](`SELECT ` + columns + ` FROM releases WHERE channel = :channel AND version = :version ORDER BY target`)
	// named has the builds of a version that can be installed, the server's own first.
	named = db.Q[row](`SELECT ` + columns + ` FROM releases WHERE version = $1 AND halted_at IS NULL
		ORDER BY target, CASE channel WHEN '` + BuiltIn + `' THEN 0 ELSE 1 END, channel`)
	halt = db.SWith[haltArgs](`UPDATE releases SET halted_at = :at, halted_by = :by, halted_why = :why
		WHERE channel = :channel AND version = :version AND halted_at IS NULL`)
	restore = db.SWith[versionArgs](`UPDATE releases SET halted_at = NULL, halted_by = NULL, halted_why = ''
		WHERE channel = :channel AND version = :version AND halted_at IS NOT NULL`)
)

// list reads a page of the ledger; all of it, or what can be installed.
func list(tx *db.Tx, p op.PageIn, all bool) ([]row, error) {
	b := db.Build(`SELECT ` + columns + ` FROM releases WHERE TRUE`)
	if !all {
		b.SQL(` AND halted_at IS NULL`)
	}
	if channel := p.Want("channel"); channel != "" {
		b.And("channel = ", channel)
	}
	if target := p.Want("target"); target != "" {
		b.And("target = ", target)
	}
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	if more {
		b.OlderThan("published_at", "id", at, last)
	}
	return db.Select[row](tx, b.Newest("published_at", "id", p.Size()))
}
