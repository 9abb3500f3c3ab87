package inquiry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const (
	lookTime  = 20 * time.Second  // for the lines that are shown
	callTime  = 100 * time.Second // for one call of the model
	maxCalls  = 2                 // the second one corrects the first
	ofPerson  = 1                 // questions that are answered at once, on one node
	ofAccount = 4
	// mostText is how much of the cited lines is in an answer, in characters.
	mostText = 2000
)

// turns counts the questions that are being answered, by who asks.
type turns struct {
	mu   sync.Mutex
	open map[string]int
}

// take takes a place for each of who, or none.
func (t *turns) take(most map[string]int) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for who, n := range most {
		if t.open[who] >= n {
			return nil, false
		}
	}
	for who := range most {
		t.open[who]++
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for who := range most {
			if t.open[who]--; t.open[who] == 0 {
				delete(t.open, who)
			}
		}
	}, true
}

// answer answers a question of the actor of ctx.
func (s *Service) answer(ctx context.Context, owner, name, question string) (out Answer, err error) {
	actor := policy.From(ctx)
	who := asker(actor)
	leave, ok := s.turns.take(map[string]int{who: ofPerson, "account " + actor.AccountID: ofAccount})
	if !ok {
		return out, fault.New(fault.RateLimited, "", "Another question is being answered. Ask again when it is.").After(5 * time.Second)
	}
	defer leave()
	var r repo.Ref
	var pages []Page
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, err = open(tx, owner, name); err != nil {
			return err
		}
		pages, err = s.Pages.Near(tx, r.ID, question)
		return err
	})
	if err != nil {
		return out, err
	}
	shown, err := s.look(ctx, r, question, pages)
	if err != nil {
		return out, err
	}
	out = Answer{Claims: []Claim{}, Citations: []Citation{}, Pages: []string{}, Partial: shown.cut}
	switch {
	case shown.commit == "":
		out.refuse(emptyRepository)
		return out, nil
	case len(shown.files) == 0:
		out.Commit = &shown.commit
		out.refuse(nothingFound)
		return out, nil
	}
	out.Commit = &shown.commit
	for _, p := range pages {
		out.Pages = append(out.Pages, p.Slug)
	}
	if after, ok := s.Rate.Take(actor.AccountID); !ok {
		return out, fault.Newf(fault.RateLimited, "", "An account asks at most %d questions a minute.", PerMinute).After(after)
	}
	// What is noted of the session is not what the request changes: it changes nothing.
	ctx = db.BeforeCommit(ctx, nil)
	err = s.converse(ctx, r, actor, newPrompt(question, shown, pages, id.Opaque()), shown, &out)
	if err == nil && !out.Refused {
		err = s.keepAnswer(ctx, r, who, question, shown, out)
	}
	return out, err
}

// open is a repository of tx.Account that may be asked about.
func open(tx *db.Tx, owner, name string) (repo.Ref, error) {
	r, ok, err := repo.ByName(tx, owner, name)
	switch {
	case err != nil:
		return r, err
	case !ok:
		return r, fault.Missing("repository")
	case !r.Enabled || r.Gone != "":
		return r, fault.Reason("repo_not_enabled", "The repository "+r.FullName()+" is not enabled, so its code is not read.").
			With("repo", r.FullName())
	case r.Uncovered:
		return r, repo.Covered(tx)
	}
	return r, nil
}

// converse asks the model, and once more if nothing of its answer is left.
func (s *Service) converse(ctx context.Context, r repo.Ref, actor policy.Actor, p prompt, shown *evidence, out *Answer) error {
	talk, err := s.Model.Begin(ctx, Matter{AccountID: actor.AccountID, RepoID: r.ID, RequestedBy: actor.UserID})
	if err != nil {
		return err
	}
	session := talk.ID()
	out.SessionID = &session
	outcome := "failed"
	defer func() { talk.End(context.WithoutCancel(ctx), outcome) }()
	turns := []string{p.text}
	for range maxCalls {
		said, err := say(ctx, talk, p.system, turns)
		if err != nil {
			if ctx.Err() != nil {
				outcome = "interrupted"
			}
			return err
		}
		rep, ok := parse(said)
		if !ok {
			out.refuse(notReadable)
			turns = append(turns, clip(said, mostReply), "That is not one JSON object of the form that was asked for. Answer with the object, alone.")
			continue
		}
		outcome = "succeeded"
		if len(rep.Claims) == 0 {
			out.refuse(noAnswer)
			return nil
		}
		faults := out.keep(rep, p, shown)
		if len(out.Claims) > 0 {
			return nil
		}
		out.refuse(notBorneOut)
		turns = append(turns, clip(said, mostReply), correction(faults))
	}
	return nil
}

// say makes one call.
func say(ctx context.Context, talk Talk, system string, turns []string) (string, error) {
	in, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	said, err := talk.Say(in, system, turns)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "provider_unavailable", "The model gave no answer in time.").Because(err)
	}
	return said, err
}

// keep makes an answer of the sentences of a reply that their lines bear out, and tells why the
// others are left out.
func (a *Answer) keep(rep reply, p prompt, shown *evidence) (faults []string) {
	a.Refused, a.Reason, a.Code, a.Claims, a.Citations, a.Dropped = false, nil, nil, []Claim{}, []Citation{}, 0
	number := map[string]int{}
	var text []string
	for i, c := range rep.Claims {
		places, why := judge(c, p, shown)
		if len(places) == 0 {
			a.Dropped++
			faults = append(faults, fmt.Sprintf("Claim %d: %s.", i+1, why))
			continue
		}
		claim, marks := Claim{Text: c.Text}, ""
		for _, at := range places {
			n := number[at.String()]
			if n == 0 {
				n = len(a.Citations) + 1
				number[at.String()] = n
				a.Citations = append(a.Citations, Citation{
					N: n, Cite: at.String(), Path: at.Path, Line: at.From, EndLine: at.To, Commit: shown.commit,
					Text: clip(strings.Join(shown.lines(at), "\n"), mostText),
				})
			}
			claim.Citations = append(claim.Citations, n)
			marks += fmt.Sprintf("[%d]", n)
		}
		a.Claims = append(a.Claims, claim)
		body, end := c.Text, ""
		if last := len(body) - 1; strings.ContainsRune(".!?", rune(body[last])) {
			body, end = body[:last], body[last:]
		}
		text = append(text, body+" "+marks+end)
	}
	whole := strings.Join(text, " ")
	a.Answer = &whole
	return faults
}

// head is the commit of the default branch; "" if there is none.
func head(ctx context.Context, host codehost.Host, r repo.Ref) (string, error) {
	sha, err := host.Head(ctx, r.HostRepo(), r.DefaultBranch)
	if errors.Is(err, codehost.ErrNotFound) {
		return "", nil
	}
	return sha, err
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
