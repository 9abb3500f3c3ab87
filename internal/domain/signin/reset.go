package signin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

// resetLife is how long an address that sets a new password is good for. A person has
// resetsAtOnce of them at a time.
const (
	resetLife    = time.Hour
	resetsAtOnce = 3
)

// resets are the capabilities that set a password which its person does not know any more.
func (s *Service) resets() []op.Op {
	gone := op.Refusal{Status: 410, Slug: "gone"}
	return []op.Op{
		op.New(op.Row{
			ID:         "auth.password_forgotten",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/password/forgotten",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Status:     202,
			Body:       ResetSent{},
			Refuses:    []op.Refusal{{Status: 403, Slug: "cross-origin"}},
			Again:      s.typed,
			Summary:    "Mail a person an address that sets a new password, once, within an hour",
			Doc: "The answer is the same for an address that nobody has. A person has three such addresses at most at a time. " +
				"Where the server sends no mail, whoever runs it finds the mail on it.",
		}, s.forgotten),
		op.New(op.Row{
			ID:         "auth.password_reset_page",
			Method:     "GET",
			Path:       "/auth/password/reset/{token}",
			Group:      group,
			Rule:       policy.Public(),
			NoStore:    true,
			PerAddress: 30,
			Refuses:    []op.Refusal{gone},
			Summary:    "The page of that address: whose password it sets, and the form",
			Doc:        "Opening it changes nothing and does not use it up.",
		}, s.resetPage),
		op.New(op.Row{
			ID:         "auth.password_reset",
			From:       op.OwnPages,
			Method:     "POST",
			Path:       "/auth/password/reset/{token}",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Body:       PasswordReset{},
			Refuses:    []op.Refusal{{Status: 403, Slug: "cross-origin"}, gone},
			Again:      s.typedReset,
			Summary:    "Set a new password with such an address, once",
			Doc: "Every session of the person ends, and every other such address; tokens stay. The person is told by mail, and " +
				"signs in with the new password.",
		}, s.reset),
		op.New(op.Row{
			ID:      "user.password_link",
			Method:  "POST",
			Path:    "/v1/admin/users/{userId}/password-link",
			Group:   "Access requests and user approval",
			Rule:    policy.Require(policy.AdminReadPlat).OfSession(),
			Refuses: []op.Refusal{{Status: 403, Slug: "reauth-required"}, {Status: 409, Slug: "is-operator"}},
			NoStore: true,
			Summary: "Make an address that sets a new password of a person, once, within an hour; it is shown once",
			Doc: "For operators, where the person has no mail. Whoever has the address can become that person, so it takes a session of an " +
				"operator that signed in within the last hour, and no token; an operator sets their own by mail, or on the machine of the " +
				"server. Earlier addresses of the person die. The person is told by mail, and the record of the account that they own says so.",
		}, s.passwordLink),
	}
}

type forgottenIn struct {
	Email    string `json:"email" maxLength:"254" format:"email" doc:"the person's address"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: answers are pages"`
}

// ResetSent is the answer of auth.password_forgotten.
type ResetSent struct {
	_         struct{} `doc:"The answer to every request for a new password." schema:"ResetSent"`
	Email     string   `json:"email" doc:"the address"`
	ExpiresIn int      `json:"expires_in" example:"3600" doc:"seconds that the address is good for, if one was sent"`
}

// PasswordReset is the answer of auth.password_reset.
type PasswordReset struct {
	_     struct{} `doc:"What auth.password_reset did." schema:"PasswordReset"`
	Reset bool     `json:"reset" doc:"always true"`
}

// PasswordLink is the answer of user.password_link.
type PasswordLink struct {
	_         struct{}  `doc:"An address that sets a new password of a person, shown this once." schema:"PasswordLink"`
	UserID    string    `json:"user_id" format:"uuid" doc:"the person"`
	Link      string    `json:"link" format:"uri" example:"https://yardmaster.example.com/auth/password/reset/dev_sin_example" doc:"the address"`
	ExpiresAt time.Time `json:"expires_at" doc:"until when it is good"`
}

// resetAddress makes an address that sets a new password of a user.
func resetAddress(tx *db.Tx, userID string) (string, error) {
	if _, err := purgeResets.Exec(tx, tx.Micros()); err != nil {
		return "", err
	}
	token := id.Secret(id.SignIn)
	_, err := insertReset.Exec(tx, seal.Hash(token), userID, db.Micros(tx.Now.Add(resetLife)))
	return op.RequestOf(tx.Context()).BaseURL + "/auth/password/reset/" + token, err
}

func (s *Service) forgotten(ctx context.Context, in forgottenIn) (op.Reply, error) {
	email := strings.ToLower(in.Email)
	err := s.mayMail(ctx, func(tx *db.Tx) error {
		user, known, err := people.LockByEmail(tx, email)
		if err != nil || !known {
			return err
		}
		if live, err := liveResets.One(tx, user, tx.Micros()); err != nil || live >= resetsAtOnce {
			return err
		}
		address, err := resetAddress(tx, user)
		if err != nil {
			return err
		}
		return s.Mail.Post(tx, mail.Page{
			Lead:  "Somebody has asked for a new password of yours at Yardmaster.",
			Links: []mail.Link{{Label: "Set a new password", URL: address}},
			Notes: []string{"The link works once, for an hour. If you did not ask for it, do nothing: your password stays as it is."},
		}.Message(email, "A new password"))
	})
	if err != nil {
		return op.Reply{}, err
	}
	if in.ReturnTo != "" {
		return render(ctx, 202, forgottenPage, codeForm{Email: email, Mailed: s.Mailed})
	}
	return op.Reply{Status: 202, Body: ResetSent{Email: email, ExpiresIn: int(resetLife.Seconds())}}, nil
}

