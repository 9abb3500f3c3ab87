package talk

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

func (t threadRow) wire(comments []commentRow) Thread {
	out := Thread{ID: t.ID, PRID: t.PRID, RequestID: t.RequestID, HeadSHA: &t.HeadSHA, State: Open, ResolvedBy: t.ResolvedBy,
		ResolvedSHA: t.ResolvedSHA, ResolvedAt: t.ResolvedAt, Comments: []Comment{}, CreatedAt: t.CreatedAt}
	if t.Path != "" {
		out.Path, out.Line, out.Side = &t.Path, &t.Line, (*codehost.Side)(&t.Side)
	}
	if t.ResolvedAt != nil {
		out.State = Resolved
	}
	for _, c := range comments {
		out.Comments = append(out.Comments, Comment{ID: c.ID, Author: c.Author, Body: c.Body, CreatedAt: c.CreatedAt})
	}
	return out
}

type listIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the pull request"`
	op.PageIn
}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Thread], err error) {
	var p Pull
	var r repo.Ref
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		if p, ok, err = s.get(tx, in.ID); err != nil || !ok {
			return err
		}
		if r, _, err = repo.ByID(tx, p.RepoID); err != nil || s.kept(r) {
			return err
		}
		rows, err := threads(tx, p.ID, in.PageIn)
		if err != nil {
			return err
		}
		page := op.NewPage(in.PageIn, rows, func(t threadRow) []string { return op.TimeKey(t.CreatedAt, t.ID) })
		out.NextCursor = page.NextCursor
		out.Data, err = withComments(tx, page.Data)
		return err
	})
	if err != nil || !s.kept(r) {
		return out, err
	}
	return s.elsewhere(ctx, r, p, in.PageIn)
}

// get reads a pull request. It fails with fault.NotFound.
func (s *Service) get(tx *db.Tx, prID string) (p Pull, ok bool, err error) {
	if id.Valid(prID) {
		p, ok, err = s.Pulls.Get(tx, prID)
	}
	if err == nil && !ok {
		err = fault.Missing("pull request")
	}
	return p, ok, err
}

func withComments(tx *db.Tx, rows []threadRow) ([]Thread, error) {
	said, err := commentsOf(tx, rows)
	out := make([]Thread, len(rows))
	for i, t := range rows {
		out[i] = t.wire(said[t.ID])
	}
	return out, err
}

type commentIn struct {
	ID       string        `json:"id" format:"uuid" doc:"id of the pull request"`
	Body     string        `json:"body" example:"Why not the clock of the server?" doc:"what is said, at most 16 KiB"`
	ThreadID string        `json:"thread_id,omitempty" maxLength:"200" doc:"the thread that it answers"`
	HeadSHA  string        `json:"head_sha,omitempty" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that was looked at: another one is refused; the present one unless sent"`
	Path     string        `json:"path,omitempty" maxLength:"4096" doc:"a file of the diff"`
	Line     int           `json:"line,omitempty" minimum:"1" doc:"that the diff shows"`
	Side     codehost.Side `json:"side,omitempty" doc:"LEFT: of the file before; RIGHT unless sent"`
}

// check fails with a fault on the first field that makes no sense.
func (in commentIn) check() (place, error) {
	at := place{Path: in.Path, Side: string(in.Side), Line: in.Line}
	if err := checkBody("body", in.Body); err != nil {
		return at, err
	}
	if err := at.check(""); err != nil {
		return at, err
	}
	if in.ThreadID != "" && at.Path != "" {
		return at, fault.Field("path", "is for a new thread")
	}
	return at, nil
}

func (s *Service) comment(ctx context.Context, in commentIn) (out Thread, err error) {
	at, err := in.check()
	if err != nil {
		return out, err
	}
	if at.Path != "" && in.HeadSHA == "" {
		if err := s.DB.Read(ctx, func(tx *db.Tx) error {
			p, _, err := s.get(tx, in.ID)
			in.HeadSHA = p.HeadSHA
			return err
		}); err != nil {
			return out, err
		}
	}
	if err := s.checkPlaces(ctx, in.ID, in.HeadSHA, []place{at}, func(int) string { return "" }); err != nil {
		return out, err
	}
	there, err := s.threadThere(ctx, in)
	if err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, err := s.pull(tx, in.ID, in.HeadSHA)
		if err != nil {
			return err
		}
		label := policy.From(ctx).Label()
		switch {
		case in.ThreadID == "" || there:
			t := threadRow{PRID: p.ID, RepoID: p.RepoID, HeadSHA: p.HeadSHA, Path: at.Path, Side: at.Side, Line: at.Line}
			if there {
				t.HostThread = in.ThreadID
			}
			out, err = begin(tx, t, label, in.Body)
		default:
			out, err = s.reply(tx, p, in, label)
		}
		if err != nil {
			return err
		}
		said := Said{CommentID: out.Comments[len(out.Comments)-1].ID, OnLine: out.Path != nil, PRID: p.ID, ThreadID: out.ID}
		if err := CommentedEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, said); err != nil {
			return err
		}
		return s.post(tx, p, in, at, out.ID)
	})
	return out, err
}

