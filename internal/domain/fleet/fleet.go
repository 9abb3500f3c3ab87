// Package fleet decides which boxes may take whose work, and by what right. A box
// works for the account that it is enrolled in, and for no other, unless
//
//   - an operator of the server shares it with every account, or
//   - the person whose work it takes has agreed, for this box and that account by
//     name, is a member of both, and that account lets boxes from outside in, or
//   - its account has lent it to open-source repositories (a gift of compute). Then it takes
//     their work and no other, not its own account's either, while they are public and take
//     gifts and their account lets boxes from outside in.
//
// Belonging to an account is no consent to anything. A consent ends with either
// membership: whoever is added again has agreed to nothing.
//
// May is the condition, and all else here follows from it: the claim, the count of
// boxes, what is listed, and what is given to a box while it holds a run.
package fleet

import (
	"time"

	"yardmaster/internal/db"
)

// The rights by which a box takes work of an account.
const (
	Own     = "own"     // it is enrolled there
	Shared  = "shared"  // an operator of the server shares it
	Consent = "consent" // its owner has agreed, and the account lets it in
	Gift    = "gift"    // its account has lent it to the repository, and the account lets it in
)

// Lent is the owner target of a box that is lent: whatever else that says gives way.
const Lent = "lent"

// Given is what a box is given for a run that it holds, by whatever right; a lent one gets no
// secrets. A check gets no model token.
var Given = []string{"brief", "code", "git_token", "model_token", "secrets"}

// Right says why a box may take work of an account. UserID and Agreed are of a
// Consent alone: who has agreed, and when.
type Right struct {
	Kind   string
	UserID *string
	Agreed *time.Time
	Home   string // login of the account that the box is enrolled in
}

// Holding tells by what right a box may hold a run of an account now. ok is false if it
// may not, or is revoked.
func Holding(tx *db.Tx, boxID, accountID string) (r Right, ok bool, err error) {
	all, err := Rights(tx, accountID, []string{boxID})
	r, ok = all[boxID]
	return r, ok, err
}

// Rights is Holding of several boxes. The map lacks those that may hold no run.
func Rights(tx *db.Tx, accountID string, boxIDs []string) (map[string]Right, error) {
	rows, err := db.Select[rightRow](tx, db.Build(rights, accountID).SQL(mayHold).In("b.id", boxIDs))
	out := make(map[string]Right, len(rows))
	for _, r := range rows {
		switch {
		case r.Own:
			out[r.ID] = Right{Kind: Own, Home: r.Login}
		case r.Lent:
			out[r.ID] = Right{Kind: Gift, Home: r.Login}
		case r.OwnerTarget == "shared":
			out[r.ID] = Right{Kind: Shared, Home: r.Login}
		default:
			out[r.ID] = Right{Kind: Consent, UserID: r.OwnerID, Agreed: r.AgreedAt, Home: r.Login}
		}
	}
	return out, err
}

// Served lists the accounts whose queues a box serves: home for a box of the account;
// of several accounts those with pending tasks, the one served longest ago first.
func Served(tx *db.Tx, boxID, target, home string) ([]string, error) {
	switch target {
	case "org":
		return []string{home}, nil
	case Lent:
		return servedAsGift.All(tx, boxID)
	case "user":
		return servedByUser.All(tx, boxID)
	}
	return servedByAll.All(tx)
}

// LentTo lists the repositories of an account whose work a lent box takes.
func LentTo(tx *db.Tx, boxID, accountID string) ([]string, error) {
	return lentTo.All(tx, boxID, accountID)
}

// LetsIn tells whether an account lets boxes of other accounts in.
func LetsIn(tx *db.Tx, accountID string) (bool, error) {
	in, ok, err := lettingIn.Maybe(tx, accountID)
	return ok && in, err
}
