package vault

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal/keys"
)

type row struct {
	RepoID      string
	Name        string
	Environment string
	Delivery    protocol.Delivery
	Hosts       db.JSON[[]string]
	Header      string
	Prefix      string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	UpdatedBy   string
}

type sealedRow struct {
	RepoID      string
	Name        string
	Environment string
	Sealed      string
	Delivery    protocol.Delivery
	Hosts       db.JSON[[]string]
	Header      string
	Prefix      string
}

type usage struct{ Count, Total int64 }

var (
	list = db.Q[row](`SELECT repo_id, name, environment, delivery, hosts, header, prefix, created_at, updated_at, updated_by FROM secrets
		WHERE account_id = $1 AND repo_id = $2 ORDER BY name, environment`)
	one = db.QWith[oneArgs, row](`SELECT repo_id, name, environment, delivery, hosts, header, prefix, created_at, updated_at,
		updated_by FROM secrets
		WHERE account_id = :account_id AND repo_id = :repo_id AND environment = :environment AND name = :name`)
	forRun = db.Q[sealedRow](`SELECT repo_id, name, environment, sealed, delivery, hosts, header, prefix FROM secrets
		WHERE account_id = $1 AND repo_id IN ('', $2) ORDER BY repo_id, name, environment`)
	every = db.Q[sealedRow](`SELECT repo_id, name, environment, sealed, delivery, hosts, header, prefix FROM secrets WHERE account_id = $1`)
	reach = db.Q[struct{ Stored, Reachable int64 }](`SELECT COUNT(*) AS stored,
		CAST(COALESCE(SUM(CASE WHEN repo_id IN ('', $2) THEN 1 ELSE 0 END), 0) AS BIGINT) AS reachable FROM secrets WHERE account_id = $1`)
	size = db.Q[usage](`SELECT COUNT(*) AS count, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS total FROM secrets WHERE account_id = $1
		AND repo_id = $2`)
	put = db.SWith[putArgs](`INSERT INTO secrets (account_id, repo_id, environment, name, sealed, size, delivery, hosts,
		header, prefix, created_at, updated_at, updated_by)
		VALUES (:account_id, :repo_id, :environment, :name, :sealed, :size, :delivery, :hosts, :header, :prefix,
		:created_at, :created_at, :updated_by)
		ON CONFLICT (account_id, repo_id, environment, name) DO UPDATE SET sealed = excluded.sealed, size = excluded.size,
		delivery = excluded.delivery, hosts = excluded.hosts, header = excluded.header, prefix = excluded.prefix,
		updated_at = excluded.updated_at, updated_by = excluded.updated_by`)
	remove = db.SWith[removeArgs](`DELETE FROM secrets
		WHERE account_id = :account_id AND repo_id = :repo_id AND environment = :environment AND name = :name`)
)

// removeArgs are the parameters of remove.
type removeArgs struct {
	AccountID, RepoID, Environment, Name string
}

// putArgs are the parameters of put.
type putArgs struct {
	AccountID, RepoID, Environment, Name, Sealed string
	Size                                         int
	Delivery                                     protocol.Delivery
	Hosts                                        db.JSON[[]string]
	Header, Prefix                               string
	CreatedAt                                    time.Time
	UpdatedBy                                    string
}

// oneArgs are the parameters of one.
type oneArgs struct {
	AccountID, RepoID, Environment, Name string
}

func (r row) wire() Secret {
	out := Secret{Name: r.Name, Delivery: r.Delivery, Hosts: r.Hosts.V, CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt, UpdatedBy: r.UpdatedBy}
	if r.Environment != "" {
		out.Environment = &r.Environment
	}
	if r.Delivery == protocol.DeliverBroker {
		out.Header, out.Prefix = &r.Header, &r.Prefix
	} else {
		v := variable(r.Name, r.Environment)
		out.Variable = &v
	}
	return out
}

// Has tells whether tx.Account has a secret of that name and environment, for a
// repository or, if repoID is empty, for all.
func Has(tx *db.Tx, repoID, environment, name string) (bool, error) {
	_, ok, err := one.Maybe(tx, oneArgs{AccountID: tx.Account, RepoID: repoID, Environment: environment, Name: name})
	return ok, err
}

// Sealed is the column of sealed values, for the rotation of keys.
var Sealed = keys.Column{
	Table: "secrets", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `secrets GROUP BY 1`),
	List: func(tx *db.Tx, after string, limit int) ([]keys.Row, error) {
		return sealedBehind.All(tx, sealedBehindArgs{oneArgs: split(after), Limit: limit})
	},
	Put: func(tx *db.Tx, key, was, is string) (int64, error) {
		return replaceSealed.Exec(tx, replaceSealedArgs{oneArgs: split(key), Was: was, Sealed: is})
	},
	Purpose: func(r keys.Row) string {
		at := split(r.Key)
		return purpose(at.AccountID, at.RepoID, at.Environment, at.Name)
	},
}

var (
	sealedBehind = db.QWith[sealedBehindArgs, keys.Row](`SELECT account_id || '/' || repo_id || '/' || environment || '/' || name AS key,
			account_id AS account, sealed
		FROM secrets WHERE (account_id, repo_id, environment, name) > (:account_id, :repo_id, :environment, :name)
		ORDER BY account_id, repo_id, environment, name LIMIT :limit`)
	replaceSealed = db.SWith[replaceSealedArgs](`UPDATE secrets SET sealed = :sealed
		WHERE account_id = :account_id AND repo_id = :repo_id AND environment = :environment AND name = :name AND sealed = :was`)
)

// sealedBehindArgs are the parameters of sealedBehind.
type sealedBehindArgs struct {
	oneArgs
	Limit int
}

// replaceSealedArgs are the parameters of replaceSealed.
type replaceSealedArgs struct {
	oneArgs
	Was, Sealed string
}

// split takes a key of Sealed apart. No part of a key has a slash.
func split(key string) oneArgs {
	p := append(strings.SplitN(key, "/", 4), "", "", "")
	return oneArgs{AccountID: p[0], RepoID: p[1], Environment: p[2], Name: p[3]}
}
