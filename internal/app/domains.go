package app

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/bus"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/access"
	"yardmaster/internal/domain/account"
	"yardmaster/internal/domain/actor"
	"yardmaster/internal/domain/approval"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/audit"
	"yardmaster/internal/domain/backlog"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/command"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/creation"
	"yardmaster/internal/domain/dashboard"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/emailroute"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/domain/goal"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/hive"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/inquiry"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/join"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/lfs"
	"yardmaster/internal/domain/logsink"
	"yardmaster/internal/domain/member"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/oauth"
	"yardmaster/internal/domain/onboarding"
	"yardmaster/internal/domain/operator"
	"yardmaster/internal/domain/oss"
	"yardmaster/internal/domain/outbox"
	"yardmaster/internal/domain/overview"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/provenance"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/push"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
	"yardmaster/internal/domain/rollout"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/schedule"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/domain/stream"
	"yardmaster/internal/domain/talk"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/domain/whatif"
	"yardmaster/internal/event"
	"yardmaster/internal/flow"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/idp"
	"yardmaster/internal/linear"
	"yardmaster/internal/llm"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/webpush"
)

// domain is a package that has capabilities. Its work besides requests is a loop,
// see looping and serving.
type domain interface{ Ops() []op.Op }

// looping is a domain with work that is no request. Loop returns when its context
// ends, or with the error that keeps it from going on.
type looping interface{ Loop(context.Context) error }

// serving is a domain that answers the calls of boxes.
type serving interface{ Serve() error }

// parts are the domains of the product.
type parts struct {
	all []domain // in the order in which they were made

	// What App calls.
	signin   *signin.Service
	repo     *repo.Service
	queue    *queue.Service
	task     *task.Service
	run      *run.Service
	box      *box.Service
	budget   *budget.Service
	gateway  *gateway.Service
	blocker  *blocker.Service
	tokens   *hosttoken.Service
	hosts    *connection.Service
	quota    *quota.Service
	lfs      *lfs.Service
	schedule *schedule.Service
	kept     *artifact.Service
}

// wired are the domains while they are connected to each other: parts, and those
// that other domains, subscribers and streams are given and App does not call.
type wired struct {
	parts
	ci       *ci.Service
	issue    *issue.Service
	kb       *kb.Service
	pull     *pull.Service
	merges   *mergequeue.Service
	review   *review.Service
	talk     *talk.Service
	ask      *ask.Service
	intent   *intent.Service
	plan     *plan.Service
	approval *approval.Service
	webhook  *webhook.Service
	notes    *notification.Service
	actor    *actor.Service
	hive     *hive.Service
	proofs   *provenance.Service
	digest   *digest.Service
	boards   *dashboard.Service
	unasked  func(*db.Tx, string) error
}

