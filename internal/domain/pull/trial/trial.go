// Package trial reads what git at a code host says of a pull request: how its branch stands to
// its base, what its merge would do, and whether a merge that was made is the one that was
// tried. It moves no ref and writes no row.
package trial

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// Trials tries merges.
type Trials struct {
	db    *db.DB
	hosts *codehost.Hosts
}

// New makes Trials at hosts. d knows which heads were merged.
func New(d *db.DB, hosts *codehost.Hosts) *Trials { return &Trials{db: d, hosts: hosts} }

// Trial is the result of a merge that was tried without moving a ref.
type Trial struct {
	Base      string            // the commit of the base
	Tree      string            // the content that the base would have
	Landed    []string          // heads that the base has by other commits, which the merge has to know of
	Done      bool              // the base contains the head already
	Protected *record.Protected // nil: the merge would change nothing that is protected
}

// Try tries the merge of a head. It fails with the errors of the host.
func (s *Trials) Try(ctx context.Context, r repo.Ref, a record.Attempt) (Trial, error) {
	host, err := s.hosts.Of(r.HostRepo())
	if err != nil {
		return Trial{}, err
	}
	o, landed, err := s.tried(ctx, r, a)
	if err != nil {
		return Trial{}, fmt.Errorf("look at what %s would change: %w", a.Head, err)
	}
	out := Trial{Base: o.BaseSHA, Tree: o.Tree, Landed: landed, Done: o.Tree == o.BaseSHA}
	p := record.Protected{Paths: []string{}, Weaker: []repo.Weakening{}, Back: back(r, o)}
	for _, c := range o.Changes {
		switch {
		case !r.Floors.Protects(c.Path, c.Link):
		case len(p.Paths) < record.MaxPaths:
			p.Paths = append(p.Paths, codehost.Legible(c.Path))
		default:
			p.More++
		}
	}
	if len(p.Paths) == 0 {
		if p.Back != nil {
			out.Protected = &p
		}
		return out, nil
	}
	was, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.BaseSHA)
	if err != nil {
		return Trial{}, fmt.Errorf("read the policy file at %s: %w", o.BaseSHA, err)
	}
	would, err := repo.PolicyAt(ctx, host, r.HostRepo(), o.Tree)
	if err != nil {
		return Trial{}, fmt.Errorf("read the policy file at %s: %w", o.Tree, err)
	}
	p.Weaker = append([]repo.Weakening{}, repo.Weaker(was.Over(r.Defaults), would.Over(r.Defaults))...)
	if would.Text != nil {
		p.PolicySHA = &would.SHA
	}
	if would.Problem != nil {
		text := strings.Join(strings.FieldsFunc(*would.Problem, func(r rune) bool { return !strconv.IsPrint(r) }), "; ")
		p.Problem = &text
	}
	out.Protected = &p
	return out, nil
}

// tried tries a merge at the code host. It fails with the errors of the host.
func (s *Trials) tried(ctx context.Context, r repo.Ref, a record.Attempt) (o codehost.Outcome, landed []string, err error) {
	host, err := s.hosts.Of(r.HostRepo())
	if err != nil {
		return o, nil, err
	}
	if landed, err = s.landed(ctx, r, a); err != nil {
		return o, nil, err
	}
	o, err = host.Outcome(ctx, r.HostRepo(), codehost.OutcomeOptions{Base: a.BaseRef, Head: a.Head, Landed: landed, Had: a.Had})
	return o, landed, err
}

// landed are the heads that are known to have been merged into the base of an attempt,
// maybe by other commits than their own. Of what the server has merged itself, git tells.
func (s *Trials) landed(ctx context.Context, r repo.Ref, a record.Attempt) (heads []string, err error) {
	if a.StartSHA != "" {
		heads = append(heads, a.StartSHA)
	}
	if !s.Kept(r) {
		return heads, nil
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		merged, err := record.MergedHeads.All(tx, r.ID, a.BaseRef)
		heads = append(heads, merged...)
		return err
	})
	return heads, err
}

// Otherwise says how what a merge has made differs from its trial; "" if it does not.
func (s *Trials) Otherwise(ctx context.Context, r repo.Ref, a record.Attempt, t Trial, sha string) (string, error) {
	host, err := s.hosts.Of(r.HostRepo())
	if err != nil || sha == a.Head {
		return "", err // the base was moved to the head itself
	}
	tree := t.Tree
	if t.Done {
		tree = ""
	}
	m, err := host.Made(ctx, r.HostRepo(), sha, tree)
	if err != nil || len(m.Parents) == 0 {
		return "", err
	}
	if t.Done && len(m.Parents) > 1 && m.Parents[1] != a.Head {
		return "", nil // the base has the head through another branch
	}
	if tree == "" || m.Parents[0] != t.Base {
		if tree, err = s.treeAt(ctx, r, a, m.Parents[0]); err != nil || tree == "" {
			return "", err
		}
		if m, err = host.Made(ctx, r.HostRepo(), sha, tree); err != nil {
			return "", err
		}
	}
	if len(m.Differs) == 0 {
		return "", nil
	}
	paths := make([]string, len(m.Differs))
	for i, path := range m.Differs {
		paths[i] = codehost.Legible(path)
	}
	return fmt.Sprintf("The base has other content after the merge %.12s than the merge that was tried: %s.", sha, record.Enumerate(paths, 0)), nil
}

// treeAt is the content that a merge would have given a commit of the base; "" if the two
// conflict, so that somebody has resolved it by hand.
func (s *Trials) treeAt(ctx context.Context, r repo.Ref, a record.Attempt, base string) (string, error) {
	a.BaseRef, a.Had = base, nil
	o, _, err := s.tried(ctx, r, a)
	if err != nil || o.Conflict {
		return "", err
	}
	if o.Tree != o.BaseSHA {
		return o.Tree, nil
	}
	host, err := s.hosts.Of(r.HostRepo())
	if err != nil {
		return "", err
	}
	m, err := host.Made(ctx, r.HostRepo(), base, "")
	return m.Tree, err
}
