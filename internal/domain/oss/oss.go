// Package oss is the open-source programme: an account applies as an open-source
// project, and an operator of the platform decides. An approved account moves to the
// tier that covers private repositories.
package oss

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
)

// State is the state of an application.
type State string

// States of an application as an open-source project.
const (
	Pending  = "pending"
	Approved = "approved"
	Rejected = "rejected"
)

// Values lists all states.
func (State) Values() []string { return []string{Pending, Approved, Rejected} }

// Application asks that an account be treated as an open-source project.
type Application struct {
	_          struct{}   `doc:"An account's application as an open-source project." schema:"OSSApplication"`
	ID         string     `json:"id" format:"uuid" doc:"id of the application"`
	AccountID  string     `json:"account_id" format:"uuid" doc:"the account that applied"`
	ProjectURL string     `json:"project_url" db:"project_url" format:"uri" example:"https://example.com/acme/web" doc:"where the project can be seen"`
	Statement  string     `json:"statement" example:"Apache-2.0; a website that ships with the product." doc:"its licence, and what it is for"`
	State      State      `json:"state" doc:"pending: waits for an operator"`
	Note       *string    `json:"note" example:"null" doc:"the operator's note to the applicant; null: none"`
	AppliedBy  *string    `json:"applied_by" format:"uuid" doc:"user id; null: a machine token applied"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was made"`
	UpdatedAt  time.Time  `json:"updated_at" doc:"when its text was last changed or it was decided"`
	DecidedAt  *time.Time `json:"decided_at" example:"null" doc:"when it was decided; null: it waits"`
}

// Verification is the answer of account.oss_verification_get.
type Verification struct {
	_           struct{}     `doc:"Where an account stands as an open-source project." schema:"OSSVerification"`
	Application *Application `json:"application" doc:"the latest; null: the account never applied"`
}

// Needs are the dependencies of Service.
type Needs struct {
	DB   *db.DB
	Hub  *event.Hub
	Mail *mail.Outbox
}

// Service implements the capabilities of the open-source programme.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Decision is what an operator says to an application.
type Decision string

// Values lists both.
func (Decision) Values() []string { return []string{"approve", "reject"} }
