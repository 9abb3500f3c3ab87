package box

import (
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

type row struct {
	ID             string
	AccountID      string
	Name           string
	OwnerTarget    string
	OwnerID        *string
	State          string
	NKey           string  `db:"nkey"`
	NATSAccount    *string `db:"nats_account"` // nil: the box enrolled before each had its own
	SealKey        string
	TokenHash      string
	TokenExpiresAt time.Time
	LastHash       *string
	LastExpiresAt  *time.Time
	Rotate         bool
	Version        string
	OS             string `db:"os"`
	Arch           string
	Slots          int64
	Labels         db.JSON[map[string]string]
	SetSlots       *int64
	SetLabels      db.JSON[map[string]string]
	Agents         db.JSON[[]protocol.AgentInfo]
	Isolation      db.JSON[[]string]
	IsolationHolds db.JSON[Holds]
	Presence       string
	Telemetry      db.JSON[protocol.Presence]
	LastBeatAt     *time.Time
	Unfit          *string // nil: the box can carry out runs
	Briefing       *string
	Hardening      *db.JSON[Hardening]
	CreatedAt      time.Time
	RevokedAt      *time.Time
	RetiredAt      *time.Time
	RetireAt       *time.Time // set: the box is being decommissioned, and is revoked then at the latest
	RetireBy       *string
	Active         int          `db:"-"` // runs; see Service.fill
	Asked          *string      `db:"-"` // user who was asked to make it theirs and has not answered
	Outside        *fleet.Right `db:"-"` // of a box of another account: by what right it takes work here
}

const columns = `id, account_id, name, owner_target, owner_id, state, nkey, nats_account, seal_key, token_hash, token_expires_at,
	last_hash, last_expires_at, rotate, version, os, arch, slots, labels, set_slots, set_labels, agents,
	isolation, isolation_holds, presence, telemetry, last_beat_at,
	unfit, briefing, hardening, created_at, revoked_at, retired_at, retire_at, retire_by`

type (
	enrollment struct {
		ID        string
		AccountID string
		Name      string
		Slots     *int64
		Labels    db.JSON[map[string]string]
		CreatedBy string
		CreatedAt time.Time
	}
	retiring struct {
		ID        string
		AccountID string
		RetireAt  time.Time
	}
	standingRow struct {
		State   string
		Waiting bool
	}
	revokedKey struct {
		NKey      string `db:"nkey"`
		BoxID     string
		Account   *string
		RevokedAt time.Time
	}
)

// given is the condition that the box b is given the command w: a message only while the box
// may hold the run that it is for.
const given = `(w.account_id IS NULL OR ` + fleet.MayHold + `)`

var (
	insertEnrollment = db.SWith[insertEnrollmentArgs](`INSERT INTO enrollments (id, account_id, hash, name, slots, labels, created_by,
		created_at, expires_at)
		VALUES (:id, :account_id, :hash, :name, :slots, :labels, :created_by, :created_at, :expires_at)`)
	enrollmentByHash = db.Q[enrollment](`SELECT id, account_id, name, slots, labels, created_by, created_at FROM enrollments
		WHERE hash = $1 AND redeemed_at IS NULL AND expires_at > $2`)
	joinedWith = db.Q[string](`SELECT box_id FROM enrollments WHERE account_id = $1 AND id = $2 AND box_id IS NOT NULL`)
	redeem     = db.SWith[redeemArgs](`UPDATE enrollments SET redeemed_at = :redeemed_at, box_id = :box_id
		WHERE hash = :hash AND redeemed_at IS NULL AND expires_at > :expires_at`)

	insert = db.SWith[insertArgs](`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, nats_account,
		token_hash, token_expires_at, version, os, arch, slots, labels, set_slots, set_labels, created_at)
		VALUES (:id, :account_id, :name, 'org', :account_id, 'enrolled', :nkey, :nats_account, :token_hash,
		:token_expires_at, :version, :os, :arch, :slots, :labels, :set_slots, :set_labels, :created_at)`)

	byID = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE account_id = $1 AND id = $2`)
	// byToken and byIdentity read boxes of any account: a box proves its
	// identity by its token or its NATS credential, and its account follows
	// from the row.
	byToken    = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE token_hash = $1 OR last_hash = $1`)
	byIdentity = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE id = $1`)
	// ofUser reads the boxes of any account that take one user's work, or whose owner the
	// user was asked to become; the user is a member of the account.
	ofUser = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE state <> 'revoked'
		AND (owner_target = 'user' AND owner_id = $1 OR id IN (SELECT box_id FROM box_consents WHERE user_id = $1 AND agreed_at IS NULL))
		AND account_id IN (SELECT account_id FROM memberships WHERE user_id = $1) ORDER BY id`)
	byAccount = db.Q[string](`SELECT id FROM boxes WHERE nats_account = $1 AND state <> 'revoked'`)
	seatedAt  = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM boxes WHERE id = $1 AND nats_account IS NOT NULL AND state <> 'revoked') AS seated`)
	seated    = db.Q[seat](`SELECT nats_account AS account, id AS box FROM boxes WHERE nats_account IS NOT NULL AND state <> 'revoked'`)

	setState    = db.S(`UPDATE boxes SET state = $3, retire_at = NULL, retire_by = NULL WHERE account_id = $1 AND id = $2`)
	setRetiring = db.SWith[setRetiringArgs](`UPDATE boxes SET state = :state, retire_at = :retire_at, retire_by = :retire_by
		WHERE account_id = :account_id AND id = :id`)
	// A drained box holds no runs and need not wait for its time.
	selectRetiring = db.Q[retiring](`SELECT id, account_id, retire_at FROM boxes WHERE retire_at IS NOT NULL AND state <> 'revoked'
		AND (retire_at <= $1 OR state = 'drained') ORDER BY id`)
	setOwner = db.SWith[setOwnerArgs](`UPDATE boxes SET owner_target = :owner_target, owner_id = :owner_id
		WHERE account_id = :account_id AND id = :id`)
	setBriefing  = db.S(`UPDATE boxes SET briefing = $3 WHERE account_id = $1 AND id = $2`)
	setHardening = db.S(`UPDATE boxes SET hardening = $2 WHERE id = $1`)
	setRotate    = db.S(`UPDATE boxes SET rotate = TRUE WHERE account_id = $1 AND id = $2`)
	setRetired   = db.S(`UPDATE boxes SET retired_at = $3, retire_at = NULL WHERE account_id = $1 AND id = $2`)
	setRevoked   = db.S(`UPDATE boxes SET state = 'revoked', revoked_at = $3, presence = 'offline', telemetry = '{}',
		last_beat_at = NULL, unfit = NULL
		WHERE account_id = $1 AND id = $2`)

	setKey       = db.S(`UPDATE boxes SET nkey = $2, seal_key = '' WHERE id = $1`)
	setAccount   = db.S(`UPDATE boxes SET nats_account = $2 WHERE id = $1`)
	setSealKey   = db.S(`UPDATE boxes SET seal_key = $2 WHERE id = $1`)
	sealKey      = db.Q[string](`SELECT seal_key FROM boxes WHERE id = $1`)
	replaceToken = db.SWith[replaceTokenArgs](`UPDATE boxes SET token_hash = :token_hash, token_expires_at = :token_expires_at,
		last_hash = :last_hash, last_expires_at = :last_expires_at, rotate = FALSE
		WHERE id = :id`)
	forgetLast = db.S(`UPDATE boxes SET last_hash = NULL, last_expires_at = NULL WHERE id = $1`)

	report = db.SWith[row](`UPDATE boxes SET version = :version, os = :os, arch = :arch, slots = :slots,
		labels = :labels, agents = :agents, isolation = :isolation, isolation_holds = :isolation_holds
		WHERE id = :id`)
	beat = db.SWith[beatArgs](`UPDATE boxes SET presence = 'online', last_beat_at = :last_beat_at, telemetry = :telemetry,
		version = :version, unfit_for = :unfit_for
		WHERE id = :id AND state <> 'revoked' AND presence <> 'left'`)
	setLeft   = db.S(`UPDATE boxes SET presence = 'left', last_beat_at = $2, telemetry = $3 WHERE id = $1`)
	clearLeft = db.S(`UPDATE boxes SET presence = 'offline' WHERE id = $1 AND presence = 'left'`)
	// setUnfit changes no row whose reason is the same, so that concurrent
	// calls leave one audit row for each change.
	setUnfit    = db.S(`UPDATE boxes SET unfit = NULLIF($2, '') WHERE id = $1 AND state <> 'revoked' AND COALESCE(unfit, '') <> $2`)
	setDrained  = db.S(`UPDATE boxes SET state = 'drained' WHERE id = $1 AND state = 'draining'`)
	selectQuiet = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE presence = 'online' AND last_beat_at <= $1
		OR presence = 'stale' AND last_beat_at <= $2 LIMIT 500`)
	setPresence = db.SWith[setPresenceArgs](`UPDATE boxes SET presence = :now
		WHERE id = :id AND presence = :presence AND last_beat_at = :last_beat_at`)

	// serving has a limit: it is for views of a fleet.
	serving = db.Q[db.JSON[[]protocol.AgentInfo]](`SELECT b.agents FROM boxes b CROSS JOIN (SELECT CAST($1 AS TEXT) AS account_id) w
		WHERE b.state = 'enrolled' AND b.presence = 'online' AND b.unfit IS NULL AND ` + fleet.May + ` LIMIT 500`)

	versions = db.Q[Version](`SELECT version, COUNT(*) AS boxes, SUM(CASE WHEN presence = 'online' THEN 1 ELSE 0 END) AS online
		FROM boxes WHERE account_id = $1 AND state <> 'revoked' GROUP BY version`)

	insertRevokedKey = db.SWith[insertRevokedKeyArgs](`INSERT INTO revoked_keys (nkey, box_id, account, revoked_at)
		VALUES (:nkey, :box_id, :account, :revoked_at)`)
	selectRevokedKey = db.Q[string](`SELECT nkey FROM revoked_keys WHERE nkey = $1`)
	countRevokedKeys = db.Q[int64](`SELECT COUNT(*) FROM revoked_keys WHERE box_id = $1 AND revoked_at > $2`)
	selectRevoked    = db.Q[revokedKey](`SELECT nkey, box_id, account, revoked_at FROM revoked_keys
		WHERE revoked_at >= $1 AND ($2 = '' OR box_id = $2)`)

	// insertRevokedTokens keeps what a box proves itself by, and the one before that.
	insertRevokedTokens = db.S(`INSERT INTO revoked_tokens (token_hash, expires_at)
		SELECT token_hash, token_expires_at FROM boxes WHERE id = $1
		UNION ALL SELECT last_hash, last_expires_at FROM boxes WHERE id = $1 AND last_hash IS NOT NULL`)
	selectRevokedToken  = db.Q[int64](`SELECT expires_at FROM revoked_tokens WHERE token_hash = $1`)
	expireRevokedTokens = db.S(`DELETE FROM revoked_tokens WHERE expires_at <= $1`)

	insertCommand = db.SWith[insertCommandArgs](`INSERT INTO box_commands (id, box_id, account_id, place, kind, payload,
		created_at) SELECT :id, :box_id, CAST(:account_id AS TEXT), :place, :kind, :payload, CAST(:created_at AS BIGINT)
		WHERE EXISTS (SELECT 1 FROM boxes WHERE id = :box_id AND state <> 'revoked')
		ON CONFLICT (id) DO NOTHING`)
	selectCommands = db.Q[db.JSON[protocol.Command]](`SELECT w.payload FROM box_commands w JOIN boxes b ON b.id = w.box_id
		WHERE w.box_id = $1 AND ` + given + ` ORDER BY CASE w.kind WHEN 'run.halt' THEN 0 ELSE 1 END, w.place LIMIT $2`)
	deleteCommand  = db.S(`DELETE FROM box_commands WHERE box_id = $1 AND id = $2`)
	deleteCommands = db.S(`DELETE FROM box_commands WHERE box_id = $1`)
	dropMessages   = db.S(`DELETE FROM box_commands WHERE box_id = $1 AND account_id = $2`)
	expireCommands = db.S(`DELETE FROM box_commands WHERE created_at < $1`)
	countMessages  = db.Q[int64](`SELECT COUNT(*) FROM box_commands WHERE box_id = $1 AND kind = 'run.message'`)
	outdate        = db.SWith[outdateArgs](`DELETE FROM box_commands
		WHERE box_id = :box_id AND kind IN (:command_drain, :command_resume) AND id <> :id`)
	standing = db.Q[standingRow](`SELECT b.state, EXISTS (SELECT 1 FROM box_commands w WHERE w.box_id = b.id AND ` + given + `) AS waiting
		FROM boxes b WHERE b.id = $1`)

	briefing = db.Q[*string](`SELECT briefing FROM boxes WHERE id = $1 AND (account_id = $2 OR owner_target = 'shared')`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, Name, Nkey, NatsAccount, TokenHash string
	TokenExpiresAt                                    time.Time
	Version, Os, Arch                                 string
	Slots                                             int64
	Labels                                            db.JSON[map[string]string]
	SetSlots                                          *int64
	SetLabels                                         db.JSON[map[string]string]
	CreatedAt                                         time.Time
}

