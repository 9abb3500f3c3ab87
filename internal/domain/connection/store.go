package connection

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal/keys"
)

type row struct {
	Name       string
	Address    string
	AppID      string `db:"app_id"`
	Slug       string
	ClientID   string
	OwnerID    string
	OwnerLogin string
	AccountID  string
	Switches   string
	Sealed     string
	CreatedAt  time.Time
	CreatedBy  string
}

// putArgs are the parameters of put.
type putArgs struct {
	Name, Address                                                               string
	AppID                                                                       string `db:"app_id"`
	Slug, ClientID, OwnerID, OwnerLogin, AccountID, Switches, Sealed, CreatedBy string
	CreatedAt                                                                   int64
}

type setupRow struct {
	Name      string
	Address   string
	AccountID string
	UserID    string
	Switches  string
	ExpiresAt time.Time
}

// beginArgs are the parameters of begin.
type beginArgs struct {
	Hash, Name, Address, AccountID, UserID, Switches string
	ExpiresAt                                        time.Time
}

type installationRow struct {
	Host        string
	ID          string
	OwnerID     string
	OwnerLogin  string
	AccountID   string
	Permissions db.JSON[map[string]string]
	SuspendedAt *time.Time
	GoneAt      *time.Time
	CreatedAt   time.Time
}

// installArgs are the parameters of install.
type installArgs struct {
	Host, ID, OwnerID, OwnerLogin, AccountID string
	Permissions                              db.JSON[map[string]string]
	SuspendedAt                              *time.Time
	Now                                      int64
}

const installationColumns = `host, id, owner_id, owner_login, account_id, permissions, suspended_at, gone_at, created_at`

var (
	all = db.Q[row](`SELECT name, address, app_id, slug, client_id, owner_id, owner_login, account_id, switches, sealed, created_at,
		created_by FROM code_hosts ORDER BY name`)
	byHost = db.Q[struct{ Address, Slug string }](`SELECT address, slug FROM code_hosts WHERE name = $1`)
	put    = db.SWith[putArgs](`INSERT INTO code_hosts (name, address, app_id, slug, client_id, owner_id, owner_login, account_id, switches,
		sealed, created_at, created_by)
		VALUES (:name, :address, :app_id, :slug, :client_id, :owner_id, :owner_login, :account_id, :switches, :sealed,
		:created_at, :created_by)
		ON CONFLICT (name) DO UPDATE SET address = excluded.address, app_id = excluded.app_id, slug = excluded.slug,
		client_id = excluded.client_id, owner_id = excluded.owner_id, owner_login = excluded.owner_login,
		account_id = excluded.account_id, switches = excluded.switches, sealed = excluded.sealed,
		created_at = excluded.created_at, created_by = excluded.created_by`)
	bind = db.S(`INSERT INTO host_owners (host, owner_id, account_id) VALUES ($1, $2, $3)
		ON CONFLICT (host, owner_id) DO UPDATE SET account_id = excluded.account_id`)
	// bindFirst leaves an owner alone that another transaction has bound.
	bindFirst = db.S(`INSERT INTO host_owners (host, owner_id, account_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`)
	accountOf = db.Q[string](`SELECT account_id FROM host_owners WHERE host = $1 AND owner_id = $2`)
	begin     = db.SWith[beginArgs](`INSERT INTO code_host_setups (hash, name, address, account_id, user_id, switches, expires_at)
		VALUES (:hash, :name, :address, :account_id, :user_id, :switches, :expires_at)`)
	forget = db.S(`DELETE FROM code_host_setups WHERE expires_at < $1`)
	use    = db.Q[setupRow](`DELETE FROM code_host_setups WHERE hash = $1
		RETURNING name, address, account_id, user_id, switches, expires_at`)

	installationByID = db.Q[installationRow](`SELECT ` + installationColumns + ` FROM installations WHERE host = $1 AND id = $2`)
	lockInstallation = db.Q[installationRow](`SELECT ` + installationColumns +
		` FROM installations WHERE host = $1 AND id = $2`).ForUpdate()
	// presentBefore are the installations that are there and were changed last before a time.
	presentBefore   = db.Q[string](`SELECT id FROM installations WHERE host = $1 AND gone_at IS NULL AND updated_at < $2 ORDER BY id`)
	installationsOf = db.Q[installationRow](`SELECT ` + installationColumns + ` FROM installations ORDER BY host, created_at, id`)
	install         = db.SWith[installArgs](`INSERT INTO installations (host, id, owner_id, owner_login, account_id, permissions, suspended_at,
		created_at, updated_at)
		VALUES (:host, :id, :owner_id, :owner_login, :account_id, :permissions, :suspended_at, :now, :now)
		ON CONFLICT (host, id) DO UPDATE SET owner_login = excluded.owner_login, permissions = excluded.permissions,
		suspended_at = excluded.suspended_at, gone_at = NULL, updated_at = excluded.updated_at`)
	installedFor = db.Q[installationRow](`SELECT ` + installationColumns + ` FROM installations WHERE account_id = $1 AND gone_at IS NULL
		ORDER BY created_at, host, id`)
	uninstall = db.S(`UPDATE installations SET gone_at = $3, updated_at = $3 WHERE host = $1 AND id = $2 AND gone_at IS NULL`)
)

// Installed is an installation of the App by an owner that belongs to an account.
type Installed struct {
	Host, ID, Owner string            // Owner: its login at the host
	Permissions     map[string]string // as the host calls them
	Suspended       bool
}

// InstalledFor lists the installations of tx.Account that are there, oldest first.
func InstalledFor(tx *db.Tx) ([]Installed, error) {
	rows, err := installedFor.All(tx, tx.Account)
	out := make([]Installed, len(rows))
	for i, r := range rows {
		out[i] = Installed{Host: r.Host, ID: r.ID, Owner: r.OwnerLogin, Permissions: r.Permissions.V, Suspended: r.SuspendedAt != nil}
	}
	return out, err
}

// LockPermissions answers what the App may do in an installation, and keeps others from
// changing the installation until the transaction ends; nil if it is unknown.
func LockPermissions(tx *db.Tx, host, id string) (map[string]string, error) {
	i, _, err := lockInstallation.Maybe(tx, host, id)
	return i.Permissions.V, err
}

// by is the label of the actor of a transaction.
func by(tx *db.Tx) string {
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		return actor.Label()
	}
	return "system"
}

// Sealed is the column of the sealed credentials of Apps.
var Sealed = keys.Column{
	Table: "code_hosts", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `code_hosts GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT name AS key, account_id AS account, sealed FROM code_hosts
		WHERE name > $1 ORDER BY name LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE code_hosts SET sealed = $3 WHERE name = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}
