package box

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/box/broker"
	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// proxyPort is the port of the model proxy in a sandbox with a network of its own.
const proxyPort = 7070

// systemPath is the search path of a sandbox, after the folders that the agent
// adds.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

// reportFile is the report that an agent may leave in its home. ReportVariable
// names it.
const reportFile = "report.md"

// ReportVariable is the environment variable with the path of the agent's report.
const ReportVariable = "YARDMASTER_REPORT"

// promptFile holds the prompt for a command. PromptVariable names it.
const promptFile = "prompt.md"

// PromptVariable is the environment variable with the path of the prompt for a
// command. A command calls the model as the built-in agent does.
const PromptVariable = "YARDMASTER_PROMPT"

// place holds the paths and addresses as the agent in a sandbox sees them.
type place struct{ task, home, proxy, broker string }

func (b *box) place(a *attempt, level sandbox.Level) place {
	if level == sandbox.Bubblewrap {
		return place{sandbox.TaskDir, sandbox.HomeDir, fmt.Sprintf("http://127.0.0.1:%d", proxyPort),
			fmt.Sprintf("127.0.0.1:%d", secretsPort)}
	}
	return place{a.taskPath(), a.homePath(), "http://" + b.port, b.brokerPort}
}

// spec is the part of the sandbox's specification that all kinds of runs share.
func (b *box) spec(a *attempt, w *workspace, level sandbox.Level) sandbox.Spec {
	in := b.place(a, level)
	s := sandbox.Spec{
		Level:    level,
		Task:     a.taskPath(),
		Home:     a.homePath(),
		Env:      maps.Clone(a.start.Env),
		ReadOnly: w.readOnly(),
		Program:  b.setup.program,
	}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	maps.Copy(s.Env, a.vault.have.Env)
	b.trust(&s)
	a.addEnvironment(&s)
	s.Env[SecretsVariable] = broker.Address(in.broker, a.token)
	s.Env[ReportVariable] = filepath.Join(in.home, reportFile)
	s.Env[OutboxVariable] = filepath.Join(in.home, outboxDir)
	s.Env[ArtifactsVariable] = filepath.Join(in.home, artifactsDir)
	if level == sandbox.Bubblewrap {
		s.Forward = []sandbox.Forward{{Port: proxyPort, Socket: b.socketPath()}, {Port: secretsPort, Socket: b.brokerPath()}}
	} else {
		s.Reach = ports(b.port, b.brokerPort)
	}
	if len(b.cfg.Egress) > 0 {
		viaProxy(s.Env, a.token, strings.TrimPrefix(in.proxy, "http://"))
	}
	return s
}

// ports returns the ports of the box's own addresses.
func ports(addresses ...string) (out []int) {
	for _, a := range addresses {
		if at, err := netip.ParseAddrPort(a); err == nil {
			out = append(out, int(at.Port()))
		}
	}
	return out
}

// register lets the run use the proxy, which its agent reaches at own. It calls
// progress after each model call.
func (b *box) register(a *attempt, own string, progress func()) error {
	var models []string // besides the run's own model
	if small := a.start.Options["small_model"]; small != "" {
		models = []string{small}
	}
	return b.proxy.Register(modelproxy.Run{
		LocalToken: a.token, Own: strings.TrimPrefix(own, "http://"), Upstream: a.start.GatewayURL, Token: a.start.ModelToken,
		Model: a.start.Model, Models: models, Egress: b.cfg.Egress,
		OnUsage: func(t modelproxy.Totals) {
			progress()
			a.event(protocol.EventUsage, usageOf(t))
		},
		OnFatal: func(kind, detail string) {
			a.end(ending{severity: graceful, state: protocol.Failed, kind: kind, detail: detail})
		},
	})
}

func usageOf(t modelproxy.Totals) protocol.Usage {
	return protocol.Usage{
		Model: t.Model, OutputTokens: t.OutputTokens,
		InputTokens: t.InputTokens + t.CacheReadTokens + t.Written(),
	}
}

// stallClock ends the run when progress was not called for Timing.Stall. While the
// run is parked, progress does not restart the clock.
func (b *box) stallClock(a *attempt) (progress, stop func()) {
	limit := b.cfg.Timing.Stall
	timer := b.cfg.clock.AfterFunc(limit, func() {
		a.end(ending{severity: graceful, state: protocol.Failed, kind: "run_stalled",
			detail: fmt.Sprintf("no sign of progress for %s", limit)})
	})
	return func() {
		if !a.declared.parked.Load() {
			timer.Reset(limit)
		}
	}, func() { timer.Stop() }
}

