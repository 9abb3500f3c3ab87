package app

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/event"
)

const eventsFile = "../../docs/events.json"

func TestEventsDocumentIsCommitted(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
