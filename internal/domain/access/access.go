// Package access is the gate of the closed beta: people apply for access, an operator
// decides, and users are let through the gate or sent back to the waitlist.
package access

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
)

// Status is how far an application is.
type Status string

// States of an application. They follow from the times of its row.
const (
	Pending  = "pending"
	Invited  = "invited"
	Declined = "declined"
)

// Values lists all statuses.
func (Status) Values() []string { return []string{Pending, Invited, Declined} }

// Request is an application as operators see it.
type Request struct {
	_          struct{}   `doc:"An application to be let in."`
	ID         string     `json:"id" format:"uuid" doc:"id of the application"`
	Email      string     `json:"email" format:"email" doc:"address of the applicant"`
	Name       string     `json:"name" example:"Ada Lovelace" doc:"name of the applicant; empty: not given"`
	Org        string     `json:"org" example:"Acme" doc:"where they work; empty: not given"`
	Status     Status     `json:"status" doc:"what was decided; pending: nothing yet"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was made"`
	InvitedAt  *time.Time `json:"invited_at" example:"null" doc:"when they were invited; null: they were not"`
	DeclinedAt *time.Time `json:"declined_at" example:"null" doc:"when it was declined; null: it was not"`
}

// Applied is the answer to an application: with status 201 for a new one, 200 for an
// application that the address made before.
type Applied struct {
	_      struct{} `doc:"The application, new or there before." schema:"Applied"`
	ID     string   `json:"id" format:"uuid" doc:"id of the application"`
	Status string   `json:"status" enum:"pending,invited" doc:"pending, or invited when the address was"`

	fresh bool
}

// StatusCode returns 201 for a new application and 200 for an existing one.
func (a Applied) StatusCode() int {
	if a.fresh {
		return 201
	}
	return 200
}

// The grant for an applicant whom an operator invites without naming another.
const (
	starterDevs = 1
	starterDays = 30
)

// InvitedApplicant is the answer of access_request.invite. It is the only place that
// shows the link.
type InvitedApplicant struct {
	_             struct{}              `doc:"What access_request.invite did." schema:"InvitedApplicant"`
	Request       Request               `json:"request" doc:"the application"`
	Invitation    invitation.Invitation `json:"invitation" doc:"the invitation that was mailed"`
	Link          string                `json:"link" format:"uri" example:"https://yardmaster.example.com/invite/dev_inv_example" doc:"address that accepts it, shown this once"`
	UserID        *string               `json:"user_id" format:"uuid" doc:"id of the applicant's user, if they had signed in before; null: they had not"`
	Approved      bool                  `json:"approved" doc:"this call let them through the gate"`
	AIDevs        int                   `json:"ai_devs" example:"1" doc:"AI developers that are free for them"`
	ExpiresInDays int                   `json:"expires_in_days" example:"30" doc:"for how many days they are free"`
	Granted       bool                  `json:"granted" doc:"the AI developers are there already; otherwise they come with the acceptance"`
}

// UserDecision is the answer to the approval or the suspension of a user.
type UserDecision struct {
	_        struct{} `doc:"What became of a person at the gate." schema:"UserDecision"`
	UserID   string   `json:"user_id" format:"uuid" doc:"id of the user"`
	Kind     string   `json:"kind" enum:"approved,already_approved,suspended,already_waitlisted" doc:"already_approved and already_waitlisted: nothing was changed"`
	Approved bool     `json:"approved" doc:"whether they are let through now"`
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Mail    *mail.Outbox
	Invites *invitation.Service
	// BaseURL is the address in mails.
	BaseURL string
	// Bearer is the secret that the form for applicants sends. If it is empty, nobody
	// can apply.
	Bearer string
}

// Service implements the capabilities of the gate.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Withdrawn sets the application of an address from invited back to pending, because
// the invitation was withdrawn.
func Withdrawn(tx *db.Tx, email string) error {
	_, err := reopen.Exec(tx, email)
	return err
}

func (r row) status() string {
	switch {
	case r.DeclinedAt != nil:
		return Declined
	case r.InvitedAt != nil:
		return Invited
	}
	return Pending
}

func (r row) wire() Request {
	return Request{
		ID:         r.ID,
		Email:      r.Email,
		Name:       r.Name,
		Org:        r.Org,
		Status:     Status(r.status()),
		CreatedAt:  r.CreatedAt,
		InvitedAt:  r.InvitedAt,
		DeclinedAt: r.DeclinedAt,
	}
}