// runAgent runs a coding agent until it has nothing more to do. The end of ctx asks
// the agent to end.
func (b *box) runAgent(ctx context.Context, a *attempt, w *workspace, level sandbox.Level) (r result) {
	if b.setup.scanAgents(ctx, b.log) { // agents may have been installed or removed since the last search
		nudge(b.online) // says hello anew
	}
	found, ok := b.setup.agent(a.start.Agent)
	if !ok {
		return failed("setup_failed", fmt.Errorf("agent %s is not installed on this box", a.start.Agent))
	}
	in := b.place(a, level)
	launch, err := driver.Prepare(driver.Job{
		Agent: a.start.Agent, Model: a.start.Model, Options: a.start.Options,
		ModelURL: in.proxy, ModelToken: a.token, Task: in.task, Home: in.home, HostHome: a.homePath(), Self: b.setup.program,
		Servers: serversOf(a, in),
	}, found)
	if err != nil {
		return failed("setup_failed", err)
	}
	progress, stop := b.stallClock(a)
	defer stop()
	if err := b.register(a, in.proxy, progress); err != nil {
		return failed("setup_failed", err)
	}
	defer b.proxy.Unregister(a.token)
	if err := b.registerSecrets(a); err != nil {
		return failed("setup_failed", err)
	}
	defer b.broker.Unregister(a.token)

	said := &tail{limit: 4 << 10}
	spec := b.spec(a, w, level)
	maps.Copy(spec.Env, launch.Env)
	spec.Argv, spec.Piped, spec.Stderr = launch.Argv, true, said
	spec.Env["PATH"] = strings.Join(append(slices.Clone(launch.Path), cmp.Or(spec.Env["PATH"], systemPath)), ":")
	spec.ReadOnly = append(append(spec.ReadOnly, launch.ReadOnly...), b.selfPaths(a.start.Agent)...)
	p, done, err := b.startLimited(a, spec)
	if err != nil {
		return failed("setup_failed", err)
	}
	defer func() { p.Kill(); done(r) }()
	a.log.Info("agent started", "agent", a.start.Agent, "isolation", level)
	out, err := driver.Drive(ctx, launch, p.Stdin(), p.Stdout(), a.start.Prompt, a.messages, driver.Hooks{
		Started: func(session, version string) {
			progress()
			a.event(protocol.EventStarted, protocol.Started{
				Agent: a.start.Agent, Version: version, Model: a.start.Model,
				Session: session, Isolation: string(level), Holds: b.setup.holding.at(level),
			})
		},
		Update:     func(raw json.RawMessage) { progress(); a.spool.Update(raw) },
		Permission: func(raw json.RawMessage) { progress(); a.spool.Permission(raw) },
		Prompted: func(m driver.Message) {
			a.vault.expire()
			if a.declared.wake() {
				a.event(protocol.EventResumed, nil)
			}
			progress()
			a.event(protocol.EventMessage, protocol.UserMessage{ID: m.ID, State: protocol.MessageDelivered})
		},
		Turned: func(m driver.Message, reply string) {
			a.readOutbox()
			if m.ID != "" {
				a.event(protocol.EventMessage, protocol.UserMessage{
					ID: m.ID, State: protocol.MessageRead, Reply: keepEnd(reply, replyBytes),
				})
			}
		},
		Idle: func() time.Duration {
			if len(a.declared.blockers) == 0 {
				return 0
			}
			a.declared.parked.Store(true)
			stop()
			a.event(protocol.EventParked, protocol.Parked{
				WindowMS: b.cfg.Timing.Park.Milliseconds(), Blockers: a.declared.blockers,
			})
			return b.cfg.Timing.Park
		},
	})
	p.Kill()
	p.Stdout().Close()
	totals := b.proxy.Unregister(a.token)
	r = result{stop: out.Stop, session: out.SessionID, text: out.FinalText, usage: usageOf(totals)}
	switch {
	case err != nil:
		r.kind, r.detail = driver.FailureKind(err), driver.FailureText(err)
		if totals.Refused != "" {
			r.kind = totals.Refused
		}
		if words := said.String(); words != "" {
			r.detail += "; it said: " + words
		}
	case a.declared.parked.Load() && ctx.Err() == nil:
		r.kind, r.detail = blockedKind, a.declared.question
	case totals.Calls == 0 && totals.Failed > 0:
		// Some agents end their turn successfully although the model never
		// answered.
		r.kind, r.detail = driver.KindUnavailable, "no call to the model was answered"
		if totals.Refused != "" {
			r.kind, r.detail = totals.Refused, "every call to the model was refused"
		}
	}
	return r
}