// redeemArgs are the parameters of redeem.
type redeemArgs struct {
	Hash                  string
	ExpiresAt, RedeemedAt time.Time
	BoxID                 string
}

// insertEnrollmentArgs are the parameters of insertEnrollment.
type insertEnrollmentArgs struct {
	ID, AccountID, Hash, Name string
	Slots                     *int64
	Labels                    db.JSON[map[string]string]
	CreatedBy                 string
	CreatedAt, ExpiresAt      time.Time
}

// outdateArgs are the parameters of outdate.
type outdateArgs struct {
	BoxID, CommandDrain, CommandResume, ID string
}

// insertCommandArgs are the parameters of insertCommand.
type insertCommandArgs struct {
	ID, BoxID, Place, Kind string
	AccountID              *string // of a message: whose run it is for
	Payload                db.JSON[protocol.Command]
	CreatedAt              time.Time
}

// insertRevokedKeyArgs are the parameters of insertRevokedKey.
type insertRevokedKeyArgs struct {
	Nkey, BoxID string
	Account     *string
	RevokedAt   time.Time
}

// setPresenceArgs are the parameters of setPresence.
type setPresenceArgs struct {
	ID, Presence, Now string
	LastBeatAt        *time.Time
}

// replaceTokenArgs are the parameters of replaceToken.
type replaceTokenArgs struct {
	ID, TokenHash  string
	TokenExpiresAt time.Time
	LastHash       string
	LastExpiresAt  time.Time
}

