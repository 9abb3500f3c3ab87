package blocker

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// entry is the value for one field: a text, or a server.
type entry struct {
	text   string
	server *server
}

// server is the value for a field of the kind MCPServer.
type server struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
	Token     string `json:"token"`
}

// readEntry reads a member of the body of blocker.submit. It fails with a fault of the
// member.
func readEntry(name string, raw jsontext.Value) (e entry, err error) {
	if strings.HasPrefix(name, mcpPrefix) {
		e.server = &server{}
		if raw.Kind() != '{' || json.Unmarshal(raw, e.server, json.RejectUnknownMembers(true)) != nil {
			return e, fault.Field("fields."+name, "must be an object of url, transport and token")
		}
		return e, nil
	}
	if raw.Kind() != '"' || json.Unmarshal(raw, &e.text) != nil {
		return e, fault.Field("fields."+name, "must be a string")
	}
	return e, nil
}

// unstorable is the fault for values that cannot be stored. The reasons are by the
// names of the fields and hold no value.
func unstorable(reasons map[string]string) error {
	f := fault.New(fault.Unprocessable, "", "A field cannot be stored.")
	f.Fields = map[string][]string{}
	for name, reason := range reasons {
		f.Fields["fields."+name] = []string{reason}
	}
	return f
}

// entryFault returns why an entry is not valid in a form of these fields; empty if it
// is. The vault may still refuse the value.
func entryFault(fields []fieldRow, name string, e entry) string {
	i := slices.IndexFunc(fields, func(f fieldRow) bool { return f.Name == name })
	if i < 0 {
		return "is no field of this form"
	}
	if fields[i].LandedAt != nil {
		return "" // fillIn has a fault of its own for that
	}
	switch fields[i].Kind {
	case OAuthConnection:
		return "takes no value: connect it, then answer the blocker"
	case ServiceURL:
		if u, err := url.Parse(strings.TrimSpace(e.text)); err != nil || u.Scheme == "" || u.Host == "" {
			return "must be an address with a scheme and a host"
		}
	case MCPServer:
		u, err := url.Parse(e.server.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" ||
			strings.ContainsAny(e.server.URL, "\"\\\n\r") {
			return "url must be an https address without a user and a fragment"
		}
		if e.server.Transport != "http" && e.server.Transport != "sse" {
			return "transport must be http or sse"
		}
	}
	return ""
}

// answerPurpose is the place that an answer is sealed for.
func answerPurpose(account, blockerID string) string {
	return "blocker-answer/" + account + "/" + blockerID
}

// lock finds a blocker and locks its task, and so all blockers of the task, until tx
// ends. It fails as find does.
func (s *Service) lock(tx *db.Tx, blockerID string) (row, error) {
	r, err := find(tx, blockerID)
	if err != nil {
		return r, err
	}
	if err := s.Tasks.Lock(tx, r.TaskID); err != nil {
		return r, err
	}
	return find(tx, blockerID) // it may have changed before the lock
}

// finish closes an open blocker; errClosed if it is closed.
func (s *Service) finish(tx *db.Tx, r *row, state string, sealed *string) error {
	by := policy.From(tx.Context()).Label()
	n, err := closeBlocker.Exec(tx, closeBlockerArgs{
		AccountID: tx.Account, ID: r.ID, State: state, Answer: sealed, ClosedAt: tx.Now, ClosedBy: by,
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return errClosed
	}
	r.State, r.Answer, r.ClosedAt, r.ClosedBy = state, sealed, &tx.Now, &by
	return nil
}

// closed is the answer of a call about a blocker, before fields are filled in.
func closed(r *row, kind string) Closed {
	return Closed{BlockerID: r.ID, State: State(r.State), Kind: Effect(kind), TaskID: r.TaskID, Landed: []string{}, Stanzas: []MCPStanza{}}
}

// withdrawnText tells a run that a blocker was withdrawn.
const withdrawnText = "A question of yours was withdrawn: nobody will answer it. " +
	"Go on without it if you can, or say in your report what is missing."

// Word is what a run is told of its blockers: a text for its agent, and in it what people
// said, for those who look on.
type Word struct {
	Text    string
	Answers []string
}

// with is w with more for the agent alone.
func (w Word) with(text string) Word { return Word{w.Text + text, w.Answers} }

// say adds a line of a person.
func (w *Word) say(line string) {
	w.Text += "A person " + line + "\n"
	w.Answers = append(w.Answers, "a person "+strings.ReplaceAll(line, "\n", " "))
}

// Said tells of the blockers of a task of tx.Account that were answered or filled in: the
// questions, the answers, the names of values but never a value, and the addresses of
// servers. It is empty if there are none. If runID is not empty, it is about the blockers
// of that run alone.
func Said(tx *db.Tx, ring *seal.Keyring, taskID, runID string) (all Word, err error) {
	rows, err := answeredOf.All(tx, tx.Account, taskID, runID)
	if err != nil {
		return all, err
	}
	var parts []string
	for i := range rows {
		w, err := said(tx, ring, &rows[i])
		if err != nil {
			return Word{}, err
		}
		if !slices.Contains(parts, w.Text) { // two runs may have asked the same
			parts = append(parts, w.Text)
			all = Word{all.Text + w.Text, append(all.Answers, w.Answers...)}
		}
	}
	return all, nil
}

// said is the part of Said about one blocker.
func said(tx *db.Tx, ring *seal.Keyring, r *row) (w Word, err error) {
	w.Text = fmt.Sprintf("You asked: %s\n", strings.Join(strings.Fields(r.Question), " "))
	if r.Answer != nil {
		text, err := ring.Unseal(answerPurpose(tx.Account, r.ID), *r.Answer)
		if err != nil {
			return w, fmt.Errorf("answer of blocker %s: %w", r.ID, err)
		}
		w.say("answers: " + string(text))
	}
	fields, err := fieldsOf.All(tx, tx.Account, r.ID)
	if err != nil {
		return w, err
	}
	var names []string
	for _, f := range fields {
		if f.LandedAt == nil {
			continue
		}
		name := f.Name
		if f.Environment != "" {
			name += " (" + f.Environment + ")"
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		w.say("has put these into the vault: " + strings.Join(names, ", ") + ".")
	}
	for _, f := range fields {
		if f.URL == nil || f.Transport == nil {
			continue
		}
		u, err := url.Parse(*f.URL)
		if err != nil {
			return w, fmt.Errorf("address of %s in blocker %s: %w", f.Name, r.ID, err)
		}
		w.Text += fmt.Sprintf("The MCP server %s (transport %s) is %s. "+
			"You reach it at $YARDMASTER_SECRETS_URL/%s%s, without a credential: its token is added on the way.\n",
			strings.TrimPrefix(f.Name, mcpPrefix), *f.Transport, u, hostOf(u), u.RequestURI())
	}
	return w, nil
}

// hostOf is the host of a server in the form of Value.Host.
func hostOf(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Host), ":443") }

// loadText tells a running process how to load new values.
const loadText = "What is new is not in your environment yet. " +
	"A shell loads it with: eval \"$(curl -fsS \"$YARDMASTER_SECRETS_URL/-/env\")\"\nGo on with the task."

// resume lets the task of a blocker that was just closed go on, or files an ask if the
// task is over.
func (s *Service) resume(tx *db.Tx, r *row) (Closed, error) {
	out := closed(r, Recorded)
	waiting, err := s.assign(tx, r)
	if err != nil {
		return out, err
	}
	answers, err := Said(tx, s.Ring, r.TaskID, r.RunID)
	if err != nil {
		return out, err
	}
	word := answers.with(loadText)
	if len(waiting) > 0 {
		word = Word{} // the task waits for more
	}
	effect, err := s.Tasks.Resume(tx, r.TaskID, r.RunID, word, word.Text != "")
	switch {
	case err != nil:
		return out, err
	case effect != "":
		out.Kind = Effect(effect)
		return out, nil
	}
	askID, err := s.Asks.File(tx, FollowUp{
		BlockerID: r.ID, TaskID: r.TaskID, RunID: r.RunID, RepoID: r.RepoID, Title: "Go on with what a blocker stopped",
		Body: answers.Text + "\nThe task that asked, " + r.TaskID + ", has moved on. Decide what of its work is left.\n",
	})
	if err != nil {
		return out, err
	}
	out.Kind, out.AskID = Filed, &askID
	return out, nil
}

// fillIn stores values of the form of a locked blocker, all of them or none, and
// closes the blocker with the last field. It fails with errClosed, with
// fault.Conflict and the slug field-landed for a field that has its value, and with
// fault.Unprocessable for values that cannot be stored.
func (s *Service) fillIn(tx *db.Tx, r *row, values map[string]entry) (Closed, error) {
	out := closed(r, Recorded)
	if r.State != Open {
		return out, errClosed
	}
	if len(values) == 0 {
		return out, fault.Field("fields", "must hold at least one field")
	}
	fields, err := fieldsOf.All(tx, tx.Account, r.ID)
	if err != nil {
		return out, err
	}
	refused := map[string]string{}
	for name, e := range values {
		if why := entryFault(fields, name, e); why != "" {
			refused[name] = why
		}
	}
	if len(refused) > 0 {
		return out, unstorable(refused)
	}
	by := policy.From(tx.Context()).Label()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(fields, func(f fieldRow) bool { return f.Name == name })
		n, err := fillField.Exec(tx, fillFieldArgs{BlockerID: r.ID, Name: name, LandedAt: tx.Now, LandedBy: by})
		if err != nil {
			return out, err
		}
		if n == 0 {
			return out, fault.Reason("field-landed", "The field "+name+" has its value already.").With("field", name)
		}
		fields[i].LandedAt = &tx.Now
		stanza, err := s.store(tx, by, r, &fields[i], values[name])
		if err != nil {
			return out, err
		}
		out.Landed = append(out.Landed, name)
		if stanza != nil {
			out.Stanzas = append(out.Stanzas, *stanza)
		}
	}
	kind := fieldsLandedEvent
	landed, stanzas := out.Landed, out.Stanzas
	if !slices.ContainsFunc(fields, func(f fieldRow) bool { return f.LandedAt == nil }) {
		kind = submittedEvent
		if err := s.finish(tx, r, Submitted, nil); err != nil {
			return out, err
		}
		if out, err = s.resume(tx, r); err != nil {
			return out, err
		}
		out.Landed, out.Stanzas = landed, stanzas
	}
	return out, kind.Record(tx, event.Subject{ID: r.ID, RepoID: r.RepoID},
		landedData{AskID: out.AskID, Fields: landed, Kind: string(out.Kind), TaskID: r.TaskID})
}

