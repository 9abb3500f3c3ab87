package transcript

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/app"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// private lists the members of an operator's act that only operators see: they are
// recorded on the platform's chain, in addition to the declared ones.
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

// declared fails for audit rows that differ from the catalogue of events.
func (k *talk) declared(t *testing.T) {
	t.Helper()
	var rows []recordedRow
	err := k.DB.Read(t.Context(), func(tx *db.Tx) (err error) {
		rows, err = everyRow.All(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Error("the record is empty")
	}
	kinds := map[string]event.Any{}
	for _, k := range event.Kinds() {
		kinds[k.Name()] = k
	}
	for _, r := range rows {
		declared, ok := kinds[r.Kind]
		if !ok {
			t.Errorf("%s is recorded, and declared nowhere", r.Kind)
		} else if err := r.fits(declared); err != nil {
			t.Errorf("%s is declared with %v, and recorded as %s: %v", r.Kind, declared.Data(), r.Data, err)
		}
	}
}

// fits decodes the data of a row into the declared type of its kind, which must know
// every member, and validates it against the kind's schema.
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

// eventSchemas returns the schemas of the document of events, by kind.
var eventSchemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	text, err := app.EventsDocument()
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