// setOwnerArgs are the parameters of setOwner.
type setOwnerArgs struct {
	AccountID, ID, OwnerTarget string
	OwnerID                    *string
}

// setRetiringArgs are the parameters of setRetiring.
type setRetiringArgs struct {
	AccountID, ID, State string
	RetireAt             time.Time
	RetireBy             string
}

// Serving counts the boxes that are online, fit and take work of an account,
// 500 at most, and names the agents on them.
func Serving(tx *db.Tx, accountID string) (boxes int, agents []string, err error) {
	all, err := serving.All(tx, accountID)
	names := map[string]bool{}
	for _, b := range all {
		for _, a := range b.V {
			names[a.Name] = true
		}
	}
	return len(all), slices.Sorted(maps.Keys(names)), err
}

// Briefing returns the text that the operator gives every agent on a box that works for
// tx.Account. It is empty if there is none. A box of another account, which one person has
// brought along, tells agents of this one nothing.
func Briefing(tx *db.Tx, boxID string) (string, error) {
	text, ok, err := briefing.Maybe(tx, boxID, tx.Account)
	if err != nil || !ok || text == nil {
		return "", err
	}
	return *text, nil
}

// SealKey returns the key to which secrets for a box's present process are
// sealed. It is empty until that process has said hello.
func SealKey(tx *db.Tx, boxID string) (string, error) {
	key, _, err := sealKey.Maybe(tx, boxID)
	return key, err
}

