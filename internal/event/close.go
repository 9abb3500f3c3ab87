package event

import (
	"encoding/json"
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// DeletedData says that an account is gone, and where its record ended.
type DeletedData struct {
	Login   string `json:"login" doc:"login of the account"`
	Rows    int64  `json:"rows" doc:"how many rows of its record were removed"`
	Through int64  `json:"through_seq" doc:"number of the last of them"`
	Hash    string `json:"through_hash" doc:"its hash"`
	Archive string `json:"archive_sha256" doc:"sum of the archive that the account was written to before"`
}

// DeletedEvent records on the platform's chain that an account was deleted with its record. Its
// subject is the account.
var DeletedEvent = Declare[DeletedData]("account.deleted", Audience(policy.ReadAccount), "An account was deleted with all that it had.")

// Head returns where the chain of an account ends; 0 and "" if it has no row.
func Head(tx *db.Tx, account string) (seq int64, hash string, err error) {
	h, _, err := readHead.Maybe(tx, account)
	return h.Seq, h.Hash, err
}

// CloseChain removes the whole record of an account that is deleted in tx, which acts for the platform.
// The head of the chain stays, with number and hash alone, and the platform's record says why no row
// is left.
func CloseChain(tx *db.Tx, account, login, archive string) (rows int64, err error) {
	ours, _, err := lockCut.Maybe(tx, "")
	if err != nil {
		return 0, err
	}
	seq, hash, err := Head(tx, account)
	if err != nil {
		return 0, err
	}
	if rows, err = removeAll.Exec(tx, account); err != nil {
		return rows, err
	}
	if _, err := cutHead.Exec(tx, cutArgs{account, Cut{seq, hash, ours.Seq + 1}}); err != nil {
		return rows, err
	}
	return rows, DeletedEvent.Record(tx, Subject{ID: account},
		DeletedData{Login: login, Rows: rows, Through: seq, Hash: hash, Archive: archive})
}

// closed says what is wrong with a chain of which no row is left: the platform's record tells that the
// account was deleted, unless that is older than the platform's record is kept.
func closed(tx *db.Tx, account string, c Cut) (why string, err error) {
	ours, _, err := selectCut.Maybe(tx, "")
	if err != nil || ours.Through >= c.Told {
		return "", err
	}
	r, ok, err := ourTelling.Maybe(tx, c.Told)
	if err != nil {
		return "", err
	}
	why = fmt.Sprintf(unsaid, c.Through)
	if !ok || r.Kind != DeletedEvent.Name() || r.Object != account {
		return why, nil
	}
	var said DeletedData
	hash, err := r.sum()
	if err != nil || json.Unmarshal([]byte(r.Data), &said) != nil || hash != r.Hash || said.Through != c.Through || said.Hash != c.Hash {
		return why, err
	}
	return "", nil
}