// store puts a valid entry into the vault. It returns the stanza for an MCP server,
// and fails with fault.Unprocessable if the vault refuses the value.
func (s *Service) store(tx *db.Tx, by string, r *row, f *fieldRow, e entry) (*MCPStanza, error) {
	v := Value{RepoID: r.RepoID, Name: f.Name, Environment: f.Environment, Value: e.text}
	var stanza *MCPStanza
	if f.Kind == MCPServer {
		u, err := url.Parse(e.server.URL)
		if err != nil {
			return nil, err
		}
		v = Value{Name: tokenRef(f.Name), Value: e.server.Token, Host: hostOf(u)}
		stanza = stanzaOf(strings.TrimPrefix(f.Name, mcpPrefix), u.String(), e.server.Transport, v.Name)
		if _, err := setServer.Exec(tx, setServerArgs{
			BlockerID: r.ID, Name: f.Name, URL: new(stanza.URL), Transport: new(string(stanza.Transport)),
		}); err != nil {
			return nil, err
		}
	}
	err := s.Vault.Keep(tx, by, v)
	if refused := fault.From(err); err != nil && refused.Kind != fault.Internal {
		why := refused.Detail
		for _, messages := range refused.Fields {
			why = strings.Join(messages, "; ")
		}
		return nil, unstorable(map[string]string{f.Name: why})
	}
	return stanza, err
}

// tokenRef is the name of the account's secret with the token of an MCP server.
func tokenRef(field string) string {
	name := strings.ToUpper(strings.TrimPrefix(field, mcpPrefix))
	return "MCP_" + strings.ReplaceAll(name, "-", "_") + "_TOKEN"
}

// stanzaOf is an MCP server in the form of the policy file.
func stanzaOf(name, address, transport, ref string) *MCPStanza {
	return &MCPStanza{
		Server: name, URL: address, Transport: protocol.Transport(transport), TokenRef: ref,
		YAML: fmt.Sprintf("mcp_servers:\n  %q:\n    url: %q\n    transport: %s\n    token_ref: %s\n", name, address, transport, ref),
	}
}
