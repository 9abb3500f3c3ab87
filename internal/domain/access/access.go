// Package access is the gate of the closed beta: people apply for access, an
// operator decides, and users are let through the gate or sent back behind it.
package access

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/mail"
)

// States of an application. Which one it is in follows from its times.
const (
	Pending  = "pending"
	Invited  = "invited"
	Declined = "declined"
)

// AccessRequest is an application as operators see it.
type AccessRequest struct {
	ID         string     `json:"id"`
	Email      string     `json:"email"`
	Name       string     `json:"name"`
	Org        string     `json:"org"`
	Status     string     `json:"status" enum:"pending,invited,declined"`
	CreatedAt  time.Time  `json:"created_at"`
	InvitedAt  *time.Time `json:"invited_at"`
	DeclinedAt *time.Time `json:"declined_at"`
}

// Applied is the answer to an application: 201 for a new one, 200 for one that
// the address made before.
type Applied struct {
	ID     string `json:"id"`
	Status string `json:"status" enum:"pending,invited"`

	fresh bool
}

// StatusCode tells the two apart.
func (a Applied) StatusCode() int {
	if a.fresh {
		return 201
	}
	return 200
}

// The standard bundle of who is invited off the waitlist.
const (
	starterDevs = 1
	starterDays = 30
)

// InvitedApplicant is what an operator's invitation of an applicant did. The
// link is shown here and never again.
type InvitedApplicant struct {
	Request       AccessRequest         `json:"request"`
	Invitation    invitation.Invitation `json:"invitation"`
	Link          string                `json:"link"`
	UserID        *string               `json:"user_id" doc:"the applicant, if they had signed in before"`
	Approved      bool                  `json:"approved" doc:"this call let them through the gate"`
	AIDevs        int                   `json:"ai_devs"`
	ExpiresInDays int                   `json:"expires_in_days"`
	Granted       bool                  `json:"granted" doc:"the AI developers are there already; otherwise they come with the acceptance"`
}

// UserDecision is what became of a user's approval.
type UserDecision struct {
	UserID   string `json:"user_id"`
	Kind     string `json:"kind" enum:"approved,already_approved,suspended,already_waitlisted"`
	Approved bool   `json:"approved"`
}

// Service keeps the gate.
type Service struct {
	DB      *db.DB
	Mail    *mail.Outbox
	Invites *invitation.Service
	// BaseURL is the address in mails.
	BaseURL func() string
	// Bearer is what the form that people apply with proves itself by. Empty:
	// nobody can apply.
	Bearer string
	// Forget drops what is cached of a user's credentials.
	Forget func(userID string)
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

func (r row) wire() AccessRequest {
	return AccessRequest{r.ID, r.Email, r.Name, r.Org, r.status(), r.CreatedAt, r.InvitedAt, r.DeclinedAt}
}
