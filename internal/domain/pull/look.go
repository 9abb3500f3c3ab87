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

// Protected are the changes of a merge that a person is always asked about: changes in
// the folder .svc, and in the paths that the account protects, and what the merge would
// bring back that was dropped. They are read from git at the code host, never from
// the report of a box.
type Protected struct {
	_         struct{}         `doc:"What a merge would change that a person is always asked about." schema:"Protected"`
	Paths     []string         `json:"paths" example:"[\".svc/policy.yml\"]" doc:"that would change, at most 50; bytes that are no text are quoted"`
	More      int              `json:"more" example:"0" doc:"how many paths beyond those"`
	Weaker    []repo.Weakening `json:"weaker" doc:"the fields of the policy file that would hold agents less, or tell them something else"`
	Problem   *string          `json:"problem" example:"null" doc:"why the policy file would not be valid, so that the defaults would be in force; null: it would be"`
	PolicySHA *string          `json:"policy_sha" doc:"the blob of the policy file as it would be; null: there would be none, or no path is protected"`
	Back      *Back            `json:"back" example:"null" doc:"what the merge would bring back that was dropped; null: nothing"`
}

// maxPaths limits the paths that a question lists.
const maxPaths = 50

// maxNamed limits the paths, and the fields, that the sentence of a question names.
const maxNamed = 20

// trial is the result of a merge that was tried without moving a ref.
type trial struct {
	base      string     // the commit of the base
	tree      string     // the content that the base would have
	landed    []string   // heads that the base has by other commits, which the merge has to know of
	done      bool       // the base contains the head already
	protected *Protected // nil: the merge would change nothing that is protected
}

// tryMerge tries the merge of a head. It fails with the errors of the host.
func (s *Service) tryMerge(ctx context.Context, r repo.Ref, a attempt) (trial, error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return trial{}, err
	}
	o, landed, err := s.tried(ctx, r, a)
	if err != nil {
		return trial{}, fmt.Errorf("look at what %s would change: %w", a.Head, err)
	}
	out := trial{base: o.BaseSHA, tree: o.Tree, landed: landed, done: o.Tree == o.BaseSHA}
	p := Protected{Paths: []string{}, Weaker: []repo.Weakening{}, Back: back(r, o)}
	for _, c := range o.Changes {
		switch {
		case !r.Floors.Protects(c.Path, c.Link):
		case len(p.Paths) < maxPaths:
			p.Paths = append(p.Paths, codehost.Legible(c.Path))
		default:
			p.More++
		}
	}
	if len(p.Paths) == 0 {
		if p.Back != nil {
			out.protected = &p
		}
		return out, nil
	}
	was, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.BaseSHA)
	if err != nil {
		return trial{}, fmt.Errorf("read the policy file at %s: %w", o.BaseSHA, err)
	}
	would, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.Tree)
	if err != nil {
		return trial{}, fmt.Errorf("read the policy file at %s: %w", o.Tree, err)
	}
	p.Weaker = append([]repo.Weakening{}, repo.Weaker(was.Over(r.Defaults), would.Over(r.Defaults))...)
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

// illegible is the inverse of codehost.Legible.
func illegible(path string) string {
	if s, err := strconv.Unquote(path); err == nil {
		return s
	}
	return path
}

// enumerate joins the names of a question, at most maxNamed. more is the number of names
// that all does not have.
func enumerate(all []string, more int) string {
	if over := len(all) - maxNamed; over > 0 {
		all, more = all[:maxNamed], more+over
	}
	text := strings.Join(all, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// question is the sentence that a person is asked. dropped is the task whose work is brought
// along although it was dropped; "": there is none.
func (p *Protected) question(dropped string) string {
	var although []string
	if dropped != "" {
		although = append(although, "it contains the work of the task "+dropped+", which was dropped")
	}
	if p != nil && len(p.Paths) > 0 {
		although = append(although, "it changes what is protected: "+enumerate(p.Paths, p.More))
	}
	if p != nil && p.Back != nil {
		although = append(although, "it would bring back what was dropped: "+p.Back.said())
	}
	if len(although) == 0 {
		return "Merge this head?"
	}
	text := "Merge this head, although " + strings.Join(although, ", and ") + "?"
	if p == nil {
		return text
	}
	if p.Problem != nil {
		text += " The policy file would not be valid, and the defaults would be in force: " + *p.Problem + "."
	}
	if len(p.Weaker) > 0 {
		names := make([]string, len(p.Weaker))
		for i, w := range p.Weaker {
			names[i] = w.String()
		}
		text += " Of the policy would change: " + enumerate(names, 0) + "."
	}
	return text
}

// names tells whether a question names what a person is always asked about: protected
// changes, or work that was dropped.
func (a actionRow) names() bool { return a.Protected != nil || a.Details.V.Dropped != "" }

// covers tells whether the question a named all protected changes p of the merge.
func (a actionRow) covers(p *Protected) bool {
	return p == nil || a.Protected != nil && reflect.DeepEqual(a.Protected.V, *p)
}

// askAbout asks a person about protected changes, unless the open action of the head
// covers them. The new question replaces the open action. The pull request is locked.
func (s *Service) askAbout(tx *db.Tx, pr *row, p *Protected) error {
	a, open, err := openAction.Maybe(tx, pr.ID)
	if err != nil || open && a.covers(p) {
		return err
	}
	if open {
		if err := s.replace(tx, pr, a); err != nil {
			return err
		}
	}
	return s.question(tx, pr, p)
}

// question asks a person about a head.
func (s *Service) question(tx *db.Tx, pr *row, p *Protected) error {
	below, over, err := s.below(tx, pr)
	if err != nil {
		return err
	}
	dropped := ""
	if over {
		dropped = below
	}
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
		Protected: stored, Details: db.JSON[Details]{V: Details{Dropped: dropped}},
	})
	if err != nil || n == 0 {
		return err
	}
	if err := notCarried(tx, pr); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	data := askedData{HeadSHA: pr.HeadSHA, Kind: "merge", PRID: pr.ID}
	if p != nil {
		if p.Back != nil {
			data.Back = p.Back.Paths
		}
		if len(p.Paths) > 0 {
			data.Protected, data.Weaker = p.Paths, weaker
		}
	}
	return AskedEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID}, data)
}

// lookAtHead tries the merge of a head that has passed its checks, and asks a person if
// the merge would change protected paths.
func (s *Service) lookAtHead(ctx context.Context, d unlookedRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	l, err := s.tryMerge(ctx, r, attempt{d.BaseRef, d.HeadSHA, d.StartSHA, d.Had.V})
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	gone := err != nil
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := lock(tx, d.ID)
		if err != nil || !ok || pr.State != Open || pr.HeadSHA != d.HeadSHA || !passed(pr.Checks) || pr.AbandonedAt != nil {
			return err
		}
		pr.LookedSHA = pr.HeadSHA
		if err := save(tx, pr); err != nil {
			return err
		}
		if gone || l.protected == nil || pr.Watch == WatchOff {
			return tellTried(tx, pr.ID)
		}
		if err := s.askAbout(tx, pr, l.protected); err != nil {
			return err
		}
		if err := s.move(tx, pr); err != nil {
			return err
		}
		return tellTried(tx, pr.ID)
	})
}

// tellTried tells that the merge that an open question is about was tried.
func tellTried(tx *db.Tx, prID string) error {
	a, open, err := openAction.Maybe(tx, prID)
	if err != nil || !open {
		return err
	}
	return MergeTried.Send(tx, a.ID)
}
