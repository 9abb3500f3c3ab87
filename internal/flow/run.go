package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// RunSetup tells what a run begins with. It is run.Setup.
type RunSetup struct {
	Prompts *prompt.Service
	Vaults  *vault.Service
	Ring    *seal.Keyring // of what people have answered
	Hosts   *codehost.Hosts
}

// Policy is the policy that a run in a repository begins under, as its session
// keeps it.
func (RunSetup) Policy(tx *db.Tx, repoID string) (string, error) {
	r, _, err := repo.ByIDAnywhere(tx, repoID)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(candidate(r.Policy))
	return string(text), err
}

// Notes are what is added to every brief, in this order: the system prompts of the
// platform, the account, the repository, the template and the person who asked for
// the work; the instructions of the policy file; the briefing of the box; what
// people have answered; the pages of the knowledge base that matter, for work and scouts that
// are not of a fork; the secrets there are, by name.
func (s RunSetup) Notes(tx *db.Tx, t *task.Row, boxID string) ([]string, error) {
	r, err := repoAnywhere(tx, t.RepoID)
	if err != nil {
		return nil, err
	}
	briefing, err := box.Briefing(tx, boxID)
	if err != nil {
		return nil, fmt.Errorf("briefing of box %s: %w", boxID, err)
	}
	user := ""
	if t.RequestedBy != nil {
		user = *t.RequestedBy
	}
	notes, err := s.Prompts.For(tx, t.RepoID, t.Template, user, r.Policy.Instructions, briefing)
	if err != nil {
		return nil, fmt.Errorf("prompts: %w", err)
	}
	said, err := blocker.Said(tx, s.Ring, t.ID, "")
	if err != nil {
		return nil, err
	}
	if said.Text != "" {
		notes = append(notes, "## What people have answered\n\n"+said.Text)
	}
	if fork, err := ofFork(tx, t); err != nil || fork {
		return notes, err
	}
	if t.Kind == task.KindWork || t.Kind == task.KindScout || t.Kind == task.KindDevops {
		pages, err := kb.Brief(tx, t.RepoID, t.Title+"\n"+t.Problem, kb.BriefTokens)
		if err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
		if pages != "" {
			notes = append(notes, pages)
		}
	}
	switch t.Kind {
	case task.KindKB:
		pages, err := kb.KeeperBrief(tx, t.RepoID, t.ID, t.Problem)
		if err != nil {
			return nil, fmt.Errorf("pages to keep: %w", err)
		}
		notes = append(notes, pages)
	case task.KindWork, task.KindScout, task.KindSetup, task.KindBabysit, task.KindDevops:
		notes = append(notes, "## What you learn\n\n"+kb.LearntBrief)
	}
	if right, _, err := fleet.Holding(tx, boxID, t.AccountID); err != nil || right.Kind == fleet.Gift {
		return notes, err
	}
	if without, err := withoutSecrets(tx, t); err != nil || without {
		return notes, err
	}
	usable, err := s.Vaults.Usable(tx, t.RepoID)
	if err != nil {
		return nil, err
	}
	usable.Variables = slices.DeleteFunc(usable.Variables, func(name string) bool {
		return slices.Contains(r.Policy.Prepare.Secrets, name)
	})
	return append(notes, secretsNote(usable, serversOf(usable, r.Policy.MCPServers))), nil
}

// Servers are the MCP servers that a run of the task may use.
func (s RunSetup) Servers(tx *db.Tx, t *task.Row) ([]protocol.MCPServer, error) {
	r, ok, err := repo.ByIDAnywhere(tx, t.RepoID)
	if err != nil || !ok || len(r.Policy.MCPServers) == 0 {
		return nil, err
	}
	if without, err := withoutSecrets(tx, t); err != nil || without {
		return nil, err
	}
	usable, err := s.Vaults.Usable(tx, t.RepoID)
	return serversOf(usable, r.Policy.MCPServers), err
}

