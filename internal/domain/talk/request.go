package talk

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

type lineNote struct {
	_    struct{}      `doc:"What is said about a line." schema:"LineNote"`
	Path string        `json:"path" minLength:"1" maxLength:"4096" example:"web/footer.go" doc:"a file of the diff"`
	Line int           `json:"line" minimum:"1" example:"12" doc:"that the diff shows"`
	Side codehost.Side `json:"side,omitempty" doc:"LEFT: of the file before; RIGHT unless sent"`
	Body string        `json:"body" example:"This is one too small." doc:"at most 16 KiB"`
}

type requestIn struct {
	ID       string     `json:"id" format:"uuid" doc:"id of the pull request"`
	HeadSHA  string     `json:"head_sha" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that was looked at; another one is refused"`
	Body     string     `json:"body,omitempty" example:"The year has to come from the server." doc:"what is requested, at most 16 KiB; may be left out with comments"`
	Comments []lineNote `json:"comments,omitempty" maxItems:"50" example:"[]" doc:"on lines; all texts together at most 48 KiB"`
}

// ChangeRequest is a request for changes, with its threads.
type ChangeRequest struct {
	_       struct{} `doc:"What a person requests of a pull request, which holds the merge." schema:"ChangeRequest"`
	ID      string   `json:"id" format:"uuid" doc:"id of the request"`
	PRID    string   `json:"pr_id" format:"uuid" doc:"the pull request"`
	HeadSHA string   `json:"head_sha" doc:"the head that was looked at"`
	Author  string   `json:"author" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who requests it"`
	Threads []Thread `json:"threads" doc:"the text on the whole, then those on lines"`
}

// check fails with a fault on the first field that makes no sense.
func (in requestIn) check() ([]place, error) {
	all := len(in.Body)
	if len(in.Comments) == 0 || in.Body != "" {
		if err := checkBody("body", in.Body); err != nil {
			return nil, err
		}
	}
	places := make([]place, len(in.Comments))
	for i, c := range in.Comments {
		field := "comments." + strconv.Itoa(i) + "."
		places[i] = place{Path: c.Path, Side: string(c.Side), Line: c.Line}
		if err := places[i].check(field); err != nil {
			return nil, err
		}
		if err := checkBody(field+"body", c.Body); err != nil {
			return nil, err
		}
		if all += len(c.Body); all > maxRequest {
			return nil, fault.Field(field+"body", fmt.Sprintf("is too much: all texts together have at most %d bytes", maxRequest))
		}
	}
	return places, nil
}

// words are the texts of a request as an agent reads them.
func (in requestIn) words(places []place) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(in.Body))
	for i, c := range in.Comments {
		where := fmt.Sprintf("%s:%d", c.Path, c.Line)
		if places[i].Side == codehost.SideBase {
			where += " before the change"
		}
		fmt.Fprintf(&b, "\n\n%s\n%s", where, strings.TrimSpace(c.Body))
	}
	return strings.TrimSpace(b.String())
}

func (s *Service) request(ctx context.Context, in requestIn) (out ChangeRequest, err error) {
	places, err := in.check()
	if err != nil {
		return out, err
	}
	field := func(i int) string { return "comments." + strconv.Itoa(i) + "." }
	if err := s.checkPlaces(ctx, in.ID, in.HeadSHA, places, field); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		p, err := s.pull(tx, in.ID, in.HeadSHA)
		if err != nil {
			return err
		}
		label := policy.From(ctx).Label()
		out = ChangeRequest{ID: id.New(), PRID: p.ID, HeadSHA: in.HeadSHA, Author: label}
		if err := s.Pulls.Request(tx, Words{ID: out.ID, PRID: p.ID, HeadSHA: in.HeadSHA, Text: in.words(places)}); err != nil {
			return err
		}
		add := func(at place, body string) error {
			t := threadRow{PRID: p.ID, RepoID: p.RepoID, RequestID: &out.ID, HeadSHA: in.HeadSHA,
				Path: at.Path, Side: at.Side, Line: at.Line}
			shown, err := begin(tx, t, label, body)
			out.Threads = append(out.Threads, shown)
			return err
		}
		if strings.TrimSpace(in.Body) != "" {
			if err := add(place{}, in.Body); err != nil {
				return err
			}
		}
		for i, c := range in.Comments {
			if err := add(places[i], c.Body); err != nil {
				return err
			}
		}
		return s.postRequest(tx, p, in, places, out.ID)
	})
	return out, err
}

// pull is Pulls.At for an id that may be no id at all.
func (s *Service) pull(tx *db.Tx, prID, headSHA string) (Pull, error) {
	if !id.Valid(prID) {
		return Pull{}, fault.Missing("pull request")
	}
	return s.Pulls.At(tx, prID, headSHA)
}

// begin stores a thread with its first comment.
func begin(tx *db.Tx, t threadRow, label, body string) (Thread, error) {
	t.ID, t.AccountID, t.CreatedAt = id.New(), tx.Account, tx.Now
	if _, err := insertThread.Exec(tx, t); err != nil {
		return Thread{}, err
	}
	c, err := add(tx, t, label, body)
	return t.wire([]commentRow{c}), err
}

// add stores a comment of a thread.
func add(tx *db.Tx, t threadRow, label, body string) (commentRow, error) {
	c := commentRow{ID: id.New(), AccountID: tx.Account, ThreadID: t.ID, Author: label, Body: strings.TrimSpace(body), CreatedAt: tx.Now}
	if _, err := insertComment.Exec(tx, c); err != nil {
		return c, err
	}
	_, err := grow.Exec(tx, t.ID, int64(len(c.Body)))
	return c, err
}

type withdrawIn struct {
	ID        string `json:"id" format:"uuid" doc:"id of the pull request"`
	RequestID string `json:"request_id,omitempty" format:"uuid" doc:"the request; the caller's own unless sent"`
}

// Withdrawn is the answer of review.withdraw_request.
type Withdrawn struct {
	_          struct{} `doc:"What does not hold the merge any more." schema:"WithdrawnRequests"`
	PRID       string   `json:"pr_id" format:"uuid" doc:"the pull request"`
	RequestIDs []string `json:"request_ids" doc:"the requests that were taken back"`
}

func (s *Service) withdraw(ctx context.Context, in withdrawIn) (out Withdrawn, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if !id.Valid(in.ID) {
			return fault.Missing("pull request")
		}
		ended, err := s.Pulls.TakeBack(tx, in.ID, in.RequestID)
		out = Withdrawn{PRID: in.ID, RequestIDs: ended}
		return err
	})
	return out, err
}

// Answer is a head that answers requests: those of an id, and the reviews that the host of the
// pull request calls so.
type Answer struct {
	PRID       string
	RequestIDs []string
	ReviewKeys []string
	SHA        string
}

// Answered resolves the threads of requests by the head that answers them, at the host as well.
func (s *Service) Answered(tx *db.Tx, a Answer) error {
	if len(a.ReviewKeys) > 0 {
		if err := s.resolveReviews(tx, a); err != nil {
			return err
		}
	}
	for _, requestID := range a.RequestIDs {
		if _, err := answer.Exec(tx, answerArgs{AccountID: tx.Account, RequestID: requestID, SHA: a.SHA, At: tx.Now}); err != nil {
			return err
		}
		rows, err := ofRequest.All(tx, tx.Account, requestID)
		if err != nil {
			return err
		}
		if err := s.resolveThere(tx, rows); err != nil {
			return err
		}
	}
	return nil
}

// kept tells whether the host of a repository keeps pull requests.
func (s *Service) kept(r repo.Ref) bool {
	forge, err := s.Hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(codehost.KeepPulls)
}
