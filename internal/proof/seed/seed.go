// Package seed inserts rows into a test's database without the domains that own them:
// the accounts, users, repositories, boxes and tasks that a test needs but does not
// test. It fills columns that must have a value, so that a test names only the values
// it depends on. It imports no domain, so that tests inside of every domain can use
// it.
package seed

import (
	"cmp"

	"yardmaster/internal/db"
)

// Row is a row that can be inserted.
type Row interface {
	// Add inserts the row. It returns the error of the database.
	Add(tx *db.Tx) error
}

// Add inserts rows in their order. It returns the first error of the database.
func Add(tx *db.Tx, rows ...Row) error {
	for _, r := range rows {
		if err := r.Add(tx); err != nil {
			return err
		}
	}
	return nil
}

// Account is an organisation. The defaults of Login, Tier and Seats are the ID,
// self_hosted and 2.
type Account struct {
	ID, Login, Tier string
	Seats           int
	Cap             *int64 // spend cap in micro-dollars; nil: none
}

// Add inserts the account. It returns the error of the database.
func (a Account) Add(tx *db.Tx) error {
	return done(addAccount.Exec(tx, addAccountArgs{
		ID: a.ID, Login: cmp.Or(a.Login, a.ID), Tier: cmp.Or(a.Tier, "self_hosted"), Seats: cmp.Or(a.Seats, 2),
		SpendCapMicros: a.Cap,
	}))
}

// None is the Email of a User who has no address.
const None = "none"

// User is a user, approved at time 0 unless Waiting. The defaults of Login, Name and
// Email are the ID, the login, and the login at example.com.
type User struct {
	ID, Login, Name, Email string
	Password               string // hash
	Waiting                bool   // for approval
	Operator               bool
}

// Add inserts the user. It returns the error of the database.
func (u User) Add(tx *db.Tx) error {
	login := cmp.Or(u.Login, u.ID)
	approved := new(int64)
	if u.Waiting {
		approved = nil
	}
	email := cmp.Or(u.Email, login+"@example.com")
	if email == None {
		email = ""
	}
	return done(addUser.Exec(tx, addUserArgs{
		ID: u.ID, Login: login, Name: cmp.Or(u.Name, login), Email: email,
		PasswordHash: u.Password, ApprovedAt: approved, PlatformAdmin: u.Operator,
	}))
}

// Member is a user's place in an account. The default of Role is member.
type Member struct {
	Account, User, Role string
	Since               int64 // microseconds
}

// Add inserts the membership. It returns the error of the database.
func (m Member) Add(tx *db.Tx) error {
	return done(addMember.Exec(tx, addMemberArgs{
		AccountID: m.Account, UserID: m.User, Role: cmp.Or(m.Role, "member"), CreatedAt: m.Since,
	}))
}

func done(_ int64, err error) error { return err }

// Repo is a repository of an account, enabled unless Disabled. The defaults of Owner,
// Name and Host are the account, the ID and builtin.
type Repo struct {
	ID, Account, Owner, Name, Host, Policy string
	Private, Disabled                      bool
}

// Add inserts the repository. It returns the error of the database.
func (r Repo) Add(tx *db.Tx) error {
	return done(addRepo.Exec(tx, addRepoArgs{
		ID: r.ID, AccountID: r.Account, Owner: cmp.Or(r.Owner, r.Account), Name: cmp.Or(r.Name, r.ID),
		Host: cmp.Or(r.Host, "builtin"), Private: r.Private, Enabled: !r.Disabled, PolicyYML: r.Policy,
	}))
}

// Box is an enrolled box of an account. It is online and isolates agents with
// landlock. The defaults of Slots and Agents are 2 and claude.
type Box struct {
	ID, Account string
	Agents      string // JSON
	Slots       int
}

// Add inserts the box. It returns the error of the database.
func (b Box) Add(tx *db.Tx) error {
	return done(addBox.Exec(tx, addBoxArgs{
		ID: b.ID, AccountID: b.Account, Slots: cmp.Or(b.Slots, 2), Agents: cmp.Or(b.Agents, `[{"name":"claude"}]`),
	}))
}

// Consent is what a user was asked about a box and an account, and has said; AgreedAt is in
// microseconds, and nil until then.
type Consent struct {
	BoxID, AccountID, UserID string
	AgreedAt                 *int64
}

// Add inserts the consent, or changes it. It returns the error of the database.
func (c Consent) Add(tx *db.Tx) error { return done(addConsent.Exec(tx, c)) }

// Task is a task of an account. The defaults of Status, Kind, Sink and Template are
// pending, work, queued and default; those of the title and the branch are the ID.
type Task struct {
	ID, Account, Repo, Kind, Sink, Status, Title, Problem, Template string
	Branch, Pull                                                    *string
	Budget                                                          *int64 // micro-dollars
	By                                                              *string
	Finished                                                        *int64 // microseconds
	Created                                                         int64  // microseconds
	Failure, Why                                                    string // a failure kind, and a sentence
}