// serversOf lists the MCP servers of the run with the addresses that its agent
// uses. They lead to the broker, which adds the tokens.
func serversOf(a *attempt, in place) []driver.Server {
	out := make([]driver.Server, len(a.start.MCPServers))
	for i, m := range a.start.MCPServers {
		out[i] = driver.Server{Name: m.Name, Transport: m.Transport, URL: broker.Address(in.broker, a.token) + m.Path}
	}
	return out
}

// selfPaths lists what the sandbox has to show the built-in agent.
func (b *box) selfPaths(agent string) []string {
	if agent == driver.Builtin {
		return []string{b.setup.program}
	}
	return nil
}

// runCommand runs a program in the checkout. The end of ctx asks it to end.
func (b *box) runCommand(ctx context.Context, a *attempt, w *workspace, level sandbox.Level) (r result) {
	if len(a.start.Command) == 0 {
		return failed("setup_failed", errors.New("the run has no command"))
	}
	progress, stop := b.stallClock(a)
	defer stop()
	if a.start.ModelToken != "" && a.start.GatewayURL != "" {
		if err := b.register(a, b.place(a, level).proxy, progress); err != nil {
			return failed("setup_failed", err)
		}
		defer b.proxy.Unregister(a.token)
	}
	if err := b.registerSecrets(a); err != nil {
		return failed("setup_failed", err)
	}
	defer b.broker.Unregister(a.token)
	said := &tail{limit: 16 << 10}
	out := io.MultiWriter(said, &chunks{update: func(raw json.RawMessage) { progress(); a.spool.Update(raw) }})
	spec := b.spec(a, w, level)
	spec.Argv, spec.Stdout, spec.Stderr = a.start.Command, out, out
	in := b.place(a, level)
	if err := os.WriteFile(filepath.Join(a.homePath(), promptFile), []byte(a.start.Prompt), 0o600); err != nil {
		return failed("setup_failed", err)
	}
	spec.Env[PromptVariable] = filepath.Join(in.home, promptFile)
	if a.start.ModelToken != "" {
		maps.Copy(spec.Env, map[string]string{
			"YARDMASTER_MODEL": a.start.Model, "YARDMASTER_MODEL_URL": in.proxy, "YARDMASTER_MODEL_TOKEN": a.token,
		})
	}
	p, done, err := b.startLimited(a, spec)
	if err != nil {
		return failed("setup_failed", err)
	}
	defer func() { done(r) }()
	a.event(protocol.EventStarted, protocol.Started{
		Agent: commandAgent, Isolation: string(level), Holds: b.setup.holding.at(level),
	})
	select {
	case <-p.Done():
	case <-ctx.Done():
		if err := p.Signal(syscall.SIGTERM); err != nil {
			a.log.Debug("signal the command", "error", err)
		}
		select {
		case <-p.Done():
		case <-time.After(b.cfg.Timing.Grace):
			p.Kill()
		}
	}
	err = p.Wait()
	a.readOutbox()
	r = result{output: said.String(), usage: usageOf(b.proxy.Unregister(a.token))}
	var exit *sandbox.ExitError
	switch {
	case err == nil:
		r.exit = new(int)
	case errors.As(err, &exit):
		r.exit = &exit.Code
	case !errors.Is(err, sandbox.ErrKilled):
		r.kind, r.detail = "agent_crashed", err.Error()
	}
	if r.kind == "" && r.exit != nil && len(a.declared.blockers) > 0 && ctx.Err() == nil {
		r.kind, r.detail = blockedKind, a.declared.question // a command takes no messages
	}
	return r
}

// replyBytes limits the kept part of an agent's answer to a message.
const replyBytes = 32 << 10

// keepEnd keeps the last bytes of a text, at most as many as most.
func keepEnd(text string, most int) string {
	if over := len(text) - most; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
	}
	return text
}
