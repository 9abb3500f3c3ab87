package pull

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// Protected is what a merge would change that a person is always asked about:
// the folder .svc, and the paths that the account protects. It is read from git
// at the code host; what a box says of its work counts for nothing here.
type Protected struct {
	_         struct{}         `doc:"What a merge would change that a person is always asked about." schema:"Protected"`
	Paths     []string         `json:"paths" example:"[\".svc/policy.yml\"]" doc:"that would change, at most 50; bytes that are no text are quoted"`
	More      int              `json:"more" example:"0" doc:"how many paths beyond those"`
	Weaker    []repo.Weakening `json:"weaker" doc:"the fields of the policy file that would hold agents less, or tell them something else"`
	Problem   *string          `json:"problem" example:"null" doc:"why the policy file would not be valid, so that the defaults would be in force; null: it would be"`
	PolicySHA *string          `json:"policy_sha" doc:"the blob of the policy file as it would be; null: there would be none"`
}

// maxPaths is how many paths a question lists.
const maxPaths = 50

// maxNamed is how many paths, and how many fields, a question says in words.
const maxNamed = 20

// looked is what a merge would do.
type looked struct {
	base      string     // the base that it was tried on
	done      bool       // it is in the base already
	protected *Protected // nil: nothing that is protected
}

// look tries the merge of a head.
func (s *Service) look(ctx context.Context, r repo.Ref, baseRef, head string) (looked, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return looked{}, err
	}
	o, err := host.Outcome(ctx, r.HostRepo(), baseRef, head)
	if err != nil {
		return looked{}, fmt.Errorf("look at what %s would change: %w", head, err)
	}
	out := looked{base: o.BaseSHA, done: o.Tree == o.BaseSHA}
	var p Protected
	for _, c := range o.Changes {
		switch {
		case !r.Floors.Protects(c.Path, c.Link):
		case len(p.Paths) < maxPaths:
			p.Paths = append(p.Paths, printable(c.Path))
		default:
			p.More++
		}
	}
	if len(p.Paths) == 0 {
		return out, nil
	}
	was, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.BaseSHA)
	if err != nil {
		return looked{}, fmt.Errorf("read the policy file at %s: %w", o.BaseSHA, err)
	}
	would, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.Tree)
	if err != nil {
		return looked{}, fmt.Errorf("read the policy file at %s: %w", o.Tree, err)
	}
	p.Weaker = append([]repo.Weakening{}, repo.Weaker(was.Policy, would.Policy)...)
	if would.Text != nil {
		p.PolicySHA = &would.SHA
	}
	if would.Problem != nil {
		text := strings.Join(strings.FieldsFunc(*would.Problem, func(r rune) bool { return !strconv.IsPrint(r) }), "; ")
		p.Problem = &text
	}
	out.protected = &p
	return out, nil
}

// printable is a path as text: as it is, or quoted where it is none.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// unprintable is what printable answered path for.
func unprintable(path string) string {
	if s, err := strconv.Unquote(path); err == nil {
		return s
	}
	return path
}

// words are the names of a question: all of them, or the first.
func words(all []string, more int) string {
	if over := len(all) - maxNamed; over > 0 {
		all, more = all[:maxNamed], more+over
	}
	text := strings.Join(all, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// question asks a person in words.
func (p *Protected) question() string {
	if p == nil {
		return "Merge this head?"
	}
	text := "Merge this head, although it changes what is protected: " + words(p.Paths, p.More) + "?"
	if p.Problem != nil {
		text += " The policy file would not be valid, and the defaults would be in force: " + *p.Problem + "."
	}
	if len(p.Weaker) > 0 {
		names := make([]string, len(p.Weaker))
		for i, w := range p.Weaker {
			names[i] = w.String()
		}
		text += " Of the policy would change: " + words(names, 0) + "."
	}
	return text
}

// told tells whether who approved a was asked about what the merge would
// change as it stands.
func (a actionRow) told(p *Protected) bool {
	return p == nil || a.Protected != nil && reflect.DeepEqual(a.Protected.V, *p)
}

// askAbout puts what is protected to a person: to the open question of the
// head, or as a new one in the place of an order that no person gave with
// knowledge of it. It is called with the pull request locked.
func (s *Service) askAbout(tx *db.Tx, pr row, p *Protected) error {
	a, open, err := openAction.Maybe(tx, pr.ID)
	if err != nil || open && a.told(p) {
		return err
	}
	if open {
		if _, err := replaced.Exec(tx, a.ID, tx.Micros()); err != nil {
			return err
		}
	}
	return s.question(tx, pr, p)
}

// question asks a person about a head.
func (s *Service) question(tx *db.Tx, pr row, p *Protected) error {
	actionID := id.New()
	var stored *db.JSON[Protected]
	weaker := []string{}
	if p != nil {
		stored = &db.JSON[Protected]{V: *p}
		for _, w := range p.Weaker {
			weaker = append(weaker, w.Field)
		}
	}
	n, err := insertAction.Exec(tx, insertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: "merge", HeadSHA: pr.HeadSHA, State: ActionPending,
		DecidedBy: nil, RequestedAt: tx.Micros(), DecidedAt: nil, ExpiresAt: db.Micros(tx.Now.Add(askFor)),
		Protected: stored,
	})
	if err != nil || n == 0 {
		return err
	}
	if err := s.waits(tx, pr, NeedsDecision); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	data := askedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID}
	if p != nil {
		data.Protected, data.Weaker = p.Paths, weaker
	}
	return askedEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID}, data)
}

// lookAtHead looks at a head that passed since the last pass.
func (s *Service) lookAtHead(ctx context.Context, d unlookedRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	l, err := s.look(ctx, r, d.BaseRef, d.HeadSHA)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	gone := err != nil
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := lock(tx, d.ID)
		if err != nil || !ok || pr.State != Open || pr.HeadSHA != d.HeadSHA || !passed(pr.Checks) || pr.AbandonedAt != nil {
			return err
		}
		if _, err := setLooked.Exec(tx, pr.ID, pr.HeadSHA); err != nil {
			return err
		}
		if gone || l.protected == nil {
			return nil
		}
		return s.askAbout(tx, pr, l.protected)
	})
}