// Add inserts the task. It returns the error of the database.
func (t Task) Add(tx *db.Tx) error {
	branch := t.ID
	if t.Branch != nil {
		branch = *t.Branch
	}
	return done(addTask.Exec(tx, addTaskArgs{
		ID: t.ID, AccountID: t.Account, RepoID: t.Repo, Kind: cmp.Or(t.Kind, "work"), Sink: cmp.Or(t.Sink, "queued"),
		Title: cmp.Or(t.Title, t.ID), Problem: t.Problem, Status: cmp.Or(t.Status, "pending"), Branch: branch,
		Template: cmp.Or(t.Template, "default"), PRID: t.Pull, BudgetMicros: t.Budget, RequestedBy: t.By,
		FinishedAt: t.Finished, CreatedAt: t.Created, FailureKind: db.NullText(t.Failure), Failure: db.NullText(t.Why),
	}))
}

// Run is the first, live attempt at a task on a box. The id of its claim is its ID.
type Run struct{ ID, Account, Task, Repo, Box string }

// Add inserts the run. It returns the error of the database.
func (r Run) Add(tx *db.Tx) error {
	return done(addRun.Exec(tx, addRunArgs{ID: r.ID, AccountID: r.Account, TaskID: r.Task, RepoID: r.Repo, BoxID: r.Box}))
}

// Pull is a pull request of an agent into main. The defaults of Number and State are
// 1 and open.
type Pull struct {
	ID, Account, Repo, State, Head, SHA string
	Number                              int
	Task                                *string
	Merged                              *int64 // microseconds
	Title, Body, Author                 string // t, none and agent unless given
	Merge                               string // the commit of the merge
	MergedBy                            string
	Closed                              *int64 // microseconds
	Needs                               string // why only a person gets it on
	Fork                                bool   // its branch is in another repository
}

// Add inserts the pull request. It returns the error of the database.
func (p Pull) Add(tx *db.Tx) error {
	return done(addPull.Exec(tx, addPullArgs{
		ID: p.ID, AccountID: p.Account, RepoID: p.Repo, Number: cmp.Or(p.Number, 1), State: cmp.Or(p.State, "open"),
		HeadRef: cmp.Or(p.Head, p.ID), HeadSHA: cmp.Or(p.SHA, "sha"), TaskID: p.Task, MergedAt: p.Merged,
		Title: cmp.Or(p.Title, "t"), Body: p.Body, AuthorKind: cmp.Or(p.Author, "agent"), MergeSHA: db.NullText(p.Merge),
		MergedBy: db.NullText(p.MergedBy), ClosedAt: p.Closed, Needs: p.Needs, Fork: p.Fork,
	}))
}

// Action is an action asked of a pull request and its head. The default of State is
// pending.
type Action struct {
	ID, Account, Pull, Kind, State string
	SHA                            string
	By                             *string
	Decided                        *int64 // microseconds
}

// Add inserts the action. It returns the error of the database.
func (a Action) Add(tx *db.Tx) error {
	return done(addAction.Exec(tx, addActionArgs{
		ID: a.ID, AccountID: a.Account, PRID: a.Pull, Kind: a.Kind, HeadSHA: a.SHA, State: cmp.Or(a.State, "pending"),
		DecidedBy: a.By, DecidedAt: a.Decided,
	}))
}

// Plan is a filed plan of an account, at its first revision.
type Plan struct{ ID, Account, Repo string }

// Add inserts the plan. It returns the error of the database.
func (p Plan) Add(tx *db.Tx) error { return done(addPlan.Exec(tx, p.ID, p.Account, p.Repo)) }

// Installation is one of the App at github:github.com, by an owner there.
type Installation struct {
	ID, Account, Owner string
	Gone               bool
}

// Add inserts the installation. It returns the error of the database.
func (i Installation) Add(tx *db.Tx) error {
	var gone *int64
	if i.Gone {
		gone = new(int64)
	}
	return done(addInstallation.Exec(tx, addInstallationArgs{ID: i.ID, AccountID: i.Account, OwnerLogin: i.Owner, GoneAt: gone}))
}

// HostToken is the token of a user at a code host. HostID is the permanent id there; ""
// as in a row from before that was kept.
type HostToken struct{ Account, User, Host, Login, HostID string }

// Add inserts the token. It returns the error of the database.
func (h HostToken) Add(tx *db.Tx) error {
	return done(addHostToken.Exec(tx, addHostTokenArgs{
		ID: "token-" + h.Account + h.User, AccountID: h.Account, UserID: h.User, Host: h.Host, Login: h.Login, HostUserID: h.HostID,
	}))
}

// Identity is how a user signs in elsewhere.
type Identity struct{ Issuer, Subject, User string }

