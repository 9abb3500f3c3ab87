package app

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/protocol"
)

// newPrompts keeps what people put into briefs.
func (a *App) newPrompts() *prompt.Service {
	return &prompt.Service{
		DB: a.db, Platform: a.cfg.SystemPrompt,
		HasRepo: func(tx *db.Tx, id string) (bool, error) {
			_, ok, err := repo.ByID(tx, id)
			return ok, err
		},
		HasTemplate: func(tx *db.Tx, name string) (bool, error) {
			_, ok, err := template.ByName(tx, tx.Account, name)
			return ok, err
		},
	}
}

// briefNotes are what is added to every brief, in this order: the system
// prompts of the platform, the account, the repository, the template and the
// person who asked for the work; the instructions of the policy file; the briefing
// of the box; what people have answered; the secrets there are, by name.
func briefNotes(prompts *prompt.Service, blockers *blocker.Service, vaults *vault.Service) func(*db.Tx, *task.Row, string) ([]string, error) {
	return func(tx *db.Tx, t *task.Row, boxID string) ([]string, error) {
		r, ok, err := repo.ByIDAnywhere(tx, t.RepoID)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("there is no repository %s", t.RepoID)
		}
		briefing, err := box.Briefing(tx, boxID)
		if err != nil {
			return nil, fmt.Errorf("briefing of box %s: %w", boxID, err)
		}
		user := ""
		if t.RequestedBy != nil {
			user = *t.RequestedBy
		}
		notes, err := prompts.For(tx, t.RepoID, t.Template, user, r.Policy.Instructions, briefing)
		if err != nil {
			return nil, fmt.Errorf("prompts: %w", err)
		}
		said, err := blockers.Word(tx, t.ID, "")
		if err != nil {
			return nil, err
		}
		if said != "" {
			notes = append(notes, "## What people have answered\n\n"+said)
		}
		lent, err := vaults.Lent(tx, t.RepoID)
		if err != nil {
			return nil, err
		}
		return append(notes, secretsNote(lent, serversOf(lent, r.Policy.MCPServers))), nil
	}
}

// taskServers are the MCP servers that a run of the task may use.
func taskServers(vaults *vault.Service) func(*db.Tx, *task.Row) ([]protocol.MCPServer, error) {
	return func(tx *db.Tx, t *task.Row) ([]protocol.MCPServer, error) {
		r, ok, err := repo.ByIDAnywhere(tx, t.RepoID)
		if err != nil || !ok || len(r.Policy.MCPServers) == 0 {
			return nil, err
		}
		lent, err := vaults.Lent(tx, t.RepoID)
		return serversOf(lent, r.Policy.MCPServers), err
	}
}

// serversOf are the servers of a policy file for whose host there is a
// credential, by name.
func serversOf(lent vault.Lent, servers map[string]repo.MCPServer) (out []protocol.MCPServer) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		u, err := url.Parse(servers[name].URL)
		if err != nil {
			continue
		}
		host := strings.TrimSuffix(strings.ToLower(u.Host), ":443")
		if slices.Contains(lent.Hosts, host) {
			out = append(out, protocol.MCPServer{Name: name, Transport: servers[name].Transport, Path: "/" + host + u.RequestURI()})
		}
	}
	return out
}

// secretsNote tells an agent what it may use, and how; empty if there is
// nothing.
func secretsNote(lent vault.Lent, servers []protocol.MCPServer) string {
	if len(lent.Variables)+len(lent.Hosts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Secrets\n\n")
	if len(lent.Variables) > 0 {
		fmt.Fprintf(&b, "In your environment: %s. Never print, log, commit or send them anywhere but where they belong.\n", strings.Join(lent.Variables, ", "))
	}
	if len(lent.Hosts) > 0 {
		fmt.Fprintf(&b, "For %s there are credentials that you use without having them: send a request for https://HOST/PATH to $YARDMASTER_SECRETS_URL/HOST/PATH instead, "+
			"without a credential; it is added on the way.\n", strings.Join(lent.Hosts, ", "))
	}
	for _, m := range servers {
		fmt.Fprintf(&b, "The MCP server %s (transport %s) is among your tools if you speak its protocol; it is at $YARDMASTER_SECRETS_URL%s in the same way.\n", m.Name, m.Transport, m.Path)
	}
	return b.String()
}
