package repo

import (
	"cmp"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

type row struct {
	ID                 string
	AccountID          string
	Owner              string
	Name               string
	Host               string
	HostRepoID         string
	DefaultBranch      string
	Private            bool
	Enabled            bool
	DonationsEnabled   bool
	AIFirst            bool `db:"ai_first"`
	CanaryEnabled      bool
	PublicStatsEnabled bool
	InstallationID     string
	Archived           bool
	GoneAt             *time.Time
	GoneWhy            string // one of Lost…; empty: since before it was kept, or not gone
	EnabledBefore      bool
	Lacks              string
	PolicySHA          string  `db:"policy_sha"`
	PolicyYML          *string `db:"policy_yml"`
	PolicyError        *string
	PolicyNear         string  // a file that looks like the policy file and is not
	InTheWay           string  // the branch that keeps the service from making its own ones
	Unborn             bool    // the default branch has no commit
	Gitmodules         *string // the file of that name on the default branch
	HeadSHA            string  // of the default branch, as it was recorded last
	LastActivityAt     *time.Time
	CreatedAt          time.Time
	Floors             *db.JSON[Floors]
	Uncovered          bool
	DisabledAt         *time.Time
	PrivateAt          *time.Time
	LacksAt            *time.Time
	TierAt             *time.Time
}

type floorsRow struct {
	Floors       db.JSON[Floors] // without Outside, which package fleet reads from its column
	OutsideBoxes bool
	UpdatedAt    time.Time
	UpdatedBy    string
}

func (r floorsRow) whole() Floors {
	r.Floors.V.Outside = r.OutsideBoxes
	return r.Floors.V
}

// policy is what the repository asks for: the file's, or the default where there is
// none or it is not valid.
func (r row) policy() Policy {
	switch {
	case r.PolicyError != nil:
		return DefaultPolicy()
	case r.PolicyYML == nil:
		return defaultsFor(r.AIFirst)
	}
	return parsed.of(policyKey{*r.PolicyYML, r.AIFirst})
}

func (r row) ref() Ref {
	floors := r.floors()
	inForce, _ := floors.Clamp(r.policy())
	gone := ""
	if r.GoneAt != nil {
		gone = cmp.Or(r.GoneWhy, LostRemoved)
	}
	held, uncovered := r.heldSince()
	return Ref{
		ID: r.ID, AccountID: r.AccountID, Owner: r.Owner, Name: r.Name, DefaultBranch: r.DefaultBranch, Enabled: r.Enabled, Gone: gone,
		Uncovered: r.Uncovered, Lacks: r.Lacks, InTheWay: r.InTheWay, Unborn: r.Unborn,
		Policy: inForce, Defaults: defaultsFor(r.AIFirst), Floors: floors,
		HeldAt: held, UncoveredAt: uncovered,
		host: r.Host, hostID: r.HostRepoID,
	}
}

// heldSince returns since when tasks of the repository are held because it is gone, switched off or
// lacks a permission, and since when because the tier does not cover it; zero: never, or not known.
func (r row) heldSince() (held, uncovered time.Time) {
	of := func(at *time.Time) time.Time {
		if at == nil {
			return time.Time{}
		}
		return *at
	}
	switch {
	case r.GoneAt != nil:
		held = *r.GoneAt
	case !r.Enabled:
		held = of(r.DisabledAt)
	case r.Lacks != "":
		held = of(r.LacksAt)
	}
	if r.Uncovered {
		if uncovered = of(r.PrivateAt); of(r.TierAt).After(uncovered) {
			uncovered = of(r.TierAt)
		}
	}
	return held, uncovered
}

func (r row) floors() Floors {
	if r.Floors == nil {
		return Floors{}
	}
	return r.Floors.V
}

const columns = `id, account_id, owner, name, host, host_repo_id, default_branch, private, enabled, donations_enabled, ai_first,
	canary_enabled, public_stats_enabled, installation_id, archived, gone_at, gone_why, enabled_before, lacks, policy_sha, policy_yml, policy_error, gitmodules, policy_near, in_the_way, unborn,
	head_sha, last_activity_at, created_at,
	disabled_at, private_at, lacks_at, (SELECT a.tier_at FROM accounts a WHERE a.id = repos.account_id) AS tier_at,
	(SELECT f.floors FROM account_floors f WHERE f.account_id = repos.account_id) AS floors,
	private AND EXISTS (SELECT 1 FROM accounts a WHERE a.id = repos.account_id AND a.tier = 'free') AS uncovered`

var (
	insert = db.SWith[insertArgs](`INSERT INTO repos (id, account_id, owner, name, host, host_repo_id, default_branch, private, enabled,
		created_at)
		VALUES (:id, :account_id, :owner, :name, :host, :host_repo_id, :default_branch, :private, :enabled, :created_at)`)
	// byName finds the repository that a name addresses in an account: the one that
	// is enabled, else the oldest.
	byName = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3
		ORDER BY enabled DESC, created_at, id LIMIT 1`).Kept()
	// byNameAt is byName among the repositories of one host, or of all for ''.
	byNameAt = db.QWith[placeArgs, row](`SELECT ` + columns + ` FROM repos WHERE account_id = :account_id AND owner = :owner
		AND name = :name AND (:host = '' OR host = :host) ORDER BY enabled DESC, created_at, id LIMIT 1`)
	enabledByName = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3 AND enabled`)
	byID          = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE account_id = $1 AND id = $2`)
	newestAt      = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE account_id = $1 AND host = $2 AND enabled AND gone_at IS NULL
		ORDER BY created_at DESC, id DESC LIMIT $3`)
	byIDAnywhere = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE id = $1`)
	// byPlace finds a repository by its place, the host and the name there, in
	// whatever account.
	byPlace  = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE host = $1 AND owner = $2 AND name = $3`)
	lockID   = db.Q[string](`SELECT id FROM repos WHERE account_id = $1 AND id = $2`).ForUpdate()
	allAt    = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE host = $1 ORDER BY id`)
	activity = db.SWith[activityArgs](`UPDATE repos SET last_activity_at = :last_activity_at, default_branch = :default_branch,
		policy_sha = :policy_sha, policy_yml = :policy_yml, policy_error = :policy_error, policy_near = :policy_near,
		in_the_way = :in_the_way, gitmodules = :gitmodules, unborn = :unborn, head_sha = :head_sha WHERE id = :id`)
	noteHead     = db.S(`UPDATE repos SET head_sha = $2 WHERE id = $1`)
	allOfAccount = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE account_id = $1 ORDER BY id`)
	floorsOf     = db.Q[floorsRow](`SELECT floors, outside_boxes, updated_at, updated_by FROM account_floors WHERE account_id = $1`)
	setFloors    = db.SWith[setFloorsArgs](`INSERT INTO account_floors (account_id, floors, outside_boxes, updated_at, updated_by)
		VALUES (:account_id, :floors, :outside_boxes, :updated_at, :updated_by)
		ON CONFLICT (account_id) DO UPDATE SET floors = excluded.floors, outside_boxes = excluded.outside_boxes,
		updated_at = excluded.updated_at, updated_by = excluded.updated_by`)
	update = db.SWith[updateArgs](`UPDATE repos SET enabled = :enabled,
		disabled_at = CASE WHEN enabled AND NOT :enabled THEN :now ELSE disabled_at END, donations_enabled = :donations_enabled,
		ai_first = :ai_first, canary_enabled = :canary_enabled, public_stats_enabled = :public_stats_enabled
		WHERE account_id = :account_id AND id = :id`)
)

