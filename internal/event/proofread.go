package event

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/event/hashchain"
)

// Proofread holds every row of every chain against its hash and the row before it. It answers how
// many rows there are, and of each chain the first that is wrong.
func Proofread(tx *db.Tx) (rows int64, wrong []string, err error) {
	heads, err := allHeads.All(tx)
	if err != nil {
		return 0, nil, err
	}
	for _, h := range heads {
		n, why, err := proofread(tx, h)
		if err != nil {
			return rows, wrong, err
		}
		if rows += n; why != "" {
			of := h.AccountID
			if of == "" {
				of = "the platform"
			}
			wrong = append(wrong, "the record of "+of+": "+why)
		}
	}
	return rows, wrong, nil
}

func proofread(tx *db.Tx, h headRow) (n int64, why string, err error) {
	cut, why, err := CutOf(tx, h.AccountID)
	if err != nil || why != "" {
		return 0, why, err
	}
	last := chainRow{Seq: cut.Through, Hash: cut.Hash}
	for {
		var page []chainRow
		if h.AccountID == "" {
			page, err = ourChain.All(tx, last.Seq)
		} else {
			page, err = chain.All(tx, h.AccountID, last.Seq)
		}
		if err != nil {
			return n, "", err
		}
		for _, r := range page {
			hash, err := r.sum()
			switch {
			case err != nil:
				return n, "", err
			case r.Seq != last.Seq+1:
				return n, fmt.Sprintf("row %d is missing", last.Seq+1), nil
			case r.PrevHash != last.Hash:
				return n, fmt.Sprintf("row %d does not follow the one before", r.Seq), nil
			case r.Hash != hash:
				return n, fmt.Sprintf("row %d was changed", r.Seq), nil
			}
			last = r
			n++
		}
		if len(page) == 0 {
			break
		}
	}
	if last.Seq != h.Seq || last.Hash != h.Hash {
		return n, fmt.Sprintf("it ends with row %d, and should with row %d", last.Seq, h.Seq), nil
	}
	return n, "", nil
}

// sum is the hash that a row should have.
func (r chainRow) sum() (string, error) {
	return hashchain.HashOf(entry{
		ID: r.ID, AccountID: r.AccountID, Seq: r.Seq, At: r.At.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano),
		Actor: r.Actor, Kind: r.Kind, Object: r.Object, RepoID: r.RepoID, RequestID: r.RequestID,
		Data: jsontext.Value(r.Data), PrevHash: r.PrevHash,
	})
}
