package app

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/op"
)

var exchanges = flag.String("exchanges", "", "a file for what the transcripts send and are answered, one JSON object a line")

// record is what the transcripts leave behind.
type record struct {
	mu   sync.Mutex // transcripts are played side by side
	file io.Writer
	rows map[string][]int // how many audit rows each success of a row that changes something wrote
	tool map[string]bool  // the rows that were called as tools and succeeded
}

type tally struct{ Rows, Objects int }

var auditOf = db.Q[tally](`SELECT count(*) AS rows, count(DISTINCT object) AS objects FROM audit WHERE request_id = $1`)

// note takes down an exchange.
func (r *record) note(y *talk, o op.Op, body string, a answer) {
	y.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil && !y.tools && strings.HasPrefix(o.Path, "/v1/") {
		b, err := json.Marshal(struct {
			Op, Method, URL string
			Sent            http.Header
			Request         string
			Status          int
			Header          http.Header
			Response        string
		}{o.ID, a.Request.Method, a.Request.URL.RequestURI(), a.Request.Header, body, a.StatusCode, a.Header, string(a.body)})
		if err == nil {
			_, err = r.file.Write(append(b, '\n'))
		}
		if err != nil {
			y.t.Fatal(err)
		}
	}
	if a.StatusCode >= 300 || o.Method == "GET" || o.ID == "mcp.rpc" || a.Header.Get("X-Idempotent-Replayed") != "" {
		return
	}
	var n tally
	err := y.db.Read(y.t.Context(), func(tx *db.Tx) (err error) {
		n, err = auditOf.One(tx, a.Header.Get("X-Request-Id"))
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	// What a call does to other objects on the way, as a plan that makes tasks,
	// they have rows of their own for.
	if n.Rows != n.Objects {
		y.t.Errorf("%s writes %d audit rows of %d objects", o.ID, n.Rows, n.Objects)
	}
	r.rows[o.ID] = append(r.rows[o.ID], n.Rows)
}

// called takes down a call of a tool.
func (r *record) called(o op.Op, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tool[o.ID] = r.tool[o.ID] || a.StatusCode < 300
}

// unaudited are the rows that are no GET and change nothing that is audited,
// and why.
var unaudited = map[string]string{
	"auth.device":             "nobody is signed in yet; the decision about the code is the change",
	"auth.email":              "mails a code; the sign-in with it is the change",
	"invitation.confirm":      "its transcript is turned away; invitation.accept does the same and writes one",
	"project.policy_validate": "reads the file that it is sent",
	"service.oauth_register":  "keeps nothing: the registration is sealed into the client_id",
	"session.replay":          "tells what would have been, and changes nothing",
	"task.reassign":           "its transcript has no task in flight to move; a move of any task writes one",
}

// ofSessions are the tools that no token can have succeed, and why.
var ofSessions = map[string]string{
	"account.active_account_switch": "turns a session to another account; a token is of one for life",
	"operator_token.issue":          "wants a fresh sign-in, which a token has none of",
}

// judge holds what every row wrote against the rule that a change writes one
// audit row of its object. A call that changes nothing, as the second
// revocation of a token, writes none; but every row has a call that does.
//
// Every row that can be a tool must have succeeded as one.
func (r *record) judge(t *testing.T) {
	for _, o := range Ops() {
		if o.IsTool() && r.tool[o.ID] == (ofSessions[o.ID] != "") {
			t.Errorf("%s succeeds as a tool: %v", o.ID, r.tool[o.ID])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.rows)) {
		switch wrote := slices.Max(r.rows[id]); {
		case wrote == 0 && unaudited[id] == "":
			t.Errorf("%s changes something and writes no audit row: %v", id, r.rows[id])
		case wrote > 0 && unaudited[id] != "":
			t.Errorf("%s does write an audit row", id)
		}
	}
}
