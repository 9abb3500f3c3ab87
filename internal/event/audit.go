package event

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// change is a change of one object.
type change struct {
	kind string
	Subject
	data any // what changed; it contains no secrets
}

// entry is an audit row in the form that its hash covers: what the API shows of it,
// without the hash.
type entry struct {
	ID        string         `json:"id"`
	AccountID *string        `json:"account_id"`
	Seq       int64          `json:"seq"`
	At        string         `json:"at"`
	Actor     string         `json:"actor"`
	Kind      string         `json:"kind"`
	Object    string         `json:"object"`
	RepoID    *string        `json:"repo_id"`
	RequestID string         `json:"request_id"`
	Data      jsontext.Value `json:"data"`
	PrevHash  string         `json:"prev_hash"`

	micros int64 // At with microseconds
}

type head struct {
	Seq  int64
	Hash string
}

var (
	selectHead = db.Q[head](`SELECT seq, hash FROM audit_heads WHERE account_id = $1`).ForUpdate()
	insertHead = db.S(`INSERT INTO audit_heads (account_id, seq, hash) VALUES ($1, 0, '') ON CONFLICT DO NOTHING`)
	moveHead   = db.S(`UPDATE audit_heads SET seq = $2, hash = $3 WHERE account_id = $1`)
	insert     = db.SWith[insertArgs](`INSERT INTO audit (id, account_id, at, actor, kind, object, repo_id, request_id, data, seq,
		prev_hash, hash)
		VALUES (:id, :account_id, :at, :actor, :kind, :object, :repo_id, :request_id, :data, :seq, :prev_hash, :hash)`)
	insertTrail = db.SWith[insertTrailArgs](`INSERT INTO operator_trail (id, at, actor, capability, account_id, user_id, run_id, request_id)
		VALUES (:id, :at, :actor, :capability, :account_id, :user_id, :run_id, :request_id)`)
)

// insertTrailArgs are the parameters of insertTrail.
type insertTrailArgs struct {
	ID                       string
	At                       int64
	Actor, Capability        string
	AccountID, UserID, RunID *string
	RequestID                string
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	entry
	At   int64
	Data string
	Hash string
}

// auditRows collects the audit rows of a transaction. They are written at its end,
// because the head of an account's chain is one row that all changes of the account
// lock.
var auditRows = db.AtEnd(db.Fourth, write)

// record adds the audit row of a change to the change's transaction, and returns
// the account whose chain it is on; "" is the platform's own chain.
func record(tx *db.Tx, c change) (account string, err error) {
	actor := policy.From(tx.Context())
	who := label(actor)
	switch operates := actor.Credential == policy.Operator; {
	case operates && c.Account != "":
		who = Operator
	case c.Account == "" && !operates:
		c.Account = tx.Account // an operator token has an account, too, but acts for the platform
	}
	return c.Account, addRow(tx, c, who, actor.RequestID)
}

// sorted are the options that order the members of data by name.
var sorted = []jsontext.Options{jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(true)}

// addRow adds an audit row to those that are written at the end of the transaction.
func addRow(tx *db.Tx, c change, actor, requestID string) error {
	data := jsontext.Value("{}")
	if c.data != nil {
		var err error
		if data, err = json.Marshal(c.data); err == nil {
			err = data.Format(sorted...)
		}
		if err != nil {
			return fmt.Errorf("encode audit data of %s: %w", c.kind, err)
		}
	}
	auditRows.Add(tx, entry{
		ID: id.New(), AccountID: db.NullText(c.Account),
		At: tx.Now.Truncate(time.Millisecond).Format(time.RFC3339Nano), Actor: actor,
		Kind: c.kind, Object: c.ID, RepoID: db.NullText(c.RepoID),
		RequestID: requestID, Data: data, micros: tx.Micros(),
	})
	return nil
}

// Operator is the actor of an operator's act in the record of an account. Which
// person acted is in the platform's record.
const Operator = "operator"

// operated records an operator's act: in full on the platform's own chain, and
// without private on the chain of the account that it concerns. It records nothing
// on the account of the operator's credential.
func operated(tx *db.Tx, kind string, about Subject, shown, private map[string]any) error {
	actor := policy.From(tx.Context())
	all := map[string]any{}
	maps.Copy(all, shown)
	maps.Copy(all, private)
	if about.Account != "" {
		all["account_id"] = about.Account
		if err := addRow(tx, change{kind, about, shown}, Operator, actor.RequestID); err != nil {
			return err
		}
	}
	if about.RepoID != "" {
		all["repo_id"] = about.RepoID
	}
	return addRow(tx, change{kind, Subject{ID: about.ID}, all}, label(actor), actor.RequestID)
}

// write appends rows to the chains of their accounts. It orders the accounts, so
// that concurrent transactions lock the heads in the same order.
func write(tx *db.Tx, rows []entry) error {
	chains := map[string][]entry{}
	for _, e := range rows {
		account := ""
		if e.AccountID != nil {
			account = *e.AccountID
		}
		chains[account] = append(chains[account], e)
	}
	for _, account := range slices.Sorted(maps.Keys(chains)) {
		if err := extend(tx, account, chains[account]); err != nil {
			return err
		}
	}
	return nil
}

func extend(tx *db.Tx, account string, rows []entry) error {
	h, ok, err := selectHead.Maybe(tx, account)
	if err == nil && !ok {
		if _, err = insertHead.Exec(tx, account); err == nil {
			h, err = selectHead.One(tx, account)
		}
	}
	if err != nil {
		return fmt.Errorf("head of the audit chain: %w", err)
	}
	for _, e := range rows {
		e.Seq, e.PrevHash = h.Seq+1, h.Hash
		hash, err := hashchain.HashOf(e)
		if err != nil {
			return fmt.Errorf("hash the audit row of %s: %w", e.Kind, err)
		}
		if _, err := insert.Exec(tx, insertArgs{entry: e, At: e.micros, Data: string(e.Data), Hash: hash}); err != nil {
			return err
		}
		h = head{e.Seq, hash}
	}
	_, err = moveHead.Exec(tx, account, h.Seq, h.Hash)
	return err
}

// OperatorRead describes a read of tenants' data by an operator. An empty account
// means every account.
type OperatorRead struct {
	Capability string
	Account    string
	User       string // the person whose data are read
	Run        string
}

// RecordRead records a read by an operator. It is called before the data are
// returned.
func RecordRead(tx *db.Tx, r OperatorRead) error {
	actor := policy.From(tx.Context())
	_, err := insertTrail.Exec(tx, insertTrailArgs{
		ID: id.New(), At: tx.Micros(), Actor: label(actor), Capability: r.Capability,
		AccountID: db.NullText(r.Account), UserID: db.NullText(r.User), RunID: db.NullText(r.Run),
		RequestID: actor.RequestID,
	})
	return err
}

// ReadRecorded reads data of tenants for an operator: it records the read and then
// runs fn in the same transaction, so that no data are returned without a record.
func ReadRecorded(ctx context.Context, d *db.DB, r OperatorRead, fn func(*db.Tx) error) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		if err := RecordRead(tx, r); err != nil {
			return err
		}
		return fn(tx)
	})
}

func label(a policy.Actor) string {
	if a.Anonymous() {
		return "system"
	}
	return a.Label()
}