// Add inserts the identity. It returns the error of the database.
func (i Identity) Add(tx *db.Tx) error {
	return done(addIdentity.Exec(tx, i.Issuer, i.Subject, i.User))
}

// Provider is the identity provider of an account, whose client secret nobody can
// open.
type Provider struct{ Account string }

// Add inserts the provider. It returns the error of the database.
func (p Provider) Add(tx *db.Tx) error { return done(addProvider.Exec(tx, p.Account)) }

// Session is the session of a run, or of an ask if Run is nil.
type Session struct {
	ID, Account, Repo string
	Model             string // "" until it calls one
	Kind              string // "" is work of a run, else triage
	Run, Task, By     *string
	Micros            *int64 // what it cost, in micro-dollars
	Unpriced          int64  // calls without a price
}

// Add inserts the session. It returns the error of the database.
func (s Session) Add(tx *db.Tx) error {
	trigger, kind := "task", "work"
	if s.Run == nil {
		trigger, kind = "ask", "triage"
	}
	if s.Kind != "" {
		kind = s.Kind
	}
	return done(addSession.Exec(tx, addSessionArgs{
		ID: s.ID, AccountID: s.Account, RepoID: s.Repo, RunID: s.Run, TaskID: s.Task, Trigger: trigger, Kind: kind,
		RequestedBy: s.By, Model: db.NullText(s.Model), CostMicros: s.Micros, Unpriced: s.Unpriced,
	}))
}

// Issue is an open issue of a repository, by bob, opened so many microseconds after 1970 as
// its Number. The default of Title is "It fails".
type Issue struct {
	ID, Account, Repo, Title string
	Number                   int64
}

// Add inserts the issue. It returns the error of the database.
func (i Issue) Add(tx *db.Tx) error {
	return done(addIssue.Exec(tx, addIssueArgs{
		ID: i.ID, AccountID: i.Account, RepoID: i.Repo, Title: cmp.Or(i.Title, "It fails"), Number: i.Number, CreatedAt: i.Number,
	}))
}

// Ask is an ask that a task was made of, unless State says otherwise.
type Ask struct {
	ID, Account, Task, State string
	Covered                  bool // the task was not made for it, and covers it
}

// Add implements Row.
func (a Ask) Add(tx *db.Tx) error {
	if err := a.add(tx); err != nil || !a.Covered {
		return err
	}
	return done(addCover.Exec(tx, a.Task, a.ID, a.Account))
}

func (a Ask) add(tx *db.Tx) error {
	return done(addAsk.Exec(tx, addAskArgs{
		ID: a.ID, AccountID: a.Account, State: cmp.Or(a.State, "triaged"), Verdict: `{"kind":"minted","task_ids":["` + a.Task + `"]}`,
	}))
}

// SpendDay is what a call of a session to a model cost on a day, counted from 1970.
type SpendDay struct {
	Account, Session, Model string
	Day, Micros             int64
}

// Add inserts the cost. It returns the error of the database.
func (d SpendDay) Add(tx *db.Tx) error { return done(addSpendDay.Exec(tx, d)) }

// Spend is what a session cost within a minute, in so many calls.
type Spend struct {
	Account, Session string
	Minute           int64 // microseconds
	Calls, Unpriced  int64
	Micros           *int64
}

// Add implements Row.
func (s Spend) Add(tx *db.Tx) error { return done(addSpend.Exec(tx, s)) }

// Check is a check that has ended.
type Check struct {
	ID, Account, Repo, Status string
	Finished                  int64 // microseconds
}

// Add implements Row.
func (c Check) Add(tx *db.Tx) error { return done(addCheck.Exec(tx, c)) }

// Escalation is an open escalation of an account.
type Escalation struct {
	ID, Account, Title, Ask string
	Created                 int64 // microseconds
}

// Add implements Row.
func (e Escalation) Add(tx *db.Tx) error { return done(addEscalation.Exec(tx, e)) }

// Digest is a digest of an account in which nothing happened.
type Digest struct{ ID, Account, Period string }

// Add implements Row.
func (d Digest) Add(tx *db.Tx) error { return done(addDigest.Exec(tx, d.ID, d.Account, d.Period)) }

// Choice switches a kind of notification off for a person, by a channel.
type Choice struct{ Account, User, Kind, Channel string }

// Add implements Row.
func (c Choice) Add(tx *db.Tx) error {
	return done(addChoice.Exec(tx, c))
}

// Webhook is an endpoint of an account that was given up, at a time in microseconds. Nobody
// can open its address.
type Webhook struct {
	ID, Account, Name string
	Unhealthy         int64
}

// Add implements Row.
func (w Webhook) Add(tx *db.Tx) error { return done(addWebhook.Exec(tx, w)) }

// TaskGone removes a task that nothing refers to.
type TaskGone struct{ ID string }

// Add removes the task. It returns the error of the database.
func (g TaskGone) Add(tx *db.Tx) error { return done(dropTask.Exec(tx, g.ID)) }