var (
	setRefreshDue = db.S(`UPDATE repos SET refresh_due = $3 WHERE account_id = $1 AND id = $2`)
	anyRefreshDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM repos WHERE refresh_due <= $1)`)
	// takeRefreshDue puts off what it answers: no other node takes it meanwhile.
	takeRefreshDue = db.Q[refreshRow](`UPDATE repos SET refresh_due = $2 WHERE refresh_due <= $1 
		RETURNING host, host_repo_id, owner, name, id, refresh_due`)
	// refreshed leaves alone what was made due again meanwhile.
	refreshed     = db.S(`UPDATE repos SET refresh_due = NULL WHERE id = $1 AND refresh_due = $2`)
	pullInRefresh = db.S(`UPDATE repos SET refresh_due = $1 WHERE refresh_due > $2`)
)

// refreshRow is a repository whose policy file is to be read again.
type refreshRow struct {
	Host, HostRepoID, Owner, Name, ID string
	RefreshDue                        int64
}

// ClockSetBack makes those repositories due whose policy file would be read
// again later than refreshHold from now.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullInRefresh.Exec(tx, tx.Now, tx.Now.Add(refreshHold))
	return err
}

// placeArgs are the parameters of byNameAt.
type placeArgs struct{ AccountID, Owner, Name, Host string }

// updateArgs are the parameters of update.
type updateArgs struct {
	row
	AccountID string
	Now       int64
}

// setFloorsArgs are the parameters of setFloors.
type setFloorsArgs struct {
	AccountID string
	floorsRow
}

// activityArgs are the parameters of activity.
type activityArgs struct {
	ID                       string
	LastActivityAt           time.Time
	DefaultBranch, PolicySHA string
	PolicyYML, PolicyError   *string
	PolicyNear, InTheWay     string
	Unborn                   bool
	Gitmodules               *string
	HeadSHA                  string
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, Owner, Name, Host, HostRepoID, DefaultBranch string
	Private, Enabled                                            bool
	CreatedAt                                                   int64
}

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM repos WHERE account_id = `, tx.Account)
	if p.Q != "" {
		b.Contains("owner || '/' || name", p.Q)
	}
	if enabled := p.Want("enabled"); enabled != "" {
		b.And("enabled = ", enabled == "true")
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}

