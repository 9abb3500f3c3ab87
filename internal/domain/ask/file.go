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
	"yardmaster/internal/reach"
)

// The limits of an ask, in characters, and of its repositories.
const (
	maxTitle = 200
	maxBody  = 20_000
	maxReach = 50 // repositories
)

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
	// Strangers says that the ask has text of people or systems who may not write to the
	// repository.
	Strangers bool
	// Wait has a person asked at once, whom Approve waits for. Nil: a judge reads the ask.
	Wait *Wait
	// IssueID and IssueURL are the issue of the code host that follows the ask, and its
	// address there; empty: none.
	IssueID, IssueURL string
	// From is the run from which the ask comes; nil: it comes from none. All tasks that are
	// minted for the asks of the runs of a task have the limit of that task together. An ask
	// that follows from more than maxDepth others waits for a person.
	From *Origin

	// apart says that what waits for a person takes no key from what does not.
	apart bool
}

// Wait says why an ask waits for a person: a slug, and a sentence for people.
type Wait struct{ Reason, Why string }

// File files an ask. If there is one with the same key, File returns that, in
// whatever state it is, with existing true. A judge reads a new ask after the
// commit. File returns fault.Invalid for more than 50 repositories.
func (s *Service) File(tx *db.Tx, f Filing) (a Ask, existing bool, err error) {
	return File(tx, f)
}

// File is Service.File for callers without a service.
func File(tx *db.Tx, f Filing) (a Ask, existing bool, err error) {
	r, existing, err := file(tx, f)
	return r.wire(), existing, err
}

func file(tx *db.Tx, f Filing) (row, bool, error) {
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
	var from Origin
	var depth int64
	if f.From != nil {
		from, depth = *f.From, 1
		f.Strangers = f.Strangers || from.Text != reach.Account
		if from.AskID != nil {
			before, _, err := depthOf.Maybe(tx, tx.Account, *from.AskID)
			if err != nil {
				return row{}, false, err
			}
			depth += before
		}
		if f.Wait == nil && depth > maxDepth {
			f.Wait = &Wait{ChainTooLong, fmt.Sprintf("%s that follows from %d asks of agents before it.", from.says(), maxDepth)}
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
		if f.apart && f.Wait != nil {
			namespace += ":" + f.Wait.Reason + ":" + f.RepoIDs[0]
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
		Scopes: db.JSON[[]string]{V: f.Scopes.Names()}, Depth: depth, CreatedAt: tx.Now,
		Strangers: f.Strangers, BudgetMicros: from.BudgetMicros,
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
	r.FilerID, r.RunID, r.RequestedBy = db.NullText(f.UserID), db.NullText(from.RunID), db.NullText(f.UserID)
	r.FromTask = db.NullText(from.Serves)
	r.IssueID, r.IssueURL = db.NullText(f.IssueID), db.NullText(f.IssueURL)
	if f.RequestedBy != nil {
		r.RequestedBy = db.NullText(*f.RequestedBy)
	}
	n, err := insert.Exec(tx, insertArgs{row: r, Dedupe: dedupe})
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
	if f.Wait == nil {
		if err := TurnChanged.Send(tx, Turn{r.ID, true}); err != nil {
			return row{}, false, err
		}
	}
	data := filedData{FiledBy: r.FiledBy, Source: r.Source, Title: r.Title}
	err = filedEvent.Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, data)
	if err == nil && f.Wait != nil {
		err = escalate(tx, &r, f.Wait.Reason, f.Wait.Why)
	}
	return r, false, err
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
