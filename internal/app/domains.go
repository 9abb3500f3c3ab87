package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/bus"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/access"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/audit"
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
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/event"
	"yardmaster/internal/llm"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// domain is a package that has capabilities. What it does besides requests is a
// loop, see looping and serving.
type domain interface{ Ops() []op.Op }

// looping is a domain with work that is no request. Loop returns when its context
// ends, or with what keeps it from going on.
type looping interface{ Loop(context.Context) error }

// serving is a domain that answers the calls of boxes.
type serving interface{ Serve() error }

// parts are the domains of the product.
type parts struct {
	all []domain // in the order in which they were made

	// What others are given, or App calls.
	account *account.Service
	signin  *signin.Service
	token   *token.Service
	repo    *repo.Service
	pull    *pull.Service
	ask     *ask.Service
	task    *task.Service
	plan    *plan.Service
	run     *run.Service
	box     *box.Service
	billing *modelkey.Service
	budget  *budget.Service
	session *session.Service
	grant   *grant.Service
	onboard *onboarding.Service
	invites *invitation.Service
	access  *access.Service
	vault   *vault.Service
	blocker *blocker.Service
	prompt  *prompt.Service

	gateway http.Handler
}

// add puts a domain on the list of all, and returns it.
func add[D domain](p *parts, d D) D {
	p.all = append(p.all, d)
	return d
}

// ops are all capabilities, in the order of contents.
func (p *parts) ops(version string) []op.Op {
	var all []op.Op
	for _, d := range p.all {
		all = append(all, d.Ops()...)
	}
	inOrder(all)
	all = append(all, mcp.New(version, all).Ops()...)
	inOrder(all)
	return all
}

// inOrder sorts capabilities by the place of their group in contents.
func inOrder(all []op.Op) {
	place := func(o op.Op) int {
		group, _, _ := strings.Cut(o.ID, ".")
		if i := slices.Index(contents, group); i >= 0 {
			return i
		}
		return len(contents)
	}
	slices.SortStableFunc(all, func(a, b op.Op) int { return cmp.Compare(place(a), place(b)) })
}

// Op is a capability.
type Op = op.Op

// Ops lists the capabilities without a server behind them, for documents, the
// command line and tests that walk the table.
func Ops() []op.Op {
	p := described()
	return p.ops("")
}

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
	p := described()
	return append(p.all, mcp.New("", p.ops("")))
}

// used are the scopes that some capability requires.
func (p *parts) used() (all policy.Set) {
	for _, o := range p.ops("") {
		all |= o.Rule.Scopes()
	}
	return all
}

// loops is the work that is not a request. Each runs until its context ends.
func (a *App) loops() []func(context.Context) error {
	var all []func(context.Context) error
	for _, d := range a.parts.all {
		if l, ok := d.(looping); ok {
			all = append(all, l.Loop)
		}
	}
	all = append(all, a.mail.Loop, a.notary.Loop, a.ledger().Loop, a.keeper().Loop, a.answerBoxes, a.watchStorage, a.keepLease)
	if a.relay != nil {
		all = append(all, a.relay.Loop)
	}
	return all
}