// reply adds a comment to a thread that is here.
func (s *Service) reply(tx *db.Tx, p Pull, in commentIn, label string) (Thread, error) {
	t, err := thread(tx, p.ID, in.ThreadID)
	if err != nil {
		return Thread{}, err
	}
	if t.Comments >= maxComments || t.Size+int64(len(in.Body)) > maxThread {
		return Thread{}, fault.Reason("thread_full", "The thread has all the comments that one may have. Begin another one.")
	}
	if _, err := add(tx, t, label, in.Body); err != nil {
		return Thread{}, err
	}
	return oneThread(tx, t)
}

// thread reads a thread of a pull request. It fails with fault.NotFound.
func thread(tx *db.Tx, prID, threadID string) (t threadRow, err error) {
	ok := false
	if id.Valid(threadID) {
		t, ok, err = threadOf.Maybe(tx, tx.Account, prID, threadID)
	}
	if err == nil && !ok {
		err = fault.Missing("thread")
	}
	return t, err
}

func oneThread(tx *db.Tx, t threadRow) (Thread, error) {
	all, err := withComments(tx, []threadRow{t})
	return all[0], err
}

type resolveIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the pull request"`
	ThreadID string `json:"thread_id" maxLength:"200" doc:"id of the thread"`
	Reopen   bool   `json:"reopen,omitempty" doc:"open it again"`
}

func (s *Service) resolve(ctx context.Context, in resolveIn) (out Thread, err error) {
	there, found, err := s.resolvable(ctx, in)
	if err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, _, err := s.get(tx, in.ID)
		if err != nil {
			return err
		}
		label := policy.From(ctx).Label()
		if found {
			out = there
			out.State = Open
			if !in.Reopen {
				out.State, out.ResolvedBy = Resolved, &label
			}
			if err := s.putResolve(tx, p, in.ThreadID, !in.Reopen); err != nil {
				return err
			}
			return ended(tx, p, in)
		}
		t, err := thread(tx, p.ID, in.ThreadID)
		if err != nil {
			return err
		}
		if (t.ResolvedAt == nil) != in.Reopen {
			now := endArgs{AccountID: tx.Account, ID: t.ID}
			if !in.Reopen {
				now.At, now.By = &tx.Now, &label
			}
			if _, err := setEnd.Exec(tx, now); err != nil {
				return err
			}
			if t, err = thread(tx, p.ID, in.ThreadID); err != nil {
				return err
			}
			if err := ended(tx, p, in); err != nil {
				return err
			}
		}
		out, err = oneThread(tx, t)
		return err
	})
	return out, err
}

// ended records that a person has resolved a thread, or opened it again.
func ended(tx *db.Tx, p Pull, in resolveIn) error {
	kind := resolvedEvent
	if in.Reopen {
		kind = reopenedEvent
	}
	return kind.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID}, endedData{PRID: p.ID, ThreadID: in.ThreadID})
}

// Text is a comment of tx.Account for a notice; "" if there is none.
func Text(tx *db.Tx, commentID string) (string, error) {
	c, _, err := bodyOf.Maybe(tx, tx.Account, commentID)
	return c.Body, err
}

// Speakers are the labels of those who have said something about a pull request here.
func Speakers(tx *db.Tx, prID string) ([]string, error) { return speakers.All(tx, tx.Account, prID) }

// TextOf is the first text of a request of tx.Account for a notice; "" if there is none.
func TextOf(tx *db.Tx, requestID string) (string, error) {
	rows, err := ofRequest.All(tx, tx.Account, requestID)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	said, err := commentsOf(tx, rows[:1])
	if err != nil || len(said[rows[0].ID]) == 0 {
		return "", err
	}
	return said[rows[0].ID][0].Body, nil
}
