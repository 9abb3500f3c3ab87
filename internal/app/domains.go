package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"time"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/access"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/audit"
	"yardmaster/internal/domain/backlog"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/member"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/oauth"
	"yardmaster/internal/domain/onboarding"
	"yardmaster/internal/domain/overview"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/llm"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

// parts are the domains of the product.
type parts struct {
	service  *service.Service
	account  *account.Service
	signin   *signin.Service
	sso      *sso.Service
	token    *token.Service
	repo     *repo.Service
	pull     *pull.Service
	ask      *ask.Service
	escalate *escalation.Service
	task     *task.Service
	plan     *plan.Service
	run      *run.Service
	box      *box.Service
	template *template.Service
	billing  *modelkey.Service
	budget   *budget.Service
	overview *overview.Service
	stream   *stream.Service
	session  *session.Service
	audit    *audit.Service
	grant    *grant.Service
	onboard  *onboarding.Service
	oauth    *oauth.Service

	invites *invitation.Service
	member  *member.Service
	access  *access.Service
	vault   *vault.Service
	blocker *blocker.Service
	backlog *backlog.Service
	prompt  *prompt.Service

	gateway http.Handler
}

// domain is a package that has capabilities.
type domain interface{ Ops() []op.Op }

// domains are all that have capabilities, in the order of the contract's tables.
func (p parts) domains() []domain {
	return []domain{
		p.service,
		p.oauth,
		p.account,
		p.signin,
		p.sso,
		p.token,
		p.member,
		p.invites,
		p.access,
		p.billing,
		p.budget,
		p.repo,
		p.pull,
		p.ask,
		p.escalate,
		p.backlog,
		p.task,
		p.run,
		p.plan,
		p.box,
		p.template,
		p.vault,
		p.blocker,
		p.prompt,
		p.session,
		p.overview,
		p.stream,
		p.audit,
		p.grant,
		p.onboard,
	}
}

// ops are all capabilities, in the order of the contract's tables.
func (p parts) ops() []op.Op {
	var all []op.Op
	for _, d := range p.domains() {
		all = append(all, d.Ops()...)
	}
	return append(all, mcp.New(p.service.Version, all).Ops()...)
}

// Op is a capability.
type Op = op.Op

// Ops lists the capabilities without a server behind them, for documents, the
// command line and tests that walk the table.
func Ops() []op.Op { return unwired().ops() }

// Packages lists the import paths of the packages that have capabilities.
func Packages() []string {
	var all []string
	for _, d := range homes() {
		all = append(all, reflect.TypeOf(d).Elem().PkgPath())
	}
	return all
}

// OpsOf lists the capabilities of one package, such as
// yardmaster/internal/domain/task; none if it has none.
func OpsOf(pkg string) []op.Op {
	for _, d := range homes() {
		if reflect.TypeOf(d).Elem().PkgPath() == pkg {
			return d.Ops()
		}
	}
	return nil
}

// homes are the domains, and the tools that are made of all they can do.
func homes() []domain {
	p := unwired()
	return append(p.domains(), mcp.New("", p.ops()))
}

// unwired are the domains without a server behind them.
func unwired() parts {
	return parts{
		service:  &service.Service{},
		account:  &account.Service{},
		signin:   &signin.Service{},
		sso:      &sso.Service{},
		token:    &token.Service{},
		access:   &access.Service{},
		member:   &member.Service{},
		invites:  &invitation.Service{},
		repo:     &repo.Service{},
		pull:     &pull.Service{},
		ask:      &ask.Service{},
		escalate: &escalation.Service{},
		backlog:  &backlog.Service{},
		task:     &task.Service{},
		plan:     &plan.Service{},
		run:      &run.Service{},
		box:      &box.Service{},
		template: &template.Service{},
		vault:    &vault.Service{},
		blocker:  &blocker.Service{},
		prompt:   &prompt.Service{},
		billing:  &modelkey.Service{},
		budget:   &budget.Service{},
		overview: &overview.Service{},
		stream:   &stream.Service{},
		session:  &session.Service{},
		audit:    &audit.Service{},
		grant:    &grant.Service{},
		onboard:  &onboarding.Service{},
		oauth:    &oauth.Service{},
	}
}

// used are the scopes that a capability requires.
func used() (all policy.Set) {
	for _, o := range Ops() {
		all |= o.Rule.Scopes()
	}
	return all
}