// answerBoxes answers the calls of boxes.
func (a *App) answerBoxes(ctx context.Context) error {
	for _, d := range a.parts.all {
		if s, ok := d.(serving); ok {
			if err := s.Serve(); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return nil
}

var describing struct {
	sync.Once
	parts
}

// described are the domains of no server, for documents: they stand on parts
// that open nothing, and none of their handlers can be called.
func described() parts {
	describing.Do(func() {
		a := &App{
			cfg: &config.Config{}, log: slog.New(slog.DiscardHandler), db: &db.DB{}, bus: &bus.Bus{}, hub: event.NewHub(), ring: seal.New(), clients: seal.New(),
			mail: &mail.Outbox{}, host: &builtin.Host{}, prices: &llm.Prices{},
		}
		describing.parts = a.wire()
	})
	return describing.parts
}

// wire makes the domains, each after those that it is given, and connects them
// to each other.
func (a *App) wire() parts {
	var p parts
	p.signin = add(&p, a.wireSignIn(func() *invitation.Service { return p.invites }))
	add(&p, a.wireSSO(p.signin))
	p.account = add(&p, &account.Service{DB: a.db, Hub: a.hub, Seats: a.cfg.Seats, SetupToken: a.setup, SignIn: signin.Open, Repoint: p.signin.Repoint, Mail: a.post})
	p.grant = add(&p, &grant.Service{DB: a.db, Hub: a.hub})
	p.onboard = add(&p, &onboarding.Service{DB: a.db, Devs: grant.Seats, Secrets: vault.Reach})
	p.token = add(&p, &token.Service{DB: a.db})
	p.invites = add(&p, &invitation.Service{DB: a.db, Mail: a.mail, Mailed: a.cfg.SMTPURL != "", BaseURL: a.URL})
	p.access = add(&p, &access.Service{DB: a.db, Invites: p.invites, Mail: a.mail, BaseURL: a.URL, Bearer: a.cfg.ServiceToken, Home: grant.Home})
	p.grant.Approve, p.grant.Invite = p.access.LetIn, func(tx *db.Tx, email string, g grant.Gift) (string, bool, error) {
		return p.invites.SendOnce(tx, invitation.Offer{Kind: invitation.Platform, Email: email, Inviter: "Yardmaster",
			Bundle: invitation.Bundle{AIDevs: int(g.AIDevs), ExpiresInDays: g.Days, Reason: g.Reason, IssuedBy: g.IssuedBy}})
	}
	p.invites.Give = func(tx *db.Tx, userID string, b invitation.Bundle) (bool, error) {
		// Links that were mailed before the reason was kept came off the waitlist.
		g := grant.Gift{AIDevs: int64(b.AIDevs), Days: b.ExpiresInDays, Reason: cmp.Or(b.Reason, "invited off the waitlist"), IssuedBy: b.IssuedBy}
		return p.grant.Give(tx, userID, g)
	}
	add(&p, &member.Service{DB: a.db, Invites: p.invites, Mail: a.mail, BaseURL: a.URL, Slot: a.slots("added by login", 20)})
	add(&p, &oauth.Service{DB: a.db, Ring: a.ring, Clients: a.clients, Tokens: p.token, Used: p.used, Within: p.signin.Within})
	add(&p, &template.Service{DB: a.db, Hub: a.hub})
	p.vault = add(&p, a.newVault())
	p.billing = add(&p, &modelkey.Service{DB: a.db, Ring: a.ring, Hub: a.hub, PlainHTTP: a.plainHTTP(), Adopt: adopt,
		Models: llm.Probe{Transport: llm.NewTransport(a.models)}.Models})
	add(&p, a.newService(p.signin))
	p.task = add(&p, &task.Service{
		DB: a.db, Hub: a.hub, QueueCap: int64(a.cfg.QueueCap), DefaultTemplate: template.Default,
		RepoByName: a.repoByName, RepoByID: a.repoByID, ReposByID: a.reposByID, Template: need, Needs: needs, Seats: grant.Seats,
		Spent: session.Spent, SetAside: budget.SetAside,
	})
	author := a.author()
	p.onboard.Fleet = a.fleet(p.task)
	p.run = add(&p, &run.Service{
		DB: a.db, Hub: a.hub, Tasks: p.task, Bus: a.bus, Logger: a.log, Lease: a.cfg.Lease, GatewayURL: a.base + "/gateway", Policy: policyNow,
		CommitName: author.Name, CommitEmail: author.Email, Template: runTemplate,
	})
	p.task.StopRun, p.task.Endings, p.task.Pulse, p.task.PROpen = p.run.Stop, p.run.Endings, p.run.Pulse, pull.IsOpen
	p.box = add(&p, &box.Service{
		DB: a.db, Hub: a.hub, Bus: a.bus, Logger: a.log, Member: people.IsMember, Verdicts: p.run.Verdicts, Dismiss: p.run.Dismiss, Active: run.LiveOn,
		Evacuate: func(tx *db.Tx, boxID, why string) (int, error) {
			if why == box.WhyDrained {
				return p.run.Evacuate(tx, boxID, task.BoxDrained, "The box was drained while it was offline.")
			}
			return p.run.Evacuate(tx, boxID, task.BoxLost, "The box was revoked.")
		},
	})
	p.run.SendCommand, p.run.BoxUnfit, p.run.Vault, p.run.SealKey = p.box.Owe, p.box.MarkUnfit, p.vault.ForRun, box.SealKey
	p.repo = add(&p, &repo.Service{
		DB: a.db, Hub: a.hub, Host: a.host, BaseURL: a.URL, Attempt: attemptAccess(p.run),
		Authenticate: func(ctx context.Context, bearer string) (policy.Actor, error) {
			return p.signin.Authenticate(ctx, signin.Presented{Bearer: bearer})
		},
	})
	p.pull = add(&p, &pull.Service{DB: a.db, Hub: a.hub, Host: a.host, BaseURL: a.URL, Logger: a.log, Settled: a.merged(p.repo), Bot: author, Signers: signers(author)})
	a.wirePulls(p.pull, p.task)
	a.wireConflicts(p.pull, p.task)
	a.wireBabysit(p.pull, p.task)
	p.repo.OpenHeads, p.repo.Logger = pull.OpenHeads, a.log
	p.repo.Maintain, p.repo.Missing = a.host.Maintain, a.host.Missing
	p.plan = add(&p, a.wirePlans(p))
	p.run.OnFinished, p.run.BranchAt = a.settle(p.task, p.pull), a.branchOn(a.host)
	p.blocker = add(&p, a.newBlockers(p.vault, p.task, p.run))
	p.prompt = add(&p, a.newPrompts())
	p.run.BriefNotes, p.run.Servers = briefNotes(p.prompt, p.blocker, p.vault), taskServers(p.vault)
	p.budget = add(&p, a.budgets(p.task))
	p.session = add(&p, a.sessions(p))
	add(&p, &overview.Service{DB: a.db})
	add(&p, &stream.Service{DB: a.db, Hub: a.hub, Topics: topics(p)})
	add(&p, &audit.Service{DB: a.db})
	p.gateway = llm.NewGateway(llm.Config{Authorizer: p.session, Reserver: p.session, Recorder: p.session, Logger: a.log, Now: time.Now, Scripted: a.model, Prices: a.prices,
		Transport: llm.NewTransport(a.models)})
	p.session.Calls = llm.Caller{Gateway: p.gateway}
	p.ask = add(&p, a.wireAsks(p.task, p.run, p.session))
	p.ask.Stops = judgeStops
	add(&p, &escalation.Service{DB: a.db})
	add(&p, a.wireBacklog(p.ask))
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