// Submodules are the repositories that a run of the task may read as submodules of its own.
func (s RunSetup) Submodules(tx *db.Tx, t *task.Row) (*protocol.Submodules, error) {
	r, err := repoAnywhere(tx, t.RepoID)
	if err != nil || !r.Policy.Checkout.Submodules {
		return nil, err
	}
	out := &protocol.Submodules{Key: repo.Key(s.Hosts, r.HostRepo()), Known: []protocol.Module{}}
	if without, err := withoutSecrets(tx, t); err != nil || without {
		out.Why = "work of a fork, or of a box that another account has lent, is given none, because whoever wrote it could have it give them away"
		return out, err
	}
	all, err := repo.Modules(tx, s.Hosts, t.RepoID)
	for _, m := range all {
		out.Known = append(out.Known, protocol.Module{Key: m.Key, CloneURL: s.Hosts.CloneURL(m.Ref.HostRepo())})
	}
	return out, err
}

// ofFork tells whether a task works on what another repository has.
func ofFork(tx *db.Tx, t *task.Row) (bool, error) {
	_, fork, err := standing(tx, t)
	return fork, err
}

// withoutSecrets tells whether a task works on what is of a fork, or was handed in by a box
// that another account has lent: then it gets no secret, because whoever wrote that could have
// the agent, or the program of a check, give it away.
func withoutSecrets(tx *db.Tx, t *task.Row) (without bool, err error) {
	err = tx.As(t.AccountID, func() error {
		if without, err = ofFork(tx, t); err == nil && !without {
			without, err = RunSetup{}.OfLent(tx, t)
		}
		return err
	})
	return without, err
}

// OfLent tells whether a box that another account has lent has had a part in what a task works
// on.
func (RunSetup) OfLent(tx *db.Tx, t *task.Row) (lent bool, err error) {
	err = tx.As(t.AccountID, func() error {
		work, err := served(tx, t)
		if err != nil {
			return err
		}
		all, err := builtOn(tx, &work)
		if err == nil {
			lent, err = byLent(tx, all, t.PRID)
		}
		return err
	})
	return lent, err
}

// byLent tells whether a lent box has had a run of some work, or of a task about its pull
// request. prID is that of the first.
func byLent(tx *db.Tx, work []task.Row, prID *string) (lent bool, err error) {
	for i := 0; i < len(work) && err == nil && !lent; i++ {
		if i > 0 {
			prID = work[i].PRID
		}
		lent, err = run.ByLent(tx, work[i].ID, prID)
	}
	return lent, err
}

// RunVault is run.Vault.
type RunVault struct{ Vaults *vault.Service }

// ForRun returns the secrets for a run of a task in a repository of tx.Account.
func (v RunVault) ForRun(tx *db.Tx, repoID, taskID string) ([]protocol.Secret, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	if err != nil || !ok {
		return nil, err
	}
	if without, err := withoutSecrets(tx, &t); err != nil || without {
		return []protocol.Secret{}, err
	}
	return v.Vaults.ForRun(tx, repoID)
}

// OfFanout tells whether a task is a scout of a fan-out, which surveys a
// repository for a plan.
func (RunSetup) OfFanout(tx *db.Tx, taskID string) (bool, error) { return plan.OfFanout(tx, taskID) }

// serversOf returns the servers of a policy file whose host has a stored credential,
// by name.
func serversOf(lent vault.Usable, servers map[string]repo.MCPServer) (out []protocol.MCPServer) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		u, err := url.Parse(servers[name].URL)
		if err != nil {
			continue
		}
		host := strings.TrimSuffix(strings.ToLower(u.Host), ":443")
		if slices.Contains(lent.Hosts, host) {
			out = append(out, protocol.MCPServer{Name: name, Transport: string(servers[name].Transport), Path: "/" + host + u.RequestURI()})
		}
	}
	return out
}

