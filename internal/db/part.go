package db

// mostNamed is the largest number of rows that a part of an id finds.
const mostNamed = 200

// tail is the length of the end of an id by which migration 0200 indexes the tables that
// IDs reads.
const tail = 4

// IDs reads the ids that begin or end with a part of one, at most 200 of each. from
// selects the column id of a table up to "WHERE account_id"; the part has at least 4
// characters of [0-9a-f-], which the caller has checked.
//
// An id that begins with its time (UUIDv7) is known by its end, because the ids of one
// minute share their beginnings. An index on the last 4 characters leaves one row in 65536
// to compare. SQLite looks at what a bare column is to be like, and compiles the statement anew.
func IDs(tx *Tx, from constant, part string) ([]string, error) {
	// The letter g comes after all characters of an id, in every collation.
	ids, err := Select[string](tx, Build(from+" = ", tx.Account).And("id >= ", part).And("id <= ", part+"g").
		And("id || '' LIKE ", part+"%").SQL(" ORDER BY id DESC LIMIT ", mostNamed))
	if err != nil {
		return nil, err
	}
	// By an index on the account or on the id, SQLite would read all ids of the account.
	ends, err := Select[string](tx, Build(from+" || '' = ", tx.Account).And("substr(id, 33, 4) = ", part[len(part)-tail:]).
		And("id || '' LIKE ", "%"+part).SQL(" ORDER BY id || '' DESC LIMIT ", mostNamed))
	return append(ids, ends...), err
}

// Named narrows b to the rows whose ids IDs finds; an empty part leaves b as it is. column
// is that of the id in b.
func Named(tx *Tx, b *Builder, column, from constant, part string) error {
	if part == "" {
		return nil
	}
	ids, err := IDs(tx, from, part)
	if err == nil {
		b.In(column, ids).Few()
	}
	return err
}
