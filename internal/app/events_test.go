package app

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// undeclared are kinds, or whole nouns, that transcripts record and no package
// declares yet.
var undeclared = []string{
	"approval", "ask", "backlog", "billing.member_cap_set", "billing.spend_cap_set", "blocker", "box", "ci", "escalation", "plan", "pr",
	"run", "runner", "session", "task.budget_set",
}

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
		noun, _, _ := strings.Cut(r.Kind, ".")
		excused := slices.Contains(undeclared, r.Kind) || slices.Contains(undeclared, noun)
		switch {
		case !ok && !excused:
			y.t.Errorf("%s is recorded, and declared nowhere", r.Kind)
		case ok && excused:
			y.t.Errorf("%s is declared: remove it from the list", r.Kind)
		case ok:
			if err := r.fits(k); err != nil {
				y.t.Errorf("%s is declared with %v, and recorded as %s: %v", r.Kind, k.Data(), r.Data, err)
			}
		}
	}
}

// fits decodes the data of a row into the type that its kind is declared with,
// which must know every member.
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
	return strict.Decode(reflect.New(k.Data()).Interface())
}
