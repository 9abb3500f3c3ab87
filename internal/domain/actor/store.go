package actor

import "yardmaster/internal/db"

// named reads the names of some ids by kind. A token of a person has none: what it does is
// done by the person.
func named(tx *db.Tx, ids map[string][]string) ([]Name, error) {
	b := db.Build(`SELECT 'user:' || u.id AS actor, u.login AS name, p.gone FROM (SELECT user_id, FALSE AS gone FROM memberships
		WHERE account_id = `, tx.Account).In("user_id", ids["user"])
	b.SQL(` UNION ALL SELECT user_id, TRUE AS gone FROM former_members WHERE account_id = `, tx.Account).In("user_id", ids["user"])
	b.SQL(`) AS p JOIN users u ON u.id = p.user_id`)
	b.SQL(` UNION ALL SELECT 'pat:' || id AS actor, name, FALSE AS gone FROM tokens WHERE user_id IS NULL AND name IS NOT NULL
		AND account_id = `, tx.Account).In("id", ids["pat"])
	b.SQL(` UNION ALL SELECT 'box:' || id AS actor, name, FALSE AS gone FROM boxes WHERE account_id = `, tx.Account).In("id", ids["box"])
	b.SQL(` UNION ALL SELECT 'source:' || id AS actor, name, FALSE AS gone FROM sources WHERE account_id = `, tx.Account).
		In("id", ids["source"])
	b.SQL(` UNION ALL SELECT 'schedule:' || id AS actor, title AS name, FALSE AS gone FROM schedules WHERE account_id = `, tx.Account).
		In("id", ids["schedule"])
	return db.Select[Name](tx, b.SQL(` ORDER BY 1`))
}