// loops is the work that is not a request. Each runs until its context ends.
func (a *App) loops() []func(context.Context) error {
	p := a.parts
	all := []func(context.Context) error{
		p.signin.Loop,
		p.repo.Loop,
		p.pull.Loop,
		p.ask.Loop,
		p.backlog.Loop,
		p.run.Loop,
		p.box.Loop,
		p.budget.Loop,
		a.mail.Loop,
		a.notary.Loop,
		a.ledger().Loop,
		a.keeper().Loop,
		a.answerBoxes,
		a.watchStorage,
		a.keepLease,
	}
	if a.relay != nil {
		all = append(all, a.relay.Loop)
	}
	return all
}

// answerBoxes answers the calls of boxes.
func (a *App) answerBoxes(ctx context.Context) error {
	if err := errors.Join(a.parts.box.Serve(), a.parts.run.Serve()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// wire makes the domains and connects them to each other.
func (a *App) wire() parts {
	var p parts
	p.signin = a.wireSignIn(func() *invitation.Service { return p.invites })
	p.sso = a.wireSSO(p.signin)
	p.account = &account.Service{DB: a.db, Hub: a.hub, Seats: a.cfg.Seats, SetupToken: a.setup, SignIn: signin.Open, Repoint: p.signin.Repoint, Mail: a.post}
	p.grant = &grant.Service{DB: a.db, Hub: a.hub}
	p.onboard = &onboarding.Service{DB: a.db, Devs: grant.Seats, Secrets: vault.Reach}
	p.token = &token.Service{DB: a.db}
	p.invites = &invitation.Service{DB: a.db, Mail: a.mail, Mailed: a.cfg.SMTPURL != "", BaseURL: a.URL}
	p.access = &access.Service{DB: a.db, Invites: p.invites, Mail: a.mail, BaseURL: a.URL, Bearer: a.cfg.ServiceToken, Home: grant.Home}
	p.grant.Approve, p.grant.Invite = p.access.LetIn, func(tx *db.Tx, email string, g grant.Gift) (string, bool, error) {
		return p.invites.SendOnce(tx, invitation.Offer{Kind: invitation.Platform, Email: email, Inviter: "Yardmaster",
			Bundle: invitation.Bundle{AIDevs: int(g.AIDevs), ExpiresInDays: g.Days, Reason: g.Reason, IssuedBy: g.IssuedBy}})
	}
	p.invites.Give = func(tx *db.Tx, userID string, b invitation.Bundle) (bool, error) {
		// Links that were mailed before the reason was kept came off the waitlist.
		g := grant.Gift{AIDevs: int64(b.AIDevs), Days: b.ExpiresInDays, Reason: cmp.Or(b.Reason, "invited off the waitlist"), IssuedBy: b.IssuedBy}
		return p.grant.Give(tx, userID, g)
	}
	p.member = &member.Service{DB: a.db, Invites: p.invites, Mail: a.mail, BaseURL: a.URL, Slot: a.slots("added by login", 20)}
	p.oauth = &oauth.Service{DB: a.db, Ring: a.ring, Clients: a.clients, Tokens: p.token, Used: used(), Within: p.signin.Within}
	p.template = &template.Service{DB: a.db, Hub: a.hub}
	p.vault = a.newVault()
	p.billing = &modelkey.Service{DB: a.db, Ring: a.ring, Hub: a.hub, PlainHTTP: a.plainHTTP(), Adopt: adopt,
		Models: llm.Probe{Transport: llm.NewTransport(a.models)}.Models}
	p.service = &service.Service{
		Who: func(ctx context.Context) (string, string, error) {
			who, err := p.signin.Who(ctx)
			return who.Login, who.Account, err
		},
		Version: a.opts.Version, SHA: a.opts.SHA, Document: sync.OnceValues(func() (*op.Asset, error) { return documentAsset(a.opts.Version) }),
		Reference: sync.OnceValues(func() (*op.Asset, error) { return referenceAsset(a.opts.Version) }),
		Probes: map[string]func(context.Context) error{
			"database": a.db.Ping,
			"bus":      a.bus.Ping,
			"events":   func(context.Context) error { return a.parts.run.Stuck() },
			"storage":  a.storage, "migrations": a.migrated, "mail": a.mails, "repositories": a.repositories,
		},
		Needed: []string{"database", "bus", "migrations", "storage", "mail"}, Free: a.free, Stopping: a.stopping.Load,
	}
	if a.cache != nil {
		p.service.Probes["cache"] = a.cache.Ping
	}
	p.task = &task.Service{
		DB: a.db, Hub: a.hub, QueueCap: int64(a.cfg.QueueCap), DefaultTemplate: template.Default,
		RepoByName: a.repoByName, RepoByID: a.repoByID, ReposByID: a.reposByID, Template: need, Needs: needs, Seats: grant.Seats,
		Spent: session.Spent, SetAside: budget.SetAside,
	}
	author := a.author()
	p.onboard.Fleet = a.fleet(p.task)
	p.run = &run.Service{
		DB: a.db, Hub: a.hub, Tasks: p.task, Bus: a.bus, Logger: a.log, Lease: a.cfg.Lease, GatewayURL: a.base + "/gateway", Policy: policyNow,
		CommitName: author.Name, CommitEmail: author.Email, Template: runTemplate,
	}
	p.task.StopRun, p.task.Endings, p.task.Pulse, p.task.PROpen = p.run.Stop, p.run.Endings, p.run.Pulse, pull.IsOpen
	p.box = &box.Service{
		DB: a.db, Hub: a.hub, Bus: a.bus, Logger: a.log, Member: people.IsMember, Verdicts: p.run.Verdicts, Dismiss: p.run.Dismiss, Active: run.LiveOn,
		Evacuate: func(tx *db.Tx, boxID, why string) (int, error) {
			if why == box.WhyDrained {
				return p.run.Evacuate(tx, boxID, task.BoxDrained, "The box was drained while it was offline.")
			}
			return p.run.Evacuate(tx, boxID, task.BoxLost, "The box was revoked.")
		},
	}
	p.run.SendCommand, p.run.BoxUnfit, p.run.Vault, p.run.SealKey = p.box.Owe, p.box.MarkUnfit, p.vault.ForRun, box.SealKey
	p.repo = &repo.Service{
		DB: a.db, Hub: a.hub, Host: a.host, BaseURL: a.URL, Attempt: attemptAccess(p.run),
		Authenticate: func(ctx context.Context, bearer string) (policy.Actor, error) {
			return p.signin.Authenticate(ctx, signin.Presented{Bearer: bearer})
		},
	}
	p.pull = &pull.Service{DB: a.db, Hub: a.hub, Host: a.host, BaseURL: a.URL, Logger: a.log, Settled: a.merged(p.repo), Bot: author, Signers: signers(author)}
	a.wirePulls(p.pull, p.task)
	a.wireConflicts(p.pull, p.task)
	a.wireBabysit(p.pull, p.task)
	p.repo.OpenHeads, p.repo.Logger = pull.OpenHeads, a.log
	p.repo.Maintain, p.repo.Missing = a.host.Maintain, a.host.Missing
	p.plan = a.wirePlans(p)
	p.run.OnFinished, p.run.BranchAt = a.settle(p.task, p.pull), a.branchOn(a.host)
	p.blocker = a.newBlockers(p.vault, p.task, p.run)
	p.prompt = a.newPrompts()
	p.run.BriefNotes, p.run.Servers = briefNotes(p.prompt, p.blocker, p.vault), taskServers(p.vault)
	p.budget = a.budgets(p.task)
	p.session = a.sessions(p)
	p.overview = &overview.Service{DB: a.db}
	p.stream = &stream.Service{DB: a.db, Hub: a.hub, Topics: topics(p)}
	p.audit = &audit.Service{DB: a.db}
	p.gateway = llm.NewGateway(llm.Config{Authorizer: p.session, Reserver: p.session, Recorder: p.session, Logger: a.log, Now: time.Now, Scripted: a.model, Prices: a.prices,
		Transport: llm.NewTransport(a.models)})
	p.session.Calls = llm.Caller{Gateway: p.gateway}
	p.ask = a.wireAsks(p.task, p.run, p.session)
	p.ask.Stops = judgeStops
	p.escalate = &escalation.Service{DB: a.db}
	p.backlog = a.wireBacklog(p.ask)
	a.wireTriage(p.ask, p.plan, p.blocker)
	a.subscribe(p)
	return p
}

// post owes a letter to somebody.
func (a *App) post(tx *db.Tx, to, subject, text string) error {
	return a.mail.Post(tx, mail.Message{To: to, Subject: subject, Text: text})
}

// resolveModelToken tells the gateway which attempt a token belongs to.
func (a *App) resolveModelToken(runs *run.Service) func(context.Context, string) (session.Attempt, bool, error) {
	return func(ctx context.Context, tok string) (out session.Attempt, ok bool, err error) {
		acc, ok, err := runs.ResolveToken(ctx, tok, run.TokenModel)
		if err != nil || !ok {
			return out, ok, err
		}
		err = a.db.Read(ctx, func(tx *db.Tx) error {
			t, _, err := template.ByName(tx, acc.AccountID, acc.Template)
			out = session.Attempt{RunID: acc.RunID, SessionID: acc.SessionID, AccountID: acc.AccountID, Provider: t.Provider, Model: t.Model, BaseURL: t.BaseURL}
			return err
		})
		return out, true, err
	}
}
