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

// What an ask may hold, in characters.
const (
	maxTitle = 200
	maxBody  = 20_000
	maxReach = 50 // repositories
)

// maxDepth is how many asks of agents may follow one another before a person
// is asked whether this leads anywhere.
const maxDepth = 3

// maxOfRun is how many asks one run may file.
const maxOfRun = 20

// Filing is an ask to be filed in tx.Account.
type Filing struct {
	RepoIDs   []string // the repositories that it is about; none: any of the account's
	Title     string   // one line
	Body      string
	Source    string // FromAPI when empty
	Labels    map[string]string
	DedupeKey string // empty: it is nobody's duplicate
	// Room is whose keys DedupeKey is one of; two rooms never collide. The
	// source when empty.
	Room string
	// Scopes are what the filer may do, and so the most that a verdict is.
	Scopes policy.Set
	// By names the filer, and UserID, if there is one, the person. The actor of
	// the transaction when both are empty.
	By, UserID string
	// RequestedBy is the person at the beginning of the chain. Nil is whoever
	// files, and empty is nobody.
	RequestedBy *string

	runID string
	depth int64
}

// File files an ask, or answers the one that was filed with the same key
// before, whatever became of it. The judge looks at a new one after the commit.
func (s *Service) File(tx *db.Tx, f Filing) (a Ask, existing bool, err error) {
	return File(tx, s.Hub, f)
}

// File is Service.File for those who have no service: hub wakes the judge.
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
		room := f.Room
		if room == "" {
			room = f.Source
			if !slices.Contains([]string{FromRun, FromPlan, FromBlocker, FromInbound, FromBacklog}, room) {
				room = FromAPI
			}
		}
		key := room + ":" + f.DedupeKey
		dedupe = &key
		if r, ok, err := byDedupe.Maybe(tx, tx.Account, key); err != nil || ok {
			return r, ok, err
		}
	}
	if len(f.RepoIDs) > maxReach {
		return row{}, false, fault.Newf(fault.Invalid, "", "An ask is about at most %d repositories.", maxReach)
	}
	r := row{
		ID: id.New(), AccountID: tx.Account, Reach: db.JSON[[]string]{V: append([]string{}, f.RepoIDs...)}, Title: clip(oneLine(f.Title), maxTitle),
		Body: clip(f.Body, maxBody), Source: f.Source, Labels: db.JSON[map[string]string]{V: f.Labels}, State: Pending, FiledBy: f.By,
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
	if n == 0 { // a twin was filed at this very moment
		r, err := byDedupe.One(tx, tx.Account, dedupe)
		return r, true, err
	}
	if r, err = byID.One(tx, tx.Account, r.ID); err != nil {
		return row{}, false, err
	}
	hub.Notify(tx, event.AskTopic)
	data := filedData{FiledBy: r.FiledBy, Source: r.Source, Title: r.Title}
	return r, false, filedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, data)
}

// OfRun is an ask that an agent declared in a run.
type OfRun struct {
	RunID     string
	RepoID    string  // of the run
	AskID     *string // the ask that the run's task answers
	By        *string // the person whose work the run's task is; nil: nobody's
	ID        string  // of the declaration, unique in the run
	Title     string
	Body      string
	Repo      string // owner/name; the run's own when empty
	DedupeKey string
}

// FileOfRun files what an agent declared, once for each declaration. It may do
// no more than the agent's task may: reach a repository of the same account. A
// repository that the account lacks is a question to a person, and what is more
// than a run may file is dropped.
func (s *Service) FileOfRun(tx *db.Tx, o OfRun) error {
	n, err := countOfRun.One(tx, tx.Account, o.RunID)
	if err != nil || n >= maxOfRun || strings.TrimSpace(o.Title) == "" {
		return err
	}
	f := Filing{
		RepoIDs: []string{o.RepoID}, Title: o.Title, Body: o.Body, Source: FromRun, By: "run:" + o.RunID, Scopes: policy.Scopes(policy.WriteTasks),
		DedupeKey: clip(oneLine(o.ID), maxTitle), Room: FromRun + ":" + o.RunID, runID: o.RunID, depth: 1, RequestedBy: new(string),
	}
	if o.By != nil {
		f.RequestedBy = o.By
	}
	if o.DedupeKey != "" {
		// Later runs in the repository declare the same, and a retry does.
		f.DedupeKey, f.Room = clip(oneLine(o.DedupeKey), maxTitle), FromRun+":"+o.RepoID
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
			reason, why = UnknownRepository, fmt.Sprintf("An agent asks for work in %q, which is no repository of this account.", clip(oneLine(o.Repo), maxTitle))
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

// clip cuts text to max characters, and takes out what no database keeps.
func clip(text string, max int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}

// oneLine puts a space for every run of white space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
