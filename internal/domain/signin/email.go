package signin

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

// Limits of mailed codes. Together they leave 25 guesses an hour at an address, of a
// million codes.
const (
	codeDigits    = 6
	codeLife      = 10 * time.Minute
	codeTries     = 5
	codesOfWindow = 5 // to one address
	codeWindow    = time.Hour
)

// mailAnswer is when a request for a mail is answered at the earliest: writing one takes
// longer than writing none.
const mailAnswer = 150 * time.Millisecond

// mayMail does what mails a person if somebody has the address. The caller learns at the same
// time that it was done, whether or not anybody has.
func (s *Service) mayMail(ctx context.Context, do func(*db.Tx) error) error {
	answer := time.NewTimer(mailAnswer)
	defer answer.Stop()
	if err := s.DB.Write(ctx, do); err != nil {
		return err
	}
	select {
	case <-answer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type emailIn struct {
	Email      string `json:"email" maxLength:"254" format:"email" doc:"the address that the code goes to"`
	ReturnTo   string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: answers are pages"`
	Invitation string `json:"invitation,omitempty" maxLength:"200" doc:"sent by the page of an invitation, to be accepted on the way"`
}

// CodeSent is the answer to every request for a code.
type CodeSent struct {
	Email     string `json:"email"`
	ExpiresIn int    `json:"expires_in" doc:"seconds that a code is good for, if one was sent"`
}

func (s *Service) mailCode(ctx context.Context, in emailIn) (op.Reply, error) {
	email := strings.ToLower(in.Email)
	code := id.Digits(codeDigits)
	err := s.mayMail(ctx, func(tx *db.Tx) error {
		if _, err := purgeCodes.Exec(tx, db.Micros(tx.Now.Add(-2*codeWindow))); err != nil {
			return err
		}
		armed, err := armCode.Exec(tx, armCodeArgs{
			Email: email, Code: s.digest(email, code), ExpiresAt: db.Micros(tx.Now.Add(codeLife)), Now: tx.Micros(),
			WindowAt: db.Micros(tx.Now.Add(-codeWindow)), Sent: codesOfWindow,
		})
		if err != nil || armed == 0 {
			return err
		}
		if expected, err := s.expects(tx, email); err != nil || !expected {
			return err
		}
		return s.Mail.Post(tx, mail.Page{
			Lead: "Your code to sign in to Yardmaster is", Code: code, Preheader: "It is good once.",
			Notes: []string{
				fmt.Sprintf("It is good for %d minutes, once, at %s.", int(codeLife.Minutes()), place(op.RequestOf(ctx).BaseURL)),
				"If you did not ask for it, do nothing, and tell it to nobody."},
		}.Message(email, "Your code to sign in"))
	})
	if err != nil {
		return op.Reply{}, err
	}
	if in.ReturnTo != "" {
		return render(ctx, 202, codePage, codeForm{Email: email, ReturnTo: Local(in.ReturnTo), Invitation: in.Invitation, Mailed: s.Mailed})
	}
	return op.Reply{Status: 202, Body: CodeSent{email, int(codeLife.Seconds())}}, nil
}

// place is an address as a sentence names it, without its scheme.
func place(address string) string {
	_, place, _ := strings.Cut(address, "://")
	return place
}

// digest returns the stored form of a code. It is keyed, because all million plain
// digests could be compared in no time.
func (s *Service) digest(email, code string) string { return s.digests(email, code)[0] }

// digests returns the forms in which a code may be stored, newest key first, because
// the master key may have been replaced after the code was mailed.
func (s *Service) digests(email, code string) (out []string) {
	for _, d := range s.Ring.Signatures("signin-code", []byte(email+"\x00"+code)) {
		out = append(out, hex.EncodeToString(d))
	}
	return out
}

// expects tells whether the owner of an address may come in.
func (s *Service) expects(tx *db.Tx, email string) (bool, error) {
	if s.Waitlist {
		return true, nil
	}
	if _, known, err := people.UserByEmail(tx, email); err != nil || known {
		return known, err
	}
	return s.Invitations.Invited(tx, email)
}

type verifyIn struct {
	Email      string `json:"email" minLength:"1" maxLength:"254" format:"email" doc:"the address that the code went to"`
	Code       string `json:"code" minLength:"1" maxLength:"20" doc:"the six digits that were mailed"`
	ReturnTo   string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: answers are pages, and success leads there"`
	Invitation string `json:"invitation,omitempty" maxLength:"200" doc:"sent by the page of an invitation, to be accepted on the way"`
}

func (s *Service) verifyCode(ctx context.Context, in verifyIn) (op.Reply, error) {
	email := strings.ToLower(in.Email)
	cookie, who, err := s.byCode(ctx, in, email)
	if in.ReturnTo == "" {
		if err != nil {
			return op.Reply{}, err
		}
		return op.Reply{Cookies: []string{cookie}, Body: who}, nil
	}
	if err == nil {
		to, err := s.after(ctx, who.UserID, in.ReturnTo)
		return web.GoTo(to, cookie), err
	}
	return s.codeAgain(ctx, in, err)
}

// typedCode answers values that are not what the form of a code asks for.
func (s *Service) typedCode(ctx context.Context, in any, failure error) (op.Reply, error) {
	if in := in.(*verifyIn); in.ReturnTo != "" {
		return s.codeAgain(ctx, *in, failure)
	}
	return op.Reply{}, failure
}

// codeAgain shows the form of a code again, with the failure.
func (s *Service) codeAgain(ctx context.Context, in verifyIn, failure error) (op.Reply, error) {
	status, line, err := web.Complaint(failure)
	if err != nil {
		return op.Reply{}, err
	}
	return render(ctx, status, codePage, codeForm{
		Email:      strings.ToLower(in.Email),
		ReturnTo:   Local(in.ReturnTo),
		Invitation: in.Invitation,
		Mailed:     s.Mailed,
		Failure:    line,
	})
}

func (s *Service) byCode(ctx context.Context, in verifyIn, email string) (cookie string, who SignedIn, err error) {
	spend, err := s.checkCode(ctx, email, in.Code)
	if err != nil {
		return "", who, err
	}
	return s.Enter(ctx, func(tx *db.Tx) (Proof, error) {
		return Proof{Method: "email", Email: email, Invitation: in.Invitation}, spend(tx)
	})
}

// checkCode checks a code that was mailed to an address. It returns the fault
// wrong-code if the code is wrong, and fault.RateLimited. Otherwise the caller must
// begin its own transaction with spend, which uses the code up.
func (s *Service) checkCode(ctx context.Context, email, code string) (spend func(*db.Tx) error, err error) {
	digests := s.digests(email, strings.ReplaceAll(strings.TrimSpace(code), " ", ""))
	var digest string // the stored form of the code
	var who string
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		who, _, err = people.UserByEmail(tx, email)
		return err
	})
	if err != nil {
		return nil, err
	}
	of := target{User: who}
	if who != "" {
		of.Email = email
	}
	t, err := s.countTry(ctx, guessCode, email, of)
	if err != nil {
		return nil, err
	}
	// The try is counted in a transaction of its own, so that a wrong one counts
	// although it changes nothing else.
	right := false
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		want, live, err := tryCode.Maybe(tx, email, tx.Micros(), codeTries)
		right = false
		for _, d := range digests {
			if seal.Equal(want, d) && live {
				right, digest = true, d
			}
		}
		return err
	})
	if err == nil && !right {
		err = wrongCode()
	}
	return func(tx *db.Tx) error {
		// If several requests have the code, only one spends it.
		n, err := spendCode.Exec(tx, email, digest)
		switch {
		case err != nil:
			return err
		case n == 0:
			return wrongCode()
		}
		return t.succeed(tx)
	}, err
}

// wrongCode is the same fault for a code that is wrong, expired, used, or tried too
// often, and for an address without a code.
func wrongCode() *fault.Error {
	return fault.New(fault.Unauthenticated, "wrong-code", "The code is wrong, or not good any more. After five tries, or ten "+
		"minutes, ask for a new one.")
}