// Rows are the repositories of tx.Account with the ids, or, for nil, its
// newest, up to limit, as the list shows them.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Repository, error) {
	b := db.Build(`SELECT `+columns+` FROM repos WHERE account_id = `, tx.Account)
	if ids != nil {
		b.In("id", ids).Few()
	}
	rows, err := db.Select[row](tx, b.Newest("created_at", "id", limit))
	out := make([]Repository, len(rows))
	for i, r := range rows {
		out[i] = s.wire(r)
	}
	return out, err
}

// ByName finds a repository of the transaction's account.
func ByName(tx *db.Tx, owner, name string) (Ref, bool, error) {
	r, ok, err := byName.Maybe(tx, tx.Account, owner, name)
	return r.ref(), ok, err
}

// OfInstallation lists the ids of the repositories of an installation, in whatever account.
func OfInstallation(tx *db.Tx, host, installation string) ([]string, error) {
	rows, err := ofInstallation.All(tx, host, installation)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids, err
}

// TakenAt tells whether a repository of whatever account is known by a name at a host.
func TakenAt(tx *db.Tx, host, owner, name string) (bool, error) {
	_, ok, err := byPlace.Maybe(tx, host, owner, name)
	return ok, err
}

// ByNameAt finds a repository of the transaction's account by its name at one host.
func ByNameAt(tx *db.Tx, host, owner, name string) (Ref, bool, error) {
	r, ok, err := byNameAt.Maybe(tx, placeArgs{AccountID: tx.Account, Owner: owner, Name: name, Host: host})
	return r.ref(), ok, err
}

// NewestAt lists the enabled repositories of the transaction's account at a host, newest
// first.
func NewestAt(tx *db.Tx, host string, limit int) ([]Ref, error) {
	rows, err := newestAt.All(tx, tx.Account, host, limit)
	out := make([]Ref, len(rows))
	for i, r := range rows {
		out[i] = r.ref()
	}
	return out, err
}

