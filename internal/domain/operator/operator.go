// Package operator is the console of the operators of the platform: it shows them all
// accounts and users, and changes these. Package people and the domains that the
// console counts own the rows.
package operator

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// Billing is how the capacity of an account is paid for.
type Billing string

// States of the payment for an account's capacity. The capacity is the seats of the
// account and the grants to it or to an owner whose grants count in it. howPaid
// computes the state.
const (
	billingPaying = "paying" // the account has seats of a tier that pays for them
	billingComped = "comped" // its capacity is granted, or it is a verified open-source project
	billingPaused = "paused" // it has no capacity: none of its tasks run
)

// Values lists all states.
func (Billing) Values() []string { return []string{billingPaying, billingComped, billingPaused} }

// Overview counts the objects of the whole platform.
type Overview struct {
	_                struct{} `doc:"What there is on the whole server, counted as of now." schema:"PlatformOverview"`
	Accounts         int64    `json:"accounts" example:"12" doc:"accounts"`
	Users            int64    `json:"users" example:"40" doc:"people"`
	UsersWaitlisted  int64    `json:"users_waitlisted" example:"3" doc:"people who were not let through the gate"`
	Repos            int64    `json:"repos" example:"55" doc:"repositories, enabled or not"`
	Boxes            int64    `json:"boxes" example:"9" doc:"boxes that are enrolled"`
	BoxesOnline      int64    `json:"boxes_online" example:"8" doc:"boxes that are online"`
	TasksQueued      int64    `json:"tasks_queued" example:"14" doc:"tasks that are pending"`
	TasksInFlight    int64    `json:"tasks_in_flight" example:"6" doc:"tasks that a box holds"`
	TasksStuck       int64    `json:"tasks_stuck" example:"0" doc:"running without progress for 15 minutes, or out of rounds; those that wait for a person are not counted"`
	RunsLive         int64    `json:"runs_live" example:"6" doc:"runs that have not ended"`
	PullsOpen        int64    `json:"pulls_open" example:"21" doc:"pull requests that are open"`
	ApprovalsPending int64    `json:"approvals_pending" example:"4" doc:"questions about pull requests that wait for a person"`
	EscalationsOpen  int64    `json:"escalations_open" example:"2" doc:"escalations that nobody has resolved"`
	GrantsActive     int64    `json:"grants_active" example:"5" doc:"grants that are neither revoked nor expired"`
	OSSPending       int64    `json:"oss_pending" db:"oss_pending" example:"1" doc:"open-source applications that wait for a decision"`
	Disk             Disk     `json:"disk" doc:"what is stored"`
}

// Disk is what the server stores.
type Disk struct {
	_             struct{}   `doc:"What the server stores, in bytes."`
	DatabaseBytes int64      `json:"database_bytes" example:"73400320" doc:"the database as of now, with indexes and room that is free again"`
	RecordBytes   int64      `json:"record_bytes" example:"20971520" doc:"texts in it that accounts have written"`
	GitBytes      int64      `json:"git_bytes" example:"524288000" doc:"repositories of the built-in host, each since its last push"`
	ObjectBytes   int64      `json:"object_bytes" example:"104857600" doc:"logs, artifacts and objects of Git LFS"`
	MeasuredAt    *time.Time `json:"measured_at" doc:"since when record_bytes and object_bytes may have changed, an hour at most; null: not measured yet"`
}

// OrgSummary is an account as operators list it.
type OrgSummary struct {
	_         struct{}    `doc:"An account as operators list it." schema:"OrgSummary"`
	ID        string      `json:"id" format:"uuid" doc:"id of the account"`
	Login     string      `json:"login" example:"acme" doc:"its name"`
	Kind      people.Kind `json:"kind" doc:"user: one person's own"`
	Tier      people.Tier `json:"tier" doc:"what it is entitled to"`
	Seats     int64       `json:"seats" example:"2" doc:"AI developers of its own: paid for or given, or, on the tier self_hosted, come with the server"`
	Members   int64       `json:"members" example:"5" doc:"how many people belong to it"`
	FreeDevs  int64       `json:"free_devs" doc:"AI developers by active grants to the account, or to an owner who has no older account, on top of the seats"`
	Billing   *Billing    `json:"billing" example:"null" doc:"paused: neither seats nor free AI developers, so that nothing runs; comped: a verified open-source project, or what it has was given, whether or not the server's own seats (tier self_hosted) come with it; paying: seats of the tier free or team; null: seats of the server and nothing else"`
	CreatedAt time.Time   `json:"created_at" doc:"when it was made"`
}

