package app

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// private are the members that only operators see of the data of an operator's
// act: they stand on the platform's chain, besides what is declared.
var private = map[string][]string{
	"access_request.declined":   {"email", "reason"},
	"access_request.invited":    {"email"},
	"account.oss_verify_decide": {"operator"},
	"backlog.import_requested":  {"operator"},
	"grant.issued":              {"reason"},
	"grant.provisioned":         {"email", "reason"},
	"invitation.resent":         {"email"},
	"invitation.revoked":        {"email"},
	"org_member.role_changed":   {"operator"},
}

type recordedRow struct {
	AccountID *string
	Kind      string
	Data      string
}

var everyRow = db.Q[recordedRow](`SELECT account_id, kind, data FROM audit ORDER BY at, id`)

// declared fails for audit rows that are not what the catalogue of events says.
func (y *yard) declared() {
	y.t.Helper()
	var rows []recordedRow
	err := y.db.Read(y.t.Context(), func(tx *db.Tx) (err error) {
		rows, err = everyRow.All(tx)
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	if len(rows) == 0 {
		y.t.Error("the record is empty")
	}
	kinds := map[string]event.Any{}
	for _, k := range event.Kinds() {
		kinds[k.Name()] = k
	}
	for _, r := range rows {
		k, ok := kinds[r.Kind]
		if !ok {
			y.t.Errorf("%s is recorded, and declared nowhere", r.Kind)
		} else if err := r.fits(k); err != nil {
			y.t.Errorf("%s is declared with %v, and recorded as %s: %v", r.Kind, k.Data(), r.Data, err)
		}
	}
}

// fits decodes the data of a row into the type that its kind is declared with,
// which must know every member, and holds it against the kind's schema.
func (r recordedRow) fits(k event.Any) error {
	data := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(r.Data), &data); err != nil {
		return err
	}
	if r.AccountID == nil {
		for _, name := range slices.Concat(private[r.Kind], []string{"account_id", "repo_id"}) {
			delete(data, name)
		}
	}
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(reflect.New(k.Data()).Interface()); err != nil {
		return err
	}
	schemas, err := eventSchemas()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return schemas[r.Kind].Validate(value)
}

// eventSchemas are the schemas of the document of events, by kind.
var eventSchemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	text, err := EventsDocument()
	if err != nil {
		return nil, err
	}
	var doc jsonschema.Schema
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	out := map[string]*jsonschema.Resolved{}
	for kind, s := range doc.Defs {
		if out[kind], err = s.Resolve(nil); err != nil {
			return nil, err
		}
	}
	return out, nil
})

const eventsFile = "../../docs/events.json"

func TestEventsDocumentIsCommitted(t *testing.T) {
	generated, err := EventsDocument()
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(eventsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(generated, '\n'), committed) {
		t.Error("docs/events.json is not what the declarations say. Run: make generate")
	}
}

// The document as a whole is the schema of an audit row.
func TestEventsDocument(t *testing.T) {
	text, err := os.ReadFile(eventsFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc jsonschema.Schema
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	row, err := doc.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range event.Kinds() {
		s := doc.Defs[k.Name()]
		if s == nil || s.Description != k.Doc() || s.Extra["x-scope"] != string(k.Topic().Scope) {
			t.Errorf("%s is not told of as it is declared: %+v", k.Name(), s)
		}
	}
	for text, valid := range map[string]bool{
		`{"seq": 1, "kind": "org_member.removed", "data": {"role": "admin"}}`:               true,
		`{"seq": 1, "kind": "org_member.removed", "data": {"role": "king"}}`:                false,
		`{"seq": 1, "kind": "org_member.removed", "data": {"role": "admin", "why": "old"}}`: false,
		`{"seq": 1, "kind": "org_member.removed", "data": {}}`:                              false,
		`{"seq": 1, "kind": "org_member.promoted", "data": {"role": "admin"}}`:              false,
		`{"seq": 1, "kind": "token.revoked", "data": {}}`:                                   true,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := row.Validate(v); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}