// Owner finds the box that a NATS account belongs to. ok is false if there is
// none or the box is revoked.
func Owner(tx *db.Tx, account string) (boxID string, ok bool, err error) {
	return byAccount.Maybe(tx, account)
}

type seat struct{ Account, Box string }

// Owners lists the NATS accounts that boxes may use, with their boxes.
func Owners(tx *db.Tx) (map[string]string, error) {
	rows, err := seated.All(tx)
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.Account] = r.Box
	}
	return out, err
}

// Seated tells whether a box has a NATS account that it may use.
func Seated(tx *db.Tx, boxID string) (bool, error) { return seatedAt.One(tx, boxID) }

// DropMessages deletes the messages that wait for a box and are for runs of an account.
func DropMessages(tx *db.Tx, boxID, accountID string) error {
	_, err := dropMessages.Exec(tx, boxID, accountID)
	return err
}

// unfit says why the box can carry out no run. It is empty if the box can.
func (r row) unfit() string {
	if r.Unfit == nil {
		return ""
	}
	return *r.Unfit
}

// find reads a box of tx.Account, and locks it if lock is set. It returns
// fault.NotFound in the same words for an id that is unknown, foreign or
// malformed.
func (s *Service) find(tx *db.Tx, boxID string, lock bool) (row, error) {
	if !id.Valid(boxID) {
		return row{}, fault.Missing("box")
	}
	q := byID
	if lock {
		q = q.ForUpdate()
	}
	r, ok, err := q.Maybe(tx, tx.Account, boxID)
	if err == nil && !ok {
		err = fault.Missing("box")
	}
	if err != nil {
		return r, err
	}
	rows := []row{r}
	err = s.fill(tx, rows)
	return rows[0], err
}