// RosterMember is a member as operators see them.
type RosterMember struct {
	_      struct{}    `doc:"A member as operators see them." schema:"RosterMember"`
	UserID string      `json:"user_id" format:"uuid" doc:"id of the user"`
	Login  string      `json:"login" example:"ada" doc:"login of the user"`
	Name   string      `json:"name" example:"Ada Lovelace" doc:"as they call themselves"`
	Role   policy.Role `json:"role" example:"owner" doc:"their role in the account"`
}

// OrgDetail is one account as operators see it.
type OrgDetail struct {
	_ struct{} `doc:"One account as operators see it." schema:"OrgDetail"`
	OrgSummary
	SpendCapUSD   *float64       `json:"spend_cap_usd" example:"500" doc:"the operator's cap, in US dollars a month; null: the default"`
	OSSReviewedAt *time.Time     `json:"oss_reviewed_at" example:"null" doc:"when its open-source application was last decided; null: never"`
	Repos         int64          `json:"repos" example:"7" doc:"repositories, enabled or not"`
	Boxes         int64          `json:"boxes" example:"3" doc:"boxes that are enrolled"`
	TasksOpen     int64          `json:"tasks_open" example:"4" doc:"tasks that are not over"`
	Roster        []RosterMember `json:"roster" doc:"its members"`
}

// User is a person as operators list them.
type User struct {
	_ struct{} `doc:"A person as operators list them." schema:"PlatformUser"`
	account.User
	Approved  bool      `json:"approved" doc:"whether they were let through the gate; false: waitlisted"`
	CreatedAt time.Time `json:"created_at" doc:"when they first signed in"`
}

// UserOrg is an account that a person belongs to.
type UserOrg struct {
	_         struct{}    `doc:"An account that a person belongs to." schema:"UserOrg"`
	AccountID string      `json:"account_id" format:"uuid" doc:"id of the account"`
	Login     string      `json:"login" example:"acme" doc:"login of the account"`
	Kind      people.Kind `json:"kind" doc:"user: one person's own"`
	Role      policy.Role `json:"role" example:"owner" doc:"the person's role in it"`
}

// UserDetail is one person as operators see them.
type UserDetail struct {
	_ struct{} `doc:"One person as operators see them." schema:"PlatformUserDetail"`
	User
	LastActiveAt *time.Time                      `json:"last_active_at" doc:"the later of the newest sign-in and the newest use of a token; null: there was neither"`
	Orgs         []UserOrg                       `json:"orgs" doc:"the accounts they belong to"`
	Grants       op.Page[grant.EntitlementGrant] `json:"grants" doc:"the newest 25; next_cursor goes on at grant.list, with the same user_id"`
}

// RoleChange is the answer of account.set_member_role.
type RoleChange struct {
	_            struct{}    `doc:"What became of a member's role." schema:"RoleChange"`
	AccountID    string      `json:"account_id" format:"uuid" doc:"id of the account"`
	UserID       string      `json:"user_id" format:"uuid" doc:"id of the member"`
	Role         policy.Role `json:"role" example:"admin" doc:"the role after the call"`
	PreviousRole policy.Role `json:"previous_role" example:"member" doc:"the role before it"`
	Changed      bool        `json:"changed" doc:"false: the member had that role"`
}

// Needs are the dependencies of Service.
type Needs struct {
	DB  *db.DB
	Hub *event.Hub
}

// Service implements the capabilities of the console.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