// add adds a domain to the list of all and returns the domain.
func add[D domain](p *wired, d D) D {
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

// inOrder sorts capabilities by their own place in contents, or that of their group.
func inOrder(all []op.Op) {
	place := func(o op.Op) int {
		if i := slices.Index(contents, o.ID); i >= 0 {
			return i
		}
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

// ValuesOf lists the values that a field of an input or of an answer may have; none: it
// may have any.
func ValuesOf(sf reflect.StructField) []string { return op.Values(sf) }

// ModelProviders lists the providers of models that keys can be for.
func ModelProviders() []string { return llm.Provider("").Values() }

// Ops lists the capabilities without a server behind them, for documents, the
// command line and tests that walk the table.
func Ops() []op.Op {
	p := described()
	return p.ops("")
}

// Packages lists the import paths of the packages that have capabilities.
func Packages() []string {
	var all []string
	for _, d := range packed() {
		if len(d.Ops()) > 0 {
			all = append(all, reflect.TypeOf(d).Elem().PkgPath())
		}
	}
	return all
}

// OpsOf lists the capabilities of one package, such as
// yardmaster/internal/domain/task; none if it has none.
func OpsOf(pkg string) []op.Op {
	for _, d := range packed() {
		if reflect.TypeOf(d).Elem().PkgPath() == pkg {
			return d.Ops()
		}
	}
	return nil
}

// packed are the domains, and the tools that are made of all they can do.
func packed() []domain {
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

var describing struct {
	sync.Once
	parts
	due *due.Kernel
}

// described returns domains without a server, for documents. They stand on parts
// that open nothing, and none of their handlers can be called.
func described() parts {
	describing.Do(func() {
		a := &App{
			cfg: &config.Config{}, log: slog.New(slog.DiscardHandler), db: &db.DB{}, bus: &bus.Bus{}, hub: event.NewHub(), ring: seal.New(),
			clients: seal.New(),
			mail:    &mail.Outbox{}, blob: blob.Off{}, host: &builtin.Host{}, prices: &llm.Prices{},
		}
		describing.parts, describing.due = a.wire(), a.due
	})
	return describing.parts
}

// wire makes the domains and connects them to each other. A domain is made after
// those that it is given.
func (a *App) wire() parts {
	a.complete()
	var p wired
	invites := add(&p, invitation.New(invitation.Needs{
		DB: a.db, Mail: a.mail, Mailed: a.cfg.SMTPURL != "", BaseURL: a.base, Gifts: flow.Gifts{Ledger: grant.Ledger{Hub: a.hub}},
	}))
	gate := add(&p, access.New(access.Needs{DB: a.db, Invites: invites, Mail: a.mail, BaseURL: a.base, Bearer: a.cfg.ServiceToken}))
	add(&p, grant.New(grant.Needs{DB: a.db, Hub: a.hub, Gate: gate, Invitations: flow.Invitations{Invites: invites}}))
	p.signin = add(&p, signin.New(signin.Needs{
		DB: a.db, Clock: a.clock, Ring: a.ring, Mail: a.mail, Mailed: a.cfg.SMTPURL != "", Waitlist: a.cfg.Waitlist == "on",
		Seats:  a.cfg.Seats,
		GitHub: a.cfg.GitHubID != "", Invitations: flow.Invitations{Invites: invites}, Providers: a.signinProviders(),
	}))
	add(&p, sso.New(sso.Needs{
		DB: a.db, Ring: a.ring, SignIn: p.signin, BaseURL: a.base, Providers: idp.New(time.Now, a.guard()),
		GitHub: idp.GitHub{URL: a.cfg.GitHubURL, ClientID: a.cfg.GitHubID, ClientSecret: a.cfg.GitHubSecret},
	}))
	add(&p, account.New(account.Needs{DB: a.db, Seats: a.cfg.Seats, SetupToken: a.setup, Sessions: p.signin}))
	add(&p, operator.New(operator.Needs{DB: a.db, Hub: a.hub}))
	add(&p, outbox.New(outbox.Needs{DB: a.db, Mail: a.mail}))
	add(&p, oss.New(oss.Needs{DB: a.db, Hub: a.hub, Mail: a.mail}))
	tokens := add(&p, token.New(token.Needs{DB: a.db}))
	add(&p, member.New(member.Needs{
		DB: a.db, Invites: invites, Mail: a.mail, BaseURL: a.base, Tries: slots{counts: a.limits(), name: "added by login", most: 20},
	}))
	add(&p, oauth.New(oauth.Needs{DB: a.db, Ring: a.ring, Clients: a.clients, Tokens: tokens, Used: sync.OnceValue(p.used),
		Sessions: p.signin}))
	add(&p, template.New(template.Needs{DB: a.db, Hub: a.hub}))
	vaults := add(&p, vault.New(vault.Needs{DB: a.db, Ring: a.ring, Repos: flow.VaultRepos{}, Guard: a.guard()}))
	prompts := add(&p, prompt.New(prompt.Needs{DB: a.db, Platform: a.cfg.SystemPrompt, Refs: flow.PromptRefs{}}))
	models := a.modelGuard()
	transport := llm.NewTransport(models.Control)
	keys := add(&p, modelkey.New(modelkey.Needs{
		DB: a.db, Ring: a.ring, Hub: a.hub, PlainHTTP: a.cfg.HTTPKeys == "anywhere", Guard: models,
		Probe: llm.Probe{Transport: transport, Scripted: a.model}, Templates: flow.KeyTemplates{},
	}))
	sinks := add(&p, logsink.New(logsink.Needs{
		DB: a.db, Ring: a.ring, Hub: a.hub, PlainHTTP: a.cfg.HTTPKeys == "anywhere", Guard: models, Logger: a.log, Clock: a.clock,
		Version: a.opts.Version, Secrets: flow.LogSecrets{Vaults: vaults, Keys: keys},
	}))
	p.queue = add(&p, queue.New(queue.Needs{
		DB: a.db, Hub: a.hub, Most: int64(a.cfg.QueueCap), DefaultTemplate: template.Default,
		Repos: flow.TaskRepos{Hosts: a.hosts}, Templates: flow.QueueTemplates{}, Related: flow.QueueRelations{}, Commits: a.commits,
	}))
	linears := tracker.New(tracker.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Ring: a.ring, Linear: linear.New(linear.Address, a.road()), Logger: a.log,
	})
	p.task = add(&p, task.New(task.Needs{
		DB: a.db, Hub: a.hub, Backoff: a.backoff, DefaultTemplate: template.Default,
		Repos: flow.TaskRepos{Hosts: a.hosts}, Templates: flow.TaskTemplates{}, Related: flow.TaskRelations{}, Queue: p.queue,
		Lanes:   flow.TemplateLanes{},
		Tracker: flow.IssueSink{Linear: linears, Hosts: a.hosts},
	}))
	author := a.author()
	p.repo = add(&p, repo.New(repo.Needs{
		DB: a.db, Hub: a.hub, Hosts: a.hosts, Folders: a.repoFolders, Attempts: flow.GitTokens{DB: a.db},
		Contents: flow.Contents{Of: func() *lfs.Service { return p.lfs }},
		Holders:  flow.Holders{SignIn: p.signin},
		Pulls:    flow.Pulls{}, Logger: a.log,
	}))
	add(&p, creation.New(creation.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Logger: a.log, Hosts: a.hosts, Places: flow.CreationPlaces{},
		Repos:  flow.CreationRepos{Service: p.repo},
		Setups: flow.CreationSetups{Tasks: p.task, Hosts: a.hosts}, Author: author,
	}))
	p.intent = add(&p, intent.New(intent.Needs{DB: a.db, Due: a.due, Hosts: a.hosts, Logger: a.log}))
	p.tokens = add(&p, hosttoken.New(hosttoken.Needs{DB: a.db, Ring: a.ring, Hosts: a.hosts, Repos: flow.BoundRepos{}, Logger: a.log}))
	p.quota = add(&p, quota.New(quota.Needs{DB: a.db, Logger: a.log, Sizes: a.host, Clock: a.clock}))
	p.lfs = add(&p, lfs.New(lfs.Needs{
		DB: a.db, Ring: a.ring, Objects: a.kept(), Repos: flow.LFSRepos{}, Room: p.quota, Logger: a.log, BaseURL: a.base, Clock: a.now,
	}))
	p.kept = add(&p, artifact.New(artifact.Needs{
		DB: a.db, Due: a.due, Ring: a.ring, Objects: a.kept(), Bus: a.line, Places: flow.ArtifactPlaces{}, Room: p.quota,
		Logger: a.log, BaseURL: a.base, KeepRun: days(a.cfg.KeepRunFiles), Keep: days(a.cfg.KeepFiles),
	}))
	p.ci = add(&p, ci.New(ci.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Logger: a.log, Hosts: a.hosts, Tasks: flow.CheckTasks{Tasks: p.task, Hosts: a.hosts},
		Logs: flow.RunLogs{}, Objects: objectsWithin{a.kept(), p.quota}, Pulls: flow.CheckPulls{BaseURL: a.base}, Intents: p.intent,
	}))
	p.merges = add(&p, mergequeue.New(mergequeue.Needs{
		DB: a.db, Hub: a.hub, Hosts: a.hosts, Logger: a.log, Intents: p.intent, Bot: author, Orders: flow.MergeOrders{},
		Checks: flow.QueueChecks{Checks: p.ci, Tasks: p.task},
	}))
	p.pull = add(&p, pull.New(pull.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Hosts: a.hosts, BaseURL: a.base, Logger: a.log, Bot: author, Intents: p.intent,
		Reviews: flow.OpenFindings{},
		Tasks:   flow.PullTasks{Tasks: p.task, Hosts: a.hosts}, Checks: flow.Checks{Service: p.ci},
		People: flow.Signers{Address: author.Email, Persons: a.persons()}, Queue: flow.MergeQueue{Service: p.merges},
	}))
	p.proofs = add(&p, provenance.New(provenance.Needs{
		DB: a.db, Due: a.due, Ring: a.ring, Hosts: a.hosts, Artifacts: flow.ProofFiles{Service: p.kept}, Bot: author,
		BaseURL: a.base, Logger: a.log,
	}))
	p.review = add(&p, review.New(review.Needs{
		DB: a.db, Due: a.due, Hosts: a.hosts, Logger: a.log, Pulls: flow.ReviewPulls{Pulls: p.pull},
		Tasks: flow.ReviewTasks{Tasks: p.task, Hosts: a.hosts}, Models: flow.ReviewModels{}, Poster: review.NewAtHost(review.HostNeeds{
			DB: a.db, Hosts: a.hosts, Intents: p.intent, Page: p.pull,
		}),
	}))
	p.talk = add(&p, talk.New(talk.Needs{
		DB: a.db, Hosts: a.hosts, Intents: p.intent,
		Pulls: flow.Talked{Pulls: p.pull, People: flow.Signers{Address: author.Email, Persons: a.persons()}},
	}))
	reachable := a.guard()
	p.webhook = add(&p, webhook.New(webhook.Needs{
		DB: a.db, Hub: a.hub, Ring: a.ring, Guard: reachable, Sender: hook.NewSender(reachable, a.opts.Version, a.clock), Logger: a.log,
		Keep: days(a.cfg.KeepWebhooks), Process: a.boot,
	}))
	add(&p, linears)
	add(&p, source.New(source.Needs{
		DB: a.db, Hub: a.hub, Ring: a.ring, Logger: a.log, BaseURL: a.base, Asks: flow.SourceAsks{}, Echoes: flow.SourceEchoes{},
		Rate: slots{counts: a.limits(), name: "inbound", most: source.PerMinute}, Keep: days(a.cfg.KeepSource),
	}))
	p.issue = add(&p, issue.New(issue.Needs{
		DB: a.db, Due: a.due, Hosts: a.hosts, Logger: a.log, Intents: p.intent, Asks: flow.IssueAsks{},
		Webhooks: flow.IssueWebhooks{}, Escalations: flow.IssueEscalations{},
	}))
	commands := add(&p, command.New(command.Needs{
		DB: a.db, Hosts: a.hosts, Intents: p.intent, Logger: a.log, Names: hostNames{a},
		Work: flow.Commands{Pulls: p.pull, Reviews: p.review, Persons: a.persons()},
	}))
	p.hosts = add(&p, connection.New(connection.Needs{
		DB: a.db, Hub: a.hub, Ring: a.ring, Hosts: a.hosts, Maker: githubs{a}, Logger: a.log,
		Seats: a.cfg.Seats, Home: a.cfg.GitHubAppHome, Told: delivery.Told{},
		Owners: strings.FieldsFunc(strings.ToLower(a.cfg.GitHubOwners), func(r rune) bool { return r == ',' || r == ' ' }),
	}))
	add(&p, delivery.New(delivery.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Hosts: a.hosts, Logger: a.log, Clock: a.clock, Keep: days(a.cfg.KeepHost),
		Receiver: flow.HostEvents{
			DB: a.db, Hosts: a.hosts, Connections: p.hosts, Repos: p.repo, Pulls: p.pull, Checks: p.ci, Reviews: p.review,
			Issues: p.issue, Commands: commands, Merges: p.merges,
		},
	}))
	p.actor = add(&p, actor.New(actor.Needs{DB: a.db}))
	routes := add(&p, emailroute.New(emailroute.Needs{
		DB: a.db, Ring: a.ring, Mail: a.mail, BaseURL: a.base, Kinds: flow.RoutedKinds(),
	}))
	browsers := add(&p, push.New(push.Needs{
		DB: a.db, Due: a.due, Ring: a.ring, Guard: reachable, Sender: webpush.NewSender(reachable, a.pushKeys, a.base), Logger: a.log,
	}))
	p.notes = add(&p, notification.New(notification.Needs{
		DB: a.db, Hub: a.hub, Ring: a.ring, Mail: a.mail, BaseURL: a.base, Logger: a.log,
		Push: flow.Browsers{Push: browsers}, Webhook: flow.NoticeHooks{Hooks: p.webhook}, Routes: flow.Routes{Routes: routes},
		Keep: days(a.cfg.KeepInbox),
	}))
	p.approval = add(&p, approval.New(approval.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Ring: a.ring, Mail: a.mail, BaseURL: a.base, Logger: a.log,
		Questions: flow.Questions{Pulls: p.pull}, Wishes: flow.ApprovalWishes{Notifications: p.notes},
	}))
	add(&p, onboarding.New(onboarding.Needs{DB: a.db, Rungs: flow.Rungs{Tasks: p.task, Queue: p.queue}}))
	p.run = add(&p, run.New(run.Needs{
		DB: a.db, Hub: a.hub, Tasks: p.task, Queue: p.queue, Bus: a.line, Logger: a.log, Lease: a.cfg.Lease,
		GatewayURL: a.base + "/gateway", KeepEvents: days(a.cfg.KeepEvents),
		CommitName: author.Name, CommitEmail: author.Email,
		Setup: flow.RunSetup{Prompts: prompts, Vaults: vaults, Ring: a.ring, Hosts: a.hosts},
		Boxes: flow.RunBoxes{}, Vault: flow.RunVault{Vaults: vaults}, Branches: flow.Branches{DB: a.db, Hosts: a.hosts},
		Settler: flow.Settler{Tasks: p.task, Pulls: p.pull, Checks: p.ci, Reviews: p.review},
		Asks:    flow.RunAsks{}, Artifacts: flow.RunArtifacts{},
	}))
	programs := &flow.BoxPrograms{}
	p.box = add(&p, box.New(box.Needs{
		DB: a.db, Hub: a.hub, Bus: a.line, Logger: a.log, Runs: p.run, Programs: programs,
		ReleaseKeys: release.Keys(a.ring, a.cfg.ReleaseKeys),
	}))
	add(&p, join.New(join.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Boxes: p.box, Guard: reachable, Key: a.sshKey, Logger: a.log,
	}))
	releases := add(&p, release.New(release.Needs{
		DB: a.db, Ring: a.ring, Logger: a.log, Objects: a.blob, Boxes: p.box, Version: a.opts.Version, Commit: a.opts.SHA,
	}))
	programs.Releases = releases
	add(&p, rollout.New(rollout.Needs{
		DB: a.db, Due: a.due, Logger: a.log, Ring: a.ring, Bus: a.line, Boxes: p.box, Releases: releases, Runs: flow.RolloutRuns{},
	}))
	p.plan = add(&p, plan.New(plan.Needs{
		DB: a.db, Tasks: p.task, Hosts: a.hosts, Logger: a.log, Scouts: flow.Scouts{Runs: p.run}, Repos: flow.PlanRepos{Repos: p.repo},
		Asks: flow.PlanAsks{}, Pulls: flow.Pulls{}, Boxes: p.queue,
		Budgets: flow.PlanBudgets{}, CommitName: author.Name, CommitEmail: author.Email,
	}))
	add(&p, whatif.New(whatif.Needs{DB: a.db}))
	p.hive = add(&p, hive.New(hive.Needs{DB: a.db, Version: a.opts.Version}))
	p.budget = add(&p, budget.New(budget.Needs{
		DB: a.db, Hub: a.hub, Logger: a.log, Clock: a.clock, Node: id.New(), Work: flow.BudgetWork{},
		Prices: flow.Prices{Server: a.prices},
	}))
	pays := add(&p, payment.New(a.payment(p.budget)))
	sessions := add(&p, session.New(session.Needs{DB: a.db, Hub: a.hub, Runs: flow.SessionRuns{Runs: p.run}, Policies: flow.Policies{}}))
	p.gateway = add(&p, gateway.New(gateway.Needs{
		DB: a.db, Logger: a.log, Clock: a.clock, Attempts: flow.ModelTokens{Runs: p.run}, Keys: keys, Budget: p.budget, Sessions: sessions,
		Prices: a.prices, Counts: modelCalls{a}, Taps: sinks, Parking: flow.Parking{DB: a.db}, Places: places{a},
		HTTP: llm.Config{Scripted: a.model, Transport: transport, Observe: a.watching.modelCalls()},
	}))
	p.ask = add(&p, ask.New(ask.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Logger: a.log, Judge: flow.TriageModel{DB: a.db, Gateway: p.gateway},
		Queue: flow.AskQueue{Tasks: p.task, Queue: p.queue, Hosts: a.hosts}, Boxes: flow.AskBoxes{},
		Plans: flow.AskPlans{Plans: p.plan, Hosts: a.hosts}, Budgets: flow.JudgeStops{}, Issues: flow.AskIssues{Issues: p.issue},
		Pages: flow.AskPages{},
	}))
	p.kb = add(&p, kb.New(kb.Needs{DB: a.db, Due: a.due, Logger: a.log, Hosts: a.hosts, Runs: flow.PageRuns{},
		Model: flow.PageModel{DB: a.db, Gateway: p.gateway}, Tasks: flow.PageTasks{Tasks: p.task, Hosts: a.hosts}}))
	add(&p, inquiry.New(inquiry.Needs{
		DB: a.db, Logger: a.log, Hosts: a.hosts, Model: flow.InquiryModel{DB: a.db, Gateway: p.gateway}, Pages: flow.InquiryPages{},
		Rate: slots{counts: a.limits(), name: "questions", most: inquiry.PerMinute}}))
	p.blocker = add(&p, blocker.New(blocker.Needs{
		DB: a.db, Ring: a.ring, BaseURL: a.base, Repos: flow.BlockerRepos{}, Vault: flow.BlockerVault{Service: vaults},
		Tasks: flow.BlockerTasks{Tasks: p.task}, Asks: flow.BlockerAsks{},
	}))
	add(&p, escalation.New(escalation.Needs{DB: a.db}))
	add(&p, backlog.New(backlog.Needs{DB: a.db, Due: a.due, Logger: a.log, Hosts: a.hosts, Asks: flow.BacklogAsks{Issues: p.issue}}))
	p.schedule = add(&p, schedule.New(schedule.Needs{
		DB: a.db, Due: a.due, Logger: a.log, Repos: flow.ScheduleRepos{}, Asks: flow.ScheduleAsks{}}))
	p.digest = add(&p, digest.New(digest.Needs{
		DB: a.db, Due: a.due, Logger: a.log, BaseURL: a.base, Actors: p.actor,
		Mails: flow.DigestMails{Outbox: a.mail, Notifications: p.notes}, Keep: days(a.cfg.KeepDigests),
	}))
	p.boards = add(&p, dashboard.New(dashboard.Needs{DB: a.db, Due: a.due, Repos: flow.DashboardRepos{}, Logger: a.log}))
	add(&p, donation.New(donation.Needs{
		DB: a.db, Hub: a.hub, Keys: keys, Boxes: flow.DonationBoxes{Boxes: p.box}, Donors: pays, Prices: a.prices,
	}))
	p.unasked = a.closure(&p, pays)
	add(&p, overview.New(overview.Needs{DB: a.db, Donations: flow.Donations{}, Tasks: p.queue, Quotas: p.quota,
		Boxes: flow.FleetBoxes{Boxes: p.box}, Knowledge: flow.Knowledge{}}))
	add(&p, stream.New(stream.Needs{DB: a.db, Hub: a.hub, Repos: repoIDs{}, Topics: topics(p), Own: ownTopics(p)}))
	add(&p, goal.New(goal.Needs{DB: a.db, Board: flow.GoalBoard{DB: a.db, Hosts: a.hosts, Place: a.cfg.GoalsRepo}}))
	add(&p, audit.New(audit.Needs{DB: a.db}))
	add(&p, service.New(a.about(p.signin, p.run)))
	a.subscribe(p)
	return p.parts
}