func (s *Service) resetPage(ctx context.Context, in linkIn) (op.Reply, error) {
	return s.resetForm(ctx, in, nil)
}

// typedReset answers values that are not what the form asks for.
func (s *Service) typedReset(ctx context.Context, in any, err error) (op.Reply, error) {
	if in := in.(*resetIn); in.ReturnTo != "" {
		return s.resetForm(ctx, linkIn{in.Token, page}, err)
	}
	return op.Reply{}, err
}

// page is the Accept header of who has sent a form of ours.
const page = "text/html"

// resetUser is the user whose password an address sets.
func resetUser(tx *db.Tx, token string) (string, error) {
	user, ok, err := findReset.Maybe(tx, seal.Hash(token), tx.Micros())
	if err == nil && !ok {
		err = errLinkGone
	}
	return user, err
}

type resetForm struct{ Login, Token, Failure string }

// resetForm shows the form of a new password, after a failure if there was one.
func (s *Service) resetForm(ctx context.Context, in linkIn, failure error) (op.Reply, error) {
	status, line, err := web.Complaint(failure)
	if err != nil {
		return op.Reply{}, err
	}
	form := resetForm{Token: in.Token, Failure: line}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		user, err := resetUser(tx, in.Token)
		if err != nil {
			return err
		}
		u, err := people.ReadUser(tx, user)
		form.Login = u.Login
		return err
	})
	if err != nil {
		return linkFailed(ctx, in, err)
	}
	return render(ctx, status, resetPage, form)
}

type resetIn struct {
	Token    string `json:"token" maxLength:"200" doc:"the last segment of the address"`
	Password string `json:"password" minLength:"10" maxLength:"200" doc:"the new one, of at least 10 characters"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"sent by our pages: answers are pages, and success leads to the sign-in page"`
}

// reset sets the password of the person whom an address names, and uses the address up.
func (s *Service) reset(ctx context.Context, in resetIn) (op.Reply, error) {
	err := s.newPassword(ctx, in)
	switch {
	case err != nil && in.ReturnTo != "":
		return s.resetForm(ctx, linkIn{in.Token, page}, err)
	case err != nil:
		return op.Reply{}, err
	case in.ReturnTo != "":
		return web.GoTo("/login"), nil
	}
	return op.Reply{Body: PasswordReset{Reset: true}}, nil
}

func (s *Service) newPassword(ctx context.Context, in resetIn) error {
	err := s.DB.Read(ctx, func(tx *db.Tx) error { // before the work of hashing
		_, err := resetUser(tx, in.Token)
		return err
	})
	if err != nil {
		return err
	}
	hash, err := s.checks.hash(ctx, in.Password)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		user, ok, err := takeReset.Maybe(tx, seal.Hash(in.Token), tx.Micros())
		if err != nil {
			return err
		}
		if !ok {
			return errLinkGone
		}
		email, err := people.ReplacePassword(tx, user, hash)
		if err != nil {
			return err
		}
		if err := s.shut(tx, user, ""); err != nil { // no session is kept
			return err
		}
		if err := s.tell(tx, email, "Your password was changed", "Your password at Yardmaster was changed by a link that was made for it."); err != nil {
			return err
		}
		account, _, err := people.FirstAccount(tx, user)
		if err != nil {
			return err
		}
		return passwordResetEvent.Record(tx, event.Subject{ID: user, Account: account}, event.None{})
	})
}

// shut ends what gets at a user whose password is new: sessions, but for those whose id is
// like kept, and addresses that set another.
func (s *Service) shut(tx *db.Tx, userID, kept string) error {
	if _, err := dropResets.Exec(tx, userID); err != nil {
		return err
	}
	return s.drop(tx, dropOthers, userID, kept)
}

// tell mails a person what has happened with their password. Without an address nobody is told.
func (s *Service) tell(tx *db.Tx, email, subject, lead string) error {
	if email == "" {
		return nil
	}
	return s.Mail.Post(tx, mail.Page{
		Lead:  lead,
		Notes: []string{fmt.Sprintf("If that was not you, ask for a new password at %s/login, and tell whoever runs the server.", op.RequestOf(tx.Context()).BaseURL)},
	}.Message(email, subject))
}

type userIn struct {
	UserID string `json:"userId" format:"uuid" doc:"id of the person"`
}

func (s *Service) passwordLink(ctx context.Context, in userIn) (out PasswordLink, err error) {
	a := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := a.Present(tx.Now); err != nil {
			return err
		}
		u, ok, err := people.UserByID(tx, in.UserID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("user")
		}
		if u.PlatformAdmin {
			return fault.Reason("is-operator", "Nobody makes another operator's password: they ask for one at the sign-in page; a server that sends no mail has it for `yardmaster mail`, on its machine.")
		}
		if _, err := dropResets.Exec(tx, u.ID); err != nil {
			return err
		}
		address, err := resetAddress(tx, u.ID)
		if err != nil {
			return err
		}
		out = PasswordLink{UserID: u.ID, Link: address, ExpiresAt: tx.Now.Add(resetLife)}
		if err := s.tell(tx, u.Email, "A link to a new password was made",
			"Somebody who runs Yardmaster here has made a link that sets a new password of yours."); err != nil {
			return err
		}
		account, err := people.OldestOwned(tx, u.ID)
		if err != nil {
			return err
		}
		return passwordLinkEvent.Operated(tx, event.Subject{ID: u.ID, Account: account}, event.None{}, nil)
	})
	return out, err
}
