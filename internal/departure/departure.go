// Package departure is how one account leaves a server: an archive of all that it has, its removal
// in one transaction, and a signed proof of that. A table that is added to the schema is the account's
// if it has a column account_id; of any other one parts.go says whose it is.
//
//	parts.go    what of each table is an account's
//	archive.go  the archive: rows as lines of JSON, repositories as bundles of git, objects
//	remove.go   what one transaction removes
//	proof.go    the proof
//	store.go    the table of accounts that have left
package departure

import "time"

// Form is the version of the form of an archive.
const Form = 1

// Record is where the audit chain of an account ended.
type Record struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Repository is one that this server had itself.
type Repository struct {
	Owner string `json:"owner"`
	Name  string `json:"name"`
	Empty bool   `json:"empty,omitempty"` // it has no ref, so there is no bundle
	Lost  bool   `json:"lost,omitempty"`  // the server had lost its folder
}

// File is the bundle of a repository in an archive.
func (r Repository) File() string { return "repositories/" + r.Owner + "/" + r.Name + ".bundle" }

// Object is one of the store of objects.
type Object struct {
	Key     string `json:"key"`
	Size    int64  `json:"size"`
	Lacking bool   `json:"lacking,omitempty"` // a row names it, and the store had lost it
}

// File is an object in an archive.
func (o Object) File() string { return "objects/" + o.Key }

// Manifest says what an archive has.
type Manifest struct {
	Form         int                 `json:"form"`
	AccountID    string              `json:"account_id"`
	Login        string              `json:"login"`
	MadeAt       time.Time           `json:"made_at"`
	Program      string              `json:"program"`
	Schema       int64               `json:"schema"`    // number of the newest migration
	Record       Record              `json:"record"`    // the end of the audit chain, tables/audit.jsonl
	Rows         map[string]int64    `json:"rows"`      // by table, in tables/NAME.jsonl
	Left         map[string]string   `json:"left"`      // tables with rows of the account that are not in it, with the reason
	Hidden       map[string][]string `json:"hidden"`    // columns that are left out, as they are sealed or credentials
	Elsewhere    []string            `json:"elsewhere"` // repositories at code hosts, which have them
	Repositories []Repository        `json:"repositories"`
	Objects      []Object            `json:"objects"`
	Files        map[string]string   `json:"files"` // SHA-256 of each file
	Mails        []string            `json:"-"`     // ids of mails of the account that the server has had
}
