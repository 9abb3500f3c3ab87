package inquiry

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/citation"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const (
	findTime = 10 * time.Second // for the lines of a page of answers
	mostOpen = 400              // files that are opened for them
)

// KeptAnswer is an answer that was given before.
type KeptAnswer struct {
	_        struct{}       `doc:"An answer that was given before, and where its lines are now." schema:"KeptAnswer"`
	ID       string         `json:"id" format:"uuid" doc:"its id"`
	Question string         `json:"question" example:"Which port does the server listen on?" doc:"what was asked"`
	AskedAt  time.Time      `json:"asked_at" doc:"when"`
	Answer   Answer         `json:"answer" doc:"the answer as it was given"`
	Head     *string        `json:"head" example:"487704ef85ae6bf9a93b5a2425bb7a8861a0690b" doc:"the commit of the default branch in which its lines were looked for; null: it could not be read"`
	Stale    bool           `json:"stale" doc:"the text of a citation is not found any more: ask again"`
	Now      []CitationMove `json:"now" doc:"where the lines of each citation are at head, in the order of answer.citations"`
}

// CitationMove is what became of a citation.
type CitationMove struct {
	_     struct{}      `doc:"Where the lines of a citation are now." schema:"AnswerCitationMove"`
	N     int           `json:"n" example:"1" doc:"the number of the citation"`
	State CitationState `json:"state" doc:"same: the lines stand where they stood; moved: they stand at cite; stale: they were edited or are gone, or stand in several places; unknown: the repository could not be looked through"`
	Cite  *string       `json:"cite" example:"server.go:14-16" doc:"where they are; null of stale and unknown"`
}

// CitationState is whether what a citation names is as it was.
type CitationState string

// The states of a citation.
const (
	stateSame    = "same"
	stateMoved   = "moved"
	stateStale   = "stale"
	stateUnknown = "unknown"
)

// Values lists all states.
func (CitationState) Values() []string {
	return []string{stateSame, stateMoved, stateStale, stateUnknown}
}

// asker is for whom answers are kept.
func asker(a policy.Actor) string {
	if a.UserID == "" {
		return "credential " + a.CredentialID
	}
	return "person " + a.UserID
}

// keepAnswer keeps an answer with what finds its lines again.
func (s *Service) keepAnswer(ctx context.Context, r repo.Ref, who, question string, shown *evidence, a Answer) error {
	marks := make([]*citation.Mark, len(a.Citations))
	for i, c := range a.Citations {
		marks[i] = shown.mark(citation.Place{Path: c.Path, From: c.Line, To: c.EndLine})
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := insert.Exec(tx, row{
			ID: id.New(), AccountID: tx.Account, RepoID: r.ID, Asker: who, Question: question, AskedAt: tx.Now,
			Answer: db.JSON[Answer]{V: a}, Marks: db.JSON[[]*citation.Mark]{V: marks},
		})
		if err == nil {
			_, err = forget.Exec(tx, r.ID, who)
		}
		return err
	})
}

type answersIn struct {
	op.PageIn
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" doc:"name of the repository"`
}

func (s *Service) answers(ctx context.Context, in answersIn) (out op.Page[KeptAnswer], err error) {
	var r repo.Ref
	var rows []row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, err = open(tx, in.Owner, in.Repo); err == nil {
			rows, err = kept(tx, r.ID, asker(policy.From(ctx)), in.After(), in.Size())
		}
		return err
	})
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	f := s.finder(ctx, r)
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return []string{r.ID} }, f.show), nil
}

// finder looks for the lines of answers at the head of the default branch.
type finder struct {
	ctx     context.Context
	r       repo.Ref
	host    codehost.Host
	in      codehost.Searcher
	head    codehost.Tree
	trees   map[string]*citation.Trees // by the commit of the answer
	paths   map[string][2]string       // commit and path of each blob
	files   map[string]*citation.File  // by blob
	unread  bool                       // something could not be read
	enabled bool
}

