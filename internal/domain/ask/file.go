package ask

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// The limits of an ask, in characters, and of its repositories.
const (
	maxTitle = 200
	maxBody  = 20_000
	maxReach = 50 // repositories
)

// maxDepth is how many asks of agents may follow one another. The next one
// becomes a question to a person.
const maxDepth = 3

// maxOfRun is how many asks one run may file.
const maxOfRun = 20

// Filing is an ask to be filed in tx.Account.
type Filing struct {
	RepoIDs   []string // the repositories of the ask; none: any of the account's
	Title     string   // one line
	Body      string
	Source    string // FromAPI when empty
	Labels    map[string]string
	DedupeKey string // asks with the same key in a namespace are one; empty: never
	// Namespace is the namespace of DedupeKey: keys of two namespaces never
	// collide. The source when empty.
	Namespace string
	// Scopes are the rights of the filer, beyond which no verdict goes.
	Scopes policy.Set
	// By names the filer, and UserID, if not empty, the person. Both empty: the
	// actor of the transaction.
	By, UserID string
	// RequestedBy is the id of the person at the beginning of the chain. Nil is
	// the filer, and empty is nobody.
	RequestedBy *string
	// Again says that a second filing with the same key is the same trouble once more,
	// which the ask counts.
	Again bool

	runID string
	depth int64
}

// File files an ask. If there is one with the same key, File returns that, in
// whatever state it is, with existing true. A judge reads a new ask after the
// commit. File returns fault.Invalid for more than 50 repositories.
func (s *Service) File(tx *db.Tx, f Filing) (a Ask, existing bool, err error) {
	return File(tx, s.Hub, f)
}

// File is Service.File for callers without a service. hub wakes the loop that
// has asks judged.
func File(tx *db.Tx, hub *event.Hub, f Filing) (a Ask, existing bool, err error) {
	r, existing, err := file(tx, hub, f)
	return r.wire(), existing, err
}

func file(tx *db.Tx, hub *event.Hub, f Filing) (row, bool, error) {
	if f.Source == "" {
		f.Source = FromAPI
	}
	if f.By == "" && f.UserID == "" {
		actor := policy.From(tx.Context())
		f.By, f.UserID = actor.Label(), actor.UserID
		if actor.Anonymous() {
			f.By = "system"
		}
	}
	var dedupe *string
	if f.DedupeKey != "" {
		namespace := f.Namespace
		if namespace == "" {
			namespace = f.Source
			if !slices.Contains(own(), namespace) {
				namespace = FromAPI
			}
		}
		key := namespace + ":" + f.DedupeKey
		dedupe = &key
		if r, ok, err := byDedupe.Maybe(tx, tx.Account, key); err != nil {
			return r, ok, err
		} else if ok {
			r, err = repeated(tx, r, f.Again)
			return r, true, err
		}
	}
	if len(f.RepoIDs) > maxReach {
		return row{}, false, fault.Newf(fault.Invalid, "", "An ask is about at most %d repositories.", maxReach)
	}
	r := row{
		ID: id.New(), AccountID: tx.Account, Reach: db.JSON[[]string]{V: append([]string{}, f.RepoIDs...)},
		Title: clip(oneLine(f.Title), maxTitle),
		Body:  clip(f.Body, maxBody), Source: f.Source, Labels: db.JSON[map[string]string]{V: f.Labels}, State: Pending, FiledBy: f.By,
		Scopes: db.JSON[[]string]{V: f.Scopes.Names()}, Depth: f.depth, CreatedAt: tx.Now,
	}
	if r.Labels.V == nil {
		r.Labels.V = map[string]string{}
	}
	if len(f.RepoIDs) == 1 {
		r.RepoID = &f.RepoIDs[0]
	}
	if f.DedupeKey != "" {
		r.DedupeKey = &f.DedupeKey
	}
	r.FilerID, r.RunID, r.RequestedBy = db.NullText(f.UserID), db.NullText(f.runID), db.NullText(f.UserID)
	if f.RequestedBy != nil {
		r.RequestedBy = db.NullText(*f.RequestedBy)
	}
	n, err := insert.Exec(tx, insertArgs{row: r, Dedupe: dedupe, DueAt: tx.Now})
	if err != nil {
		return row{}, false, err
	}
	if n == 0 { // another transaction filed the same at this moment
		r, err := byDedupe.One(tx, tx.Account, dedupe)
		if err == nil {
			r, err = repeated(tx, r, f.Again)
		}
		return r, true, err
	}
	if r, err = byID.One(tx, tx.Account, r.ID); err != nil {
		return row{}, false, err
	}
	hub.Notify(tx, event.AskTopic)
	data := filedData{FiledBy: r.FiledBy, Source: r.Source, Title: r.Title}
	return r, false, filedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, data)
}