// retirable lists the boxes being decommissioned whose time has come, or that
// hold no runs any more.
func (s *Service) retirable(tx *db.Tx) ([]retiring, error) {
	all, err := selectRetiring.All(tx, tx.Now)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	live, err := s.Runs.Active(tx, ids, "")
	return slices.DeleteFunc(all, func(r retiring) bool { return r.RetireAt.After(tx.Now) && live[r.ID] > 0 }), err
}

// unrevoked reads the boxes among ids that are not revoked.
func unrevoked(tx *db.Tx, ids []string) ([]row, error) {
	b := db.Build(`SELECT ` + columns + ` FROM boxes WHERE state <> 'revoked'`)
	return db.Select[row](tx, b.In("id", ids))
}

// wire returns the box as clients see it at now.
func (r row) wire(now time.Time) Box {
	out := Box{
		ID: r.ID, Name: r.Name, Owner: BoxOwner{Target: Target(r.OwnerTarget), ID: r.OwnerID}, State: State(r.State),
		Presence: Presence{Status: measure.Presence(presenceAt(r.Presence, r.LastBeatAt, now)),
			LastBeat: r.LastBeatAt, Active: r.Active, Version: r.Version},
		Slots: r.Slots, Labels: r.Labels.V, Isolation: r.Isolation.V, Holds: r.IsolationHolds.V,
		Capabilities: make([]Agent, len(r.Agents.V)), OS: r.OS, Arch: r.Arch, Briefing: r.Briefing,
		CreatedAt: r.CreatedAt, RevokedAt: r.RevokedAt,
		RevokesAt: r.RetireAt,
	}
	if r.Asked != nil {
		pending := "pending"
		out.Consent, out.ConsentOf = &pending, r.Asked
	}
	for i, a := range r.Agents.V {
		out.Capabilities[i] = Agent{Name: a.Name, Version: a.Version}
		if a.Missing != "" {
			out.Capabilities[i].Missing = &a.Missing
		}
	}
	if t := r.Telemetry.V; r.LastBeatAt != nil {
		if u := t.Update; u != nil {
			out.Presence.Update = &Update{State: u.State, Version: u.Version, Why: u.Why, Keys: u.Keys}
		}
		out.Presence.Telemetry = &Telemetry{State: t.State, Free: t.Free, DiskFree: t.DiskFree, SkewMS: t.SkewMS, SpoolBytes: t.SpoolBytes}
	}
	// The reason may have been repaired since the last beat, and an offline box
	// needs no other reason. A revoked box has none any more.
	if out.Presence.Status != Offline {
		out.Presence.Unfit = r.Unfit
	}
	if r.Hardening != nil {
		out.Hardening = &r.Hardening.V
	}
	if r.Outside != nil { // what its own account knows of it stays there
		out.Outside = &Outside{Account: r.Outside.Home, Right: r.Outside.Kind, AgreedAt: r.Outside.Agreed, Given: fleet.Given}
		out.Labels, out.Briefing, out.Hardening, out.Presence.Telemetry = map[string]string{}, nil, nil, nil
		out.RevokesAt, out.Presence.Update = nil, nil
	}
	return out
}

var limitBeats = db.S(`UPDATE boxes SET last_beat_at = $1 WHERE last_beat_at > $1`)

// ClockSetBack sets beats of the future to now, so that silence shows.
func ClockSetBack(tx *db.Tx) error {
	_, err := limitBeats.Exec(tx, tx.Now)
	return err
}

// beatArgs are the parameters of beat.
type beatArgs struct {
	ID         string
	LastBeatAt time.Time
	Telemetry  db.JSON[protocol.Presence]
	Version    string
	UnfitFor   *db.JSON[map[string]string]
}

// Brief is what people are told of a box. OwnerID is nil for a box of the account.
type Brief struct {
	Name    string
	OwnerID *string
}

var briefOf = db.Q[Brief](`SELECT name, CASE WHEN owner_target = 'user' THEN owner_id END AS owner_id FROM boxes
	WHERE account_id = $1 AND id = $2`)

// BriefOf reads a box of tx.Account.
func BriefOf(tx *db.Tx, boxID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, boxID)
}