// Lock keeps others from changing or locking a repository of the transaction's
// account until the transaction ends; db.ErrNoRows if there is none of that id.
func Lock(tx *db.Tx, repoID string) error {
	_, err := lockID.One(tx, tx.Account, repoID)
	return err
}

// ByID finds a repository of the transaction's account.
func ByID(tx *db.Tx, repoID string) (Ref, bool, error) {
	r, ok, err := byID.Maybe(tx, tx.Account, repoID)
	return r.ref(), ok, err
}

// ByIDsAnywhere finds several repositories by ids that stored rows hold.
func ByIDsAnywhere(tx *db.Tx, repoIDs []string) ([]Ref, error) {
	rows, err := db.Select[row](tx, db.Build(`SELECT `+columns+` FROM repos WHERE TRUE`).In("id", repoIDs))
	out := make([]Ref, len(rows))
	for i, r := range rows {
		out[i] = r.ref()
	}
	return out, err
}

// ByIDAnywhere finds a repository by an id that a stored row holds.
func ByIDAnywhere(tx *db.Tx, repoID string) (Ref, bool, error) {
	r, ok, err := byIDAnywhere.Maybe(tx, repoID)
	return r.ref(), ok, err
}

// Open makes the Open of a queue whose keys are repositories: ids answers those that wait, at most
// so many.
func Open(ids db.Query[string]) func(tx *db.Tx, most int) ([]due.Open, error) {
	return func(tx *db.Tx, most int) (out []due.Open, err error) {
		all, err := ids.All(tx, most)
		for _, repoID := range all {
			r, known, err := ByIDAnywhere(tx, repoID)
			if err != nil {
				return nil, err
			}
			if known {
				out = append(out, due.Open{Key: repoID, Account: r.AccountID})
			}
		}
		return out, err
	}
}

var (
	byHostID        = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE host = $1 AND host_repo_id = $2`)
	ofInstallation  = db.Q[row](`SELECT ` + columns + ` FROM repos WHERE host = $1 AND installation_id = $2 ORDER BY id`)
	setInstallation = db.S(`UPDATE repos SET lacks = CASE WHEN installation_id = $2 THEN lacks ELSE '' END, installation_id = $2
		WHERE id = $1`)
	setLacks = db.SWith[setLacksArgs](`UPDATE repos SET lacks = :lacks, lacks_at = CASE WHEN lacks = '' THEN :now ELSE lacks_at END
		WHERE account_id = :account_id AND id = :id AND lacks <> :lacks`)
	setName       = db.S(`UPDATE repos SET owner = $2, name = $3 WHERE id = $1`)
	setProperties = db.SWith[setPropertiesArgs](`UPDATE repos SET default_branch = :default_branch,
		private_at = CASE WHEN :private AND NOT private THEN :now ELSE private_at END, private = :private, archived = :archived WHERE id = :id`)
	setGone    = db.S(`UPDATE repos SET gone_at = $2, gone_why = $3, enabled_before = enabled, enabled = FALSE WHERE id = $1 AND gone_at IS NULL`)
	setGoneWhy = db.S(`UPDATE repos SET gone_why = $2 WHERE id = $1 AND gone_at IS NOT NULL`)
	setBack    = db.S(`UPDATE repos SET gone_at = NULL, gone_why = '', enabled = $2 WHERE id = $1 AND gone_at IS NOT NULL`)
	part       = db.S(`UPDATE repos SET host_repo_id = '', installation_id = '' WHERE id = $1`)
)

// setPropertiesArgs are the parameters of setProperties.
type setPropertiesArgs struct {
	ID, DefaultBranch string
	Private, Archived bool
	Now               int64
}

// setLacksArgs are the parameters of setLacks.
type setLacksArgs struct {
	AccountID, ID, Lacks string
	Now                  int64
}
