package donation

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/money"
)

// takes is the condition that the repository r takes gifts.
const takes = `r.enabled = TRUE AND r.private = FALSE AND r.donations_enabled = TRUE`

// row is a gift with what was used of it. TargetAccount, Owner and Name are of the repository
// that it is pinned to, as that is now.
type row struct {
	ID            string
	AccountID     string
	Kind          Kind
	RepoID        *string
	KeyID         *string
	BoxID         *string
	Provider      string
	Micros        *int64
	Models        *db.JSON[[]string]
	Model         *string
	GivenBy       string
	CreatedAt     time.Time
	ParkedAt      *time.Time
	ParkedWhy     *string
	Donor         string
	Spent         int64
	Calls         int64
	TargetAccount string
	Owner         string
	Name          string
	Takes         bool
}

// spent is what calls over the gift d have cost.
const spent = `CAST(COALESCE((SELECT SUM(u.micros) FROM donation_uses u WHERE u.donation_id = d.id), 0) AS BIGINT)`

const selection = `SELECT d.id, d.account_id, d.kind, d.repo_id, d.key_id, d.box_id, d.provider, d.micros, d.models, d.model, d.given_by,
	d.created_at, d.parked_at, d.parked_why, a.login AS donor, ` + spent + ` AS spent,
	CAST(COALESCE((SELECT SUM(u.calls) FROM donation_uses u WHERE u.donation_id = d.id), 0) AS BIGINT) AS calls,
	COALESCE(r.account_id, '') AS target_account, COALESCE(r.owner, '') AS owner, COALESCE(r.name, '') AS name,
	d.repo_id IS NULL OR (` + takes + ` AND r.account_id <> d.account_id) AS takes
	FROM donations d JOIN accounts a ON a.id = d.account_id LEFT JOIN repos r ON r.id = d.repo_id WHERE `

var (
	given        = db.Q[row](selection + `d.account_id = $1 AND d.id = $2`)
	receivedByID = db.Q[row](selection + `r.account_id = $1 AND r.account_id <> d.account_id AND d.id = $2`)
	touching     = db.Q[row](selection + `d.account_id = $1 OR r.account_id = $1 ORDER BY d.id`)
	// lockGift keeps a gift as it is until the transaction ends.
	lockGift = db.Q[string](`SELECT id FROM donations WHERE id = $1`).ForUpdate()

	// target finds a repository that takes gifts; for one that does not the answer is none,
	// whatever the reason.
	target = db.Q[targetRow](`SELECT r.id, r.account_id FROM repos r WHERE r.owner = $1 AND r.name = $2 AND ` + takes + `
		ORDER BY enabled DESC, created_at, id LIMIT 1`)

	insert = db.SWith[insertArgs](`INSERT INTO donations (id, account_id, kind, repo_id, key_id, box_id, provider, micros, models, given_by,
		created_at) VALUES (:id, :account_id, :kind, :repo_id, :key_id, :box_id, :provider, :micros, :models, :given_by, :created_at)`)
	park     = db.S(`UPDATE donations SET parked_at = $2, parked_why = $3 WHERE id = $1 AND parked_at IS NULL`)
	unpin    = db.S(`UPDATE donations SET repo_id = NULL WHERE id = $1 AND parked_at IS NOT NULL`)
	setModel = db.S(`UPDATE donations SET model = $2 WHERE id = $1 AND parked_at IS NULL`)

	ofKey = db.Q[string](`SELECT id FROM donations WHERE account_id = $1 AND key_id = $2 AND parked_at IS NULL ORDER BY id`)
	ofBox = db.Q[string](`SELECT id FROM donations WHERE account_id = $1 AND box_id = $2 AND parked_at IS NULL ORDER BY id`)

	countOf = db.Q[countRow](`SELECT d.kind, COUNT(*) AS n FROM donations d JOIN repos r ON r.id = d.repo_id
		WHERE r.account_id = $1 AND r.id = $2 AND d.account_id <> r.account_id AND d.parked_at IS NULL AND ` + takes + ` GROUP BY d.kind`)
)

// serving joins the gifts d to the repository r that they serve now.
const serving = ` FROM repos r JOIN donations d ON (d.repo_id = r.id OR d.repo_id IS NULL) AND d.parked_at IS NULL
	AND d.account_id <> r.account_id
	WHERE ` + takes + ` AND (d.micros IS NULL OR d.micros > ` + spent + `) AND `

