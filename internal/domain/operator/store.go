package operator

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

var (
	orgExtra = db.Q[orgRow](`SELECT spend_cap_micros, oss_reviewed_at FROM accounts WHERE id = $1`)

	lastActive = db.Q[*time.Time](`SELECT MAX(at) FROM (SELECT last_signed_in_at AS at FROM users WHERE id = $1
		UNION ALL SELECT MAX(last_used_at) AS at FROM tokens WHERE user_id = $1) AS seen`)
)

type orgRow struct {
	SpendCapMicros *int64
	OSSReviewedAt  *time.Time `db:"oss_reviewed_at"`
}

// howPaid is the SQL expression for the billing of an account with seats and
// free_devs.
const howPaid = `CASE WHEN seats + free_devs = 0 THEN 'paused'
	WHEN tier = 'oss_verified' OR free_devs > 0 AND (seats = 0 OR tier = 'self_hosted') THEN 'comped'
	WHEN tier IN ('free', 'team') THEN 'paying' END`

// selectOrgs selects accounts. The time that the builder gets decides which grants
// are active.
func selectOrgs(tx *db.Tx) *db.Builder {
	return db.Build(`SELECT id, login, kind, tier, seats, created_at, members, free_devs, billing FROM (
		SELECT o.*, `+howPaid+` AS billing FROM (SELECT a.id, a.login, a.kind, a.tier, a.seats, a.created_at,
		(SELECT COUNT(*) FROM memberships m WHERE m.account_id = a.id) AS members, `+grant.FreeDevs, tx.Micros()).
		SQL(`) AS free_devs FROM accounts a) AS o) AS p WHERE TRUE`)
}

func listOrgs(tx *db.Tx, p op.PageIn) ([]OrgSummary, error) {
	b := selectOrgs(tx)
	if billing := p.Want("billing"); billing != "" {
		b.And("billing = ", billing)
	}
	if p.Q != "" {
		b.Contains("login", p.Q)
	}
	return db.NewestFirst[OrgSummary](tx, b, p)
}

func orgDetail(tx *db.Tx, accountID string) (out OrgDetail, err error) {
	if !id.Valid(accountID) {
		return out, fault.Missing("account")
	}
	found, err := db.Select[OrgSummary](tx, selectOrgs(tx).And("id = ", accountID))
	if err != nil {
		return out, err
	}
	if len(found) == 0 {
		return out, fault.Missing("account")
	}
	extra, err := orgExtra.One(tx, accountID)
	if err != nil {
		return out, err
	}
	has, err := measure.OfAccount(tx, accountID)
	if err != nil {
		return out, err
	}
	out = OrgDetail{
		OrgSummary:    found[0],
		OSSReviewedAt: extra.OSSReviewedAt,
		Repos:         has.Repos,
		Boxes:         has.Boxes,
		TasksOpen:     has.TasksOpen,
	}
	if extra.SpendCapMicros != nil {
		usd := float64(*extra.SpendCapMicros) / 1e6
		out.SpendCapUSD = &usd
	}
	members, err := people.Roster(tx, accountID)
	for _, m := range members {
		out.Roster = append(out.Roster, RosterMember{UserID: m.UserID, Login: m.Login, Name: m.Name, Role: m.Role})
	}
	return out, err
}

// userOf returns a user as operators list them.
func userOf(u people.User) User {
	return User{User: account.UserOf(u), Approved: u.ApprovedAt != nil, CreatedAt: u.CreatedAt}
}

func listUsers(tx *db.Tx, p op.PageIn) ([]User, error) {
	var approved *bool
	if status := p.Want("status"); status != "" {
		is := status == "approved"
		approved = &is
	}
	rows, err := people.Users(tx, p, approved)
	out := make([]User, len(rows))
	for i, r := range rows {
		out[i] = userOf(r)
	}
	return out, err
}

func userDetail(tx *db.Tx, user string) (out UserDetail, err error) {
	if !id.Valid(user) {
		return out, fault.Missing("user")
	}
	u, ok, err := people.UserByID(tx, user)
	if err != nil {
		return out, err
	}
	if !ok {
		return out, fault.Missing("user")
	}
	out.User = userOf(u)
	if out.LastActiveAt, err = lastActive.One(tx, user); err != nil {
		return out, err
	}
	orgs, err := people.Memberships(tx, user)
	if err != nil {
		return out, err
	}
	for _, m := range orgs {
		out.Orgs = append(out.Orgs, UserOrg{AccountID: m.AccountID, Login: m.Login, Kind: m.Kind, Role: m.Role})
	}
	out.Grants, err = grant.History(tx, user)
	return out, err
}