// secretsNote tells an agent what it may use, and how; empty if there is
// nothing.
func secretsNote(lent vault.Usable, servers []protocol.MCPServer) string {
	if len(lent.Variables)+len(lent.Hosts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Secrets\n\n")
	if len(lent.Variables) > 0 {
		fmt.Fprintf(&b, "In your environment: %s. Never print, log, commit or send them anywhere but where they belong.\n",
			strings.Join(lent.Variables, ", "))
	}
	if len(lent.Hosts) > 0 {
		fmt.Fprintf(&b, "For %s there are credentials that you use without having them: send a request for "+
			"https://HOST/PATH to $YARDMASTER_SECRETS_URL/HOST/PATH instead, without a credential; it is added on the way.\n",
			strings.Join(lent.Hosts, ", "))
	}
	for _, m := range servers {
		fmt.Fprintf(&b, "The MCP server %s (transport %s) is among your tools if you speak its protocol; "+
			"it is at $YARDMASTER_SECRETS_URL%s in the same way.\n", m.Name, m.Transport, m.Path)
	}
	return b.String()
}

// RunBoxes tells runs of their boxes. It is run.Boxes.
type RunBoxes struct{}

// SealKey returns the key to which secrets for the present process of a box are
// sealed. It is empty until that process has connected.
func (RunBoxes) SealKey(tx *db.Tx, boxID string) (string, error) { return box.SealKey(tx, boxID) }

// DropMessages deletes the messages that wait for a box and are for runs of an account.
func (RunBoxes) DropMessages(tx *db.Tx, boxID, accountID string) error {
	return box.DropMessages(tx, boxID, accountID)
}

// FaultShown is what tx.Account may know of a fault of a box.
func (RunBoxes) FaultShown(tx *db.Tx, boxID, why string) (string, error) {
	return box.FaultShown(tx, boxID, why)
}

// RunAsks tells runs of the asks that their agents filed. It is run.Asks.
type RunAsks struct{}

// OfRuns lists the ids of the asks that runs filed.
func (RunAsks) OfRuns(tx *db.Tx, runIDs []string) ([]string, error) { return ask.OfRuns(tx, runIDs) }

// PageRuns tells of the runs that write pages of a knowledge base. It is kb.Runs.
type PageRuns struct{}

// OfRepo tells whether tx.Account has a run of the id in a repository.
func (PageRuns) OfRepo(tx *db.Tx, runID, repoID string) (bool, error) {
	taskID, ok, err := run.TaskOf(tx, runID)
	if err != nil || !ok {
		return false, err
	}
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return ok && t.RepoID == repoID, err
}

// RunLogs implements ci.Logs.
type RunLogs struct{}

// Output answers a piece of the output of a run of tx.Account.
func (RunLogs) Output(tx *db.Tx, runID string, after int64) (text string, next int64, err error) {
	return run.Output(tx, runID, after)
}

// Branches asks the code hosts where branches are. It is run.Branches.
type Branches struct {
	DB    *db.DB
	Hosts *codehost.Hosts
}

// At is the commit of a branch, empty if there is no such branch.
func (b Branches) At(ctx context.Context, repoID, branch string) (string, error) {
	r, host, err := b.host(ctx, repoID)
	if err != nil {
		return "", err
	}
	sha, err := host.Head(ctx, r, branch)
	if errors.Is(err, codehost.ErrNotFound) {
		err = nil
	}
	return sha, err
}

// Changed lists what a commit has changed since it forked from another one.
func (b Branches) Changed(ctx context.Context, repoID, base, sha string) (codehost.Diff, error) {
	r, host, err := b.host(ctx, repoID)
	if err != nil {
		return codehost.Diff{}, err
	}
	return host.Diff(ctx, r, codehost.DiffOptions{From: base, To: sha, SinceFork: true})
}

func (b Branches) host(ctx context.Context, repoID string) (codehost.Repo, codehost.Host, error) {
	var r repo.Ref
	err := b.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByIDAnywhere(tx, repoID)
		return err
	})
	if err != nil {
		return codehost.Repo{}, nil, err
	}
	host, err := b.Hosts.Of(r.HostRepo())
	return r.HostRepo(), host, err
}

// EnqueueCommand queues a command of a run for its box.
func EnqueueCommand(boxes *box.Service) func(*db.Tx, run.Command) error {
	return func(tx *db.Tx, c run.Command) error { return boxes.Enqueue(tx, c.BoxID, c.Command) }
}

// MarkUnfit withholds work from a box that a run reported faulty.
func MarkUnfit(boxes *box.Service) func(*db.Tx, run.Blame) error {
	return func(tx *db.Tx, b run.Blame) error { return boxes.MarkUnfit(tx, b.BoxID, b.Why) }
}

// HandBack takes back what a box that was stopped had not begun.
func HandBack(runs *run.Service) func(*db.Tx, box.Farewell) error {
	return func(tx *db.Tx, f box.Farewell) error { return runs.HandBack(tx, f.BoxID, f.Held) }
}