var (
	lentKeys = db.Q[Lent](`SELECT d.id, d.account_id, d.key_id, d.models, d.model AS picked` + serving + `d.kind IN ('llm', 'money')
		AND r.account_id = $1 AND r.id = $2
		ORDER BY CASE WHEN d.repo_id IS NULL THEN 1 ELSE 0 END, CASE d.kind WHEN 'llm' THEN 0 ELSE 1 END, d.created_at, d.id LIMIT 50`)
	takers = db.Q[string](`SELECT DISTINCT r.id` + serving + `d.kind IN ('llm', 'money') AND r.account_id = $1 ORDER BY r.id LIMIT 200`)

	addUse = db.SWith[Use](`INSERT INTO donation_uses (donation_id, account_id, repo_id, calls, unpriced, micros, last_at)
		VALUES (:gift, :account_id, :repo_id, 1, :unpriced, :micros, :at)
		ON CONFLICT (donation_id, account_id, repo_id) DO UPDATE SET calls = donation_uses.calls + 1,
		unpriced = donation_uses.unpriced + excluded.unpriced, micros = donation_uses.micros + excluded.micros, last_at = excluded.last_at`)
)

type (
	targetRow struct{ ID, AccountID string }
	countRow  struct {
		Kind Kind
		N    int64
	}
	insertArgs struct {
		ID, AccountID        string
		Kind                 Kind
		RepoID, KeyID, BoxID *string
		Provider             string
		Micros               *int64
		Models               *db.JSON[[]string]
		GivenBy              string
		CreatedAt            time.Time
	}
)

// find reads a gift and locks it, by a statement that has the caller's account first. Unknown,
// foreign and malformed ids are the same fault.NotFound.
func find(tx *db.Tx, by db.Query[row], donationID string) (row, error) {
	if !id.Valid(donationID) {
		return row{}, fault.Missing("donation")
	}
	if _, _, err := lockGift.Maybe(tx, donationID); err != nil {
		return row{}, err
	}
	r, ok, err := by.Maybe(tx, tx.Account, donationID)
	if err == nil && !ok {
		err = fault.Missing("donation")
	}
	return r, err
}

// list reads gifts, the newest first: those that tx.Account has given, or those that are
// pinned to its repositories.
func list(tx *db.Tx, p op.PageIn, theirs bool) ([]row, error) {
	b := db.Build(selection)
	if theirs {
		b.SQL("d.account_id <> r.account_id AND r.account_id = ", tx.Account)
	} else {
		b.SQL("d.account_id = ", tx.Account)
	}
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	if more {
		b.And("(d.created_at, d.id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY d.created_at DESC, d.id DESC LIMIT ", p.Size()))
}

func (r row) key() []string { return op.TimeKey(r.CreatedAt, r.ID) }

// left is what may be spent yet; nil: nothing limits it.
func (r row) left() *int64 {
	if r.Micros == nil {
		return nil
	}
	n := max(*r.Micros-r.Spent, 0)
	return &n
}

// serves tells whether the gift is of use now.
func (r row) serves() bool {
	return r.ParkedAt == nil && r.Takes && (r.Micros == nil || r.Spent < *r.Micros)
}

func (r row) state() State {
	if r.ParkedAt != nil {
		return Parked
	}
	return Active
}

func (r row) fullName() string { return r.Owner + "/" + r.Name }

func (r row) wire() Donation {
	out := Donation{
		ID: r.ID, Kind: r.Kind, Target: Pool, KeyID: r.KeyID, BoxID: r.BoxID, USD: money.DollarsOrNone(r.Micros),
		UsedUSD: money.Dollars(r.Spent), LeftUSD: money.DollarsOrNone(r.left()), Calls: r.Calls, Serves: r.serves(), State: r.state(),
		ParkedWhy: (*Why)(r.ParkedWhy), GivenBy: r.GivenBy, CreatedAt: r.CreatedAt, ParkedAt: r.ParkedAt,
	}
	if r.RepoID != nil {
		name := r.fullName()
		out.Target, out.TargetRepo = Project, &name
	}
	if r.Models != nil {
		all := []Model{}
		for _, name := range r.Models.V {
			all = append(all, Model{Provider: llm.Provider(r.Provider), Model: name})
		}
		out.Models = &all
	}
	return out
}

func (s *Service) shown(r row) ReceivedDonation {
	out := ReceivedDonation{
		ID: r.ID, Kind: r.Kind, Donor: r.Donor, TargetRepo: r.fullName(), Ceiling: s.resolved(&r), USD: money.DollarsOrNone(r.Micros),
		UsedUSD: money.Dollars(r.Spent), LeftUSD: money.DollarsOrNone(r.left()), Calls: r.Calls, Serves: r.serves(), State: r.state(),
		CreatedAt: r.CreatedAt, ParkedAt: r.ParkedAt,
	}
	if r.Model != nil {
		out.Model = &Model{Provider: llm.Provider(r.Provider), Model: *r.Model}
	}
	return out
}

// Received counts the active gifts that are pinned to a repository of tx.Account, by kind. A
// repository that takes none has none.
func Received(tx *db.Tx, repoID string) (map[Kind]int64, error) {
	rows, err := countOf.All(tx, tx.Account, repoID)
	out := make(map[Kind]int64, len(rows))
	for _, r := range rows {
		out[r.Kind] = r.N
	}
	return out, err
}