// repeated counts that an ask was asked for again, and records each doubling of the
// count.
func repeated(tx *db.Tx, r row, again bool) (row, error) {
	if !again {
		return r, nil
	}
	if _, err := seenAgain.Exec(tx, tx.Account, r.ID, tx.Micros()); err != nil {
		return r, err
	}
	r, err := byID.One(tx, tx.Account, r.ID)
	if err != nil || r.Count&(r.Count-1) != 0 {
		return r, err
	}
	return r, repeatedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, repeatedData{Count: r.Count})
}

// OfRun is an ask that an agent declared in a run.
type OfRun struct {
	RunID     string
	RepoID    string  // repository of the run
	AskID     *string // the ask that the run's task answers
	By        *string // the person whose work the run's task is; nil: nobody's
	ID        string  // id of the declaration, unique in the run
	Title     string
	Body      string
	Repo      string // owner/name; the run's own when empty
	DedupeKey string
}

// FileOfRun files the declaration of an agent, once for each. The ask may do no
// more than the agent's task: it may reach a repository of the same account.
// For a repository that the account lacks, and beyond maxDepth, the ask becomes
// a question to a person. Declarations beyond maxOfRun, and those without a
// title, are dropped.
func (s *Service) FileOfRun(tx *db.Tx, o OfRun) error {
	n, err := countOfRun.One(tx, tx.Account, o.RunID)
	if err != nil || n >= maxOfRun || strings.TrimSpace(o.Title) == "" {
		return err
	}
	f := Filing{
		RepoIDs: []string{o.RepoID}, Title: o.Title, Body: o.Body, Source: FromRun, By: "run:" + o.RunID,
		Scopes:    policy.Scopes(policy.WriteTasks),
		DedupeKey: clip(oneLine(o.ID), maxTitle), Namespace: FromRun + ":" + o.RunID, runID: o.RunID, depth: 1, RequestedBy: new(string),
	}
	if o.By != nil {
		f.RequestedBy = o.By
	}
	if o.DedupeKey != "" {
		// Later runs in the repository, and retries, may declare the same.
		f.DedupeKey, f.Namespace = clip(oneLine(o.DedupeKey), maxTitle), FromRun+":"+o.RepoID
	}
	if o.AskID != nil {
		d, ok, err := depthOf.Maybe(tx, tx.Account, *o.AskID)
		if err != nil {
			return err
		}
		if ok {
			f.depth = d + 1
		}
	}
	reason, why := "", ""
	if o.Repo != "" {
		owner, name, _ := strings.Cut(o.Repo, "/")
		switch other, ok, err := repoByName.Maybe(tx, tx.Account, owner, name); {
		case err != nil:
			return err
		case ok:
			f.RepoIDs = []string{other.ID}
		default:
			reason, why = UnknownRepository, fmt.Sprintf("An agent asks for work in %q, which is no repository of this account.",
				clip(oneLine(o.Repo), maxTitle))
		}
	}
	if reason == "" && f.depth > maxDepth {
		reason, why = ChainTooLong, fmt.Sprintf("An agent asks for work that follows from %d asks of agents before it.", maxDepth)
	}
	r, existing, err := file(tx, s.Hub, f)
	if err != nil || existing || reason == "" {
		return err
	}
	return s.escalate(tx, &r, reason, why)
}

// clip cuts text to max characters and replaces what no database stores.
func clip(text string, max int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}

// oneLine replaces every run of white space by one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
