// Package inquiry answers questions about a repository, from its code.
//
// Lines of the default branch are looked up, at one commit, and a model is shown them with the
// pages of the knowledge base that are near. It answers in sentences, each of which names lines
// that it was shown. A sentence is held against these lines (package citation) and dropped where
// they lack its names, quotes or numbers, or do not define what it is about; if none is left,
// there is no answer. This drops what was made up. It does not prove what is left: the lines
// stand beside each sentence, and people read them.
//
// The text of a repository, of pages and of questions is data. It stands in the prompt behind
// marks that it cannot write, what looks like a secret is taken out of it, and a sentence that
// repeats the prompt is dropped.
//
// The last answers are kept for who asked, with marks that find their lines again: what is shown
// of them later says where the lines are by then, or that they are stale. The session of the model
// is kept as each is.
//
//   - inquiry.go, ops.go: what is answered, the capability
//   - ask.go: a question from its beginning to its end
//   - look.go, words.go: which lines are shown; file.go: files as they are shown
//   - kept.go, store.go: answers that were given before
//   - prompt.go, reply.go: what the model is told, and what it answers
package inquiry

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Model has conversations with the model of an account.
type Model interface {
	// Begin opens a session. It fails with the fault no_credential if the account has no key
	// of a model.
	Begin(ctx context.Context, m Matter) (Talk, error)
}

// Matter is what a session is about.
type Matter struct {
	AccountID, RepoID string
	RequestedBy       string // the person for whom it spends; empty: nobody
}

// Talk is one conversation with a model.
type Talk interface {
	// ID is the id of the session, to which the spend is booked.
	ID() string
	// Say sends the prompts and the answers so far, in turns, and returns the next answer.
	Say(ctx context.Context, system string, turns []string) (string, error)
	// End closes the session.
	End(ctx context.Context, outcome string)
}

// Pages are the knowledge bases of repositories.
type Pages interface {
	// Near are the pages of a repository of tx.Account that are near to a question, best first.
	Near(tx *db.Tx, repoID, question string) ([]Page, error)
}

// Page is a page that is near to a question.
type Page struct {
	Slug, Text string
	Files      []string // that it was written from
	Stale      bool     // whether one of them has changed since
}

// Rate limits how often an account asks.
type Rate interface {
	// Take takes a turn of an account; ok is false if it has none left, and after says when the
	// next one comes.
	Take(account string) (after time.Duration, ok bool)
}

// PerMinute is how many questions of an account a model is asked in a minute.
const PerMinute = 20

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Logger *slog.Logger
	Hosts  *codehost.Hosts
	Model  Model
	Pages  Pages
	Rate   Rate
}

// Service answers questions.
type Service struct {
	Needs
	turns turns
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, turns: turns{open: map[string]int{}}}
}

// Answer is what became of a question.
type Answer struct {
	_         struct{}   `doc:"What the code of a repository says to a question. The lines exist and have the names, quotes and numbers of the sentences; whether they mean the same, people judge." schema:"RepositoryAnswer"`
	Refused   bool       `json:"refused" doc:"true: there is no answer that lines of the code bear out"`
	Reason    *string    `json:"reason" example:"null" doc:"why it was refused, for people; null of an answer"`
	Code      *NoAnswer  `json:"code" example:"null" doc:"the same for programs: no commit; no line with words of the question; the model found none in the lines; the lines did not have what it said; its answer had not the form that was asked for. null of an answer"`
	Answer    *string    `json:"answer" example:"The server listens on port 8080 [1]." doc:"its sentences, each with the numbers of its citations; null if it was refused"`
	Claims    []Claim    `json:"claims" doc:"the sentences one by one"`
	Citations []Citation `json:"citations" doc:"the lines, in the order of their numbers"`
	Commit    *string    `json:"commit" example:"487704ef85ae6bf9a93b5a2425bb7a8861a0690b" doc:"the commit of the default branch that was looked at; null: there is none"`
	Dropped   int        `json:"dropped" example:"0" doc:"sentences of the model that were left out, since their lines did not have what they said"`
	Partial   bool       `json:"partial" doc:"the repository is so large that not all of it was looked through"`
	Pages     []string   `json:"pages" example:"[\"guides/build\"]" doc:"slugs of the pages of the knowledge base that the model was shown. They lead to lines; no answer rests on them"`
	SessionID *string    `json:"session_id" format:"uuid" doc:"the session with the model, which has its cost; null: no model was asked"`
}

// Claim is a sentence of an answer.
type Claim struct {
	_         struct{} `doc:"A sentence, and the lines that it rests on." schema:"AnswerClaim"`
	Text      string   `json:"text" example:"The server listens on port 8080." doc:"one sentence, of a model: never markup"`
	Citations []int    `json:"citations" example:"[1]" doc:"numbers of its citations, one at least"`
}

// Citation are lines of a file at a commit.
type Citation struct {
	_       struct{} `doc:"Lines of a file at a commit, as they were read there." schema:"AnswerCitation"`
	N       int      `json:"n" example:"1" doc:"its number in the answer, from 1"`
	Cite    string   `json:"cite" example:"server.go:12-14" doc:"path:line or path:line-line"`
	Path    string   `json:"path" example:"server.go" doc:"path in the repository"`
	Line    int      `json:"line" example:"12" doc:"first line, from 1"`
	EndLine int      `json:"end_line" example:"14" doc:"last line"`
	Commit  string   `json:"commit" example:"487704ef85ae6bf9a93b5a2425bb7a8861a0690b" doc:"the commit"`
	Text    string   `json:"text" example:"const port = 8080" doc:"the lines, without what looks like a secret; at most 2000 characters"`
}

// NoAnswer is why a question has no answer.
type NoAnswer string

// The reasons for which a question has no answer.
const (
	emptyRepository = "empty_repository"
	nothingFound    = "nothing_found"
	noAnswer        = "no_answer"
	notBorneOut     = "not_borne_out"
	notReadable     = "not_readable"
)

// Values lists all reasons.
func (NoAnswer) Values() []string {
	return []string{emptyRepository, nothingFound, noAnswer, notBorneOut, notReadable}
}

var reasons = map[string]string{
	emptyRepository: "The default branch of the repository has no commit yet.",
	nothingFound:    "No line of the default branch has words of the question. Name a file, a setting or a function as the code does.",
	noAnswer:        "The lines that were found do not answer the question. Name a file, a setting or a function as the code does.",
	notBorneOut:     "The model answered, but none of its sentences was borne out by the lines that it named.",
	notReadable:     "The model did not answer in the form that was asked for.",
}

// refuse makes an answer a refusal.
func (a *Answer) refuse(code string) {
	why := reasons[code]
	a.Refused, a.Code, a.Reason, a.Answer, a.Claims, a.Citations = true, (*NoAnswer)(&code), &why, nil, []Claim{}, []Citation{}
}