// finder makes one. It does not fail: of a repository that cannot be read nothing is known.
func (s *Service) finder(ctx context.Context, r repo.Ref) *finder {
	f := &finder{ctx: ctx, r: r, trees: map[string]*citation.Trees{}, paths: map[string][2]string{}, files: map[string]*citation.File{}}
	var err error
	if f.host, err = s.Hosts.Of(r.HostRepo()); err != nil {
		return f
	}
	in, able := f.host.(codehost.Searcher)
	if !able {
		return f
	}
	f.in = in
	sha, err := head(ctx, f.host, r)
	if err == nil && sha != "" {
		f.head, err = in.Tree(ctx, r.HostRepo(), sha)
	}
	f.enabled = err == nil && sha != "" && !f.head.Cut
	f.name(f.head)
	return f
}

// name notes where the blobs of a tree are read.
func (f *finder) name(t codehost.Tree) {
	for path, blob := range t.Files {
		f.paths[blob] = [2]string{t.Commit, path}
	}
}

// show is an answer with where its lines are now.
func (f *finder) show(r row) KeptAnswer {
	out := KeptAnswer{ID: r.ID, Question: r.Question, AskedAt: r.AskedAt, Answer: r.Answer.V, Now: []CitationMove{}}
	var trees *citation.Trees
	if f.enabled && out.Answer.Commit != nil {
		out.Head = &f.head.Commit
		trees = f.since(*out.Answer.Commit)
	}
	for i, c := range out.Answer.Citations {
		now := CitationMove{N: c.N, State: stateUnknown}
		if trees != nil && i < len(r.Marks.V) {
			now = f.find(trees, c, r.Marks.V[i])
		}
		out.Stale = out.Stale || now.State == stateStale
		out.Now = append(out.Now, now)
	}
	return out
}

// since are the files at a commit and at the head. nil: they could not be read.
func (f *finder) since(commit string) *citation.Trees {
	if t, known := f.trees[commit]; known {
		return t
	}
	t := &citation.Trees{New: f.head.Files, Open: f.open}
	old, err := f.in.Tree(f.ctx, f.r.HostRepo(), commit)
	if err == nil && !old.Cut {
		t.Old = old.Files
		for path, blob := range old.Files {
			if _, there := f.paths[blob]; !there {
				f.paths[blob] = [2]string{commit, path}
			}
		}
		t.Renamed, err = f.in.Renames(f.ctx, f.r.HostRepo(), commit, f.head.Commit)
	}
	if err != nil && !errors.Is(err, codehost.ErrNotFound) { // of a commit that is gone the marks are left
		t = nil
	}
	f.trees[commit] = t
	return t
}

// open reads a file by its blob; nil for what is no text or was not read.
func (f *finder) open(blob string) *citation.File {
	if file, known := f.files[blob]; known {
		return file
	}
	if len(f.files) >= mostOpen {
		f.unread = true
		return nil
	}
	at := f.paths[blob]
	content, _, err := f.host.ReadFile(f.ctx, f.r.HostRepo(), at[0], at[1])
	switch {
	case errors.Is(err, codehost.ErrTooLarge):
	case err != nil:
		f.unread = true
		return nil
	default:
		f.files[blob] = citationFile(content)
		return f.files[blob]
	}
	f.files[blob] = nil
	return nil
}

// find tells where the lines of a citation are.
func (f *finder) find(t *citation.Trees, c Citation, m *citation.Mark) CitationMove {
	now := CitationMove{N: c.N, State: stateUnknown}
	if m == nil {
		return now
	}
	f.unread = false
	state, place := t.Find(*m)
	switch {
	case f.unread:
		return now
	case place == citation.Place{}:
		now.State = stateStale
		return now
	case state == citation.Same:
		now.State = stateSame
	default:
		now.State = stateMoved
	}
	cite := place.String()
	now.Cite = &cite
	return now
}
