// Package driver runs coding agents: it finds installed agents, writes the small
// configuration that each of them needs, and drives all of them through the
// Agent Client Protocol. The differences between agents are data, one Profile
// each.
//
// The caller owns the process and its sandbox. Prepare says how to start an
// agent, Drive takes the streams of the started process and returns when the
// work is done. Neither judges by an exit code, because agents exit with 0 after
// failures and with other codes after success.
// with 0 after failures and with others after success.
package driver

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/box/acp"
)

// Builtin is the name of the agent inside our own binary.
const Builtin = "builtin"

// Job describes one launch of an agent. Paths are as the agent sees them, except
// HostHome.
type Job struct {
	Agent      string
	Model      string
	Options    map[string]string // options of the agent's profile; an unknown one is an error
	ModelURL   string            // loopback gateway, without /v1
	ModelToken string            // valid nowhere else: agents pass it to the shells that they start
	Task       string            // the checkout
	Home       string
	HostHome   string // the same home on the host; configuration files are written here
	Self       string // our own binary
	Servers    []Server
}

// Server is an MCP server that the agent may use. Its transport is http or sse.
type Server struct{ Name, Transport, URL string }

// Launch says how to start an agent and how to drive it.
type Launch struct {
	Agent    string
	Version  string
	Argv     []string
	Env      map[string]string // additions to the sandbox's environment, without PATH
	Path     []string          // directories to put before the sandbox's PATH
	ReadOnly []string          // files and directories the sandbox must show
	Dir      string            // working directory of the process and of the session
	Mode     string            // ACP mode to choose if the agent offers it
	Failed   []string          // Profile.Failed
	Model    string            // model to choose if the agent offers it
	Servers  []acp.MCPServer   // servers for the session, if the agent supports their transports
}

// Profile describes one agent.
type Profile struct {
	Name    string
	Package string   // npm package that contains the program; "" for none
	Version string   // version of the package to install on demand; "" if it is not installed on demand
	Node    int      // lowest major version of Node.js that this version runs on
	Bin     string   // name of the program to find; "" for our own binary
	Plain   string   // name of the agent without the adapter Bin; "" if Bin is the agent
	Former  string   // an older adapter, which is not driven any more; "" for none
	Args    []string // arguments; {model} is replaced
	Mode    string   // ACP mode in which the agent asks for no permission, because the sandbox is the limit
	Options []string // names allowed in Job.Options
	Failed  []string // beginnings of paragraphs that report a failed turn which the agent ends normally

	env   func(Job) map[string]string
	files func(Job) map[string]string // path under the home -> content
	check func(Job) error
}

// Profiles lists the agents in the order of display.
func Profiles() []Profile { return []Profile{builtin, claude, codex, opencode, gemini, qwen, goose} }

// ProfileOf finds the profile of an agent by its name.
func ProfileOf(agent string) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Name == agent {
			return p, true
		}
	}
	return Profile{}, false
}

var builtin = Profile{
	Name:    Builtin,
	Args:    []string{"agent"},
	Options: []string{"api", "max_requests", "context_tokens", "permission"},
	env: func(j Job) map[string]string {
		env := map[string]string{
			"YARDMASTER_MODEL_URL":   j.ModelURL,
			"YARDMASTER_MODEL_TOKEN": j.ModelToken,
			"YARDMASTER_MODEL":       j.Model,
		}
		for option, name := range map[string]string{
			"api":            "YARDMASTER_MODEL_API",
			"max_requests":   "YARDMASTER_MAX_REQUESTS",
			"context_tokens": "YARDMASTER_CONTEXT_TOKENS",
			"permission":     "YARDMASTER_PERMISSION",
		} {
			if v := j.Options[option]; v != "" {
				env[name] = v
			}
		}
		return env
	},
}

// claude runs Claude Code, which retries a refused credential ten times by default,
// for minutes.
var claude = Profile{
	Name: "claude", Package: "@agentclientprotocol/claude-agent-acp", Bin: "claude-agent-acp",
	Version: "0.100.0", Node: 22, Plain: "claude", Former: "claude-code-acp",
	Mode:    "bypassPermissions", // refused to root unless IS_SANDBOX is set
	Options: []string{"small_model"},
	Failed:  []string{"API Error: "},
	env: func(j Job) map[string]string {
		small := orElse(j.Options["small_model"], j.Model)
		return map[string]string{
			"IS_SANDBOX":                               "1",
			"ANTHROPIC_BASE_URL":                       j.ModelURL,
			"ANTHROPIC_AUTH_TOKEN":                     j.ModelToken,
			"ANTHROPIC_MODEL":                          j.Model,
			"ANTHROPIC_SMALL_FAST_MODEL":               small,
			"ANTHROPIC_DEFAULT_HAIKU_MODEL":            small,
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			"CLAUDE_CODE_MAX_RETRIES":                  "3",
			"DISABLE_AUTOUPDATER":                      "1",
		}
	},
}

// codex runs Codex, which speaks only the responses API.
var codex = Profile{
	Name: "codex", Package: "@agentclientprotocol/codex-acp", Bin: "codex-acp",
	Version: "2.6.0", Node: 20, Plain: "codex",
	Mode:    "agent-full-access",
	Options: []string{"reasoning_effort"},
	Failed:  []string{"exceeded retry limit, last status", "unexpected status ", "stream disconnected before completion"},
	check: func(j Job) error {
		if within(j.Home, "/tmp") {
			return fmt.Errorf("codex does not work with a home under the temporary folder (%s)", j.Home)
		}
		return nil
	},
	env: func(j Job) map[string]string {
		return map[string]string{
			"CODEX_HOME":             j.Home + "/.codex",
			"YARDMASTER_MODEL_TOKEN": j.ModelToken,
		}
	},
	files: func(j Job) map[string]string {
		var c strings.Builder
		fmt.Fprintf(&c, "model = %s\n", quote(j.Model))
		if effort := j.Options["reasoning_effort"]; effort != "" {
			fmt.Fprintf(&c, "model_reasoning_effort = %s\n", quote(effort))
		}
		fmt.Fprintf(&c, `model_provider = "box"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.box]
name = "box"
base_url = %s
env_key = "YARDMASTER_MODEL_TOKEN"
wire_api = "responses"
request_max_retries = 4
stream_max_retries = 2
`, quote(j.ModelURL+"/v1"))
		return map[string]string{".codex/config.toml": c.String()}
	},
}

var opencode = Profile{
	Name: "opencode", Package: "opencode-ai", Bin: "opencode", Args: []string{"acp"},
	Options: []string{"small_model", "context_tokens", "output_tokens"},
	env: func(j Job) map[string]string {
		model := func(id string) map[string]any {
			return map[string]any{"name": id, "limit": map[string]any{
				"context": number(j.Options["context_tokens"], 128000), "output": number(j.Options["output_tokens"], 8192),
			}}
		}
		small := orElse(j.Options["small_model"], j.Model)
		return map[string]string{
			"YARDMASTER_MODEL_TOKEN":           j.ModelToken,
			"OPENCODE_DISABLE_AUTOUPDATE":      "1",
			"OPENCODE_DISABLE_MODELS_FETCH":    "1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD":    "1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
			"OPENCODE_CONFIG_CONTENT": encode(map[string]any{
				"share": "disabled", "autoupdate": false,
				"model": "box/" + j.Model, "small_model": "box/" + small,
				"enabled_providers": []string{"box"},
				"provider": map[string]any{"box": map[string]any{
					"npm":     "@ai-sdk/openai-compatible",
					"options": map[string]any{"baseURL": j.ModelURL + "/v1", "apiKey": "{env:YARDMASTER_MODEL_TOKEN}"},
					"models":  map[string]any{j.Model: model(j.Model), small: model(small)},
				}},
				"permission": map[string]any{"edit": "allow", "bash": "allow", "webfetch": "deny"},
			}),
		}
	},
}

// gemini runs the Gemini CLI, which takes only models of the Gemini API.
var gemini = Profile{
	Name: "gemini", Package: "@google/gemini-cli", Bin: "gemini",
	Version: "0.61.0", Node: 20,
	Args: []string{"--acp", "--skip-trust", "--yolo", "-m", "{model}"}, Mode: "yolo",
	env: func(j Job) map[string]string {
		return map[string]string{"GEMINI_API_KEY": j.ModelToken, "GOOGLE_GEMINI_BASE_URL": j.ModelURL}
	},
	files: func(Job) map[string]string {
		return map[string]string{".gemini/settings.json": encode(map[string]any{
			"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
			"general":  map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
			"privacy":  map[string]any{"usageStatisticsEnabled": false},
		})}
	},
}

var qwen = Profile{
	Name: "qwen", Package: "@qwen-code/qwen-code", Bin: "qwen",
	Version: "0.24.4", Node: 22,
	Args: []string{"--acp", "--auth-type", "openai", "-m", "{model}", "-y"}, Mode: "yolo",
	env: func(j Job) map[string]string {
		return map[string]string{"OPENAI_API_KEY": j.ModelToken, "OPENAI_BASE_URL": j.ModelURL + "/v1", "OPENAI_MODEL": j.Model}
	},
	files: func(Job) map[string]string {
		return map[string]string{".qwen/settings.json": encode(map[string]any{
			"general": map[string]any{"enableAutoUpdate": false},
			"privacy": map[string]any{"usageStatisticsEnabled": false},
		})}
	},
}

var goose = Profile{
	Name: "goose", Package: "@aaif/goose", Bin: "goose",
	Args: []string{"acp", "--with-builtin", "developer"}, Mode: "auto",
	Failed: []string{"Ran into this error"},
	env: func(j Job) map[string]string {
		return map[string]string{
			"GOOSE_PROVIDER": "openai", "OPENAI_HOST": j.ModelURL, "OPENAI_API_KEY": j.ModelToken,
			"GOOSE_MODEL": j.Model, "GOOSE_MODE": "auto", "GOOSE_DISABLE_KEYRING": "1",
		}
	},
}

// Prepare writes the agent's configuration under job.HostHome and returns how to
// start the agent. found is the agent as Detect found it.
func Prepare(job Job, found Found) (Launch, error) {
	p, ok := ProfileOf(job.Agent)
	if !ok {
		return Launch{}, fmt.Errorf("no agent is called %q", job.Agent)
	}
	if found.Name == "" {
		return Launch{}, fmt.Errorf("agent %s is not installed here", job.Agent)
	}
	if found.Name != job.Agent {
		return Launch{}, fmt.Errorf("agent %s: %s was found instead", job.Agent, found.Name)
	}
	if job.Model == "" || job.ModelURL == "" {
		return Launch{}, fmt.Errorf("agent %s: a model and the address of its gateway are required", job.Agent)
	}
	for name := range job.Options {
		if !slices.Contains(p.Options, name) {
			return Launch{}, fmt.Errorf("agent %s has no option %q; it has %q", job.Agent, name, p.Options)
		}
	}
	if p.check != nil {
		if err := p.check(job); err != nil {
			return Launch{}, err
		}
	}
	if p.files != nil {
		if err := writeFiles(job.HostHome, p.files(job)); err != nil {
			return Launch{}, fmt.Errorf("agent %s: write its configuration: %w", job.Agent, err)
		}
	}

	argv := []string{job.Self}
	if p.Bin != "" {
		argv = append([]string(nil), found.Argv...)
	}
	for _, a := range p.Args {
		argv = append(argv, strings.ReplaceAll(a, "{model}", job.Model))
	}
	servers := make([]acp.MCPServer, len(job.Servers))
	for i, m := range job.Servers {
		servers[i] = acp.MCPServer{Type: m.Transport, Name: m.Name, URL: m.URL, Headers: []acp.HTTPHeader{}}
	}
	env := maps.Clone(p.env(job))
	env["HOME"] = job.Home
	return Launch{
		Agent: job.Agent, Version: found.Version, Argv: argv, Env: env, Path: found.PathDirs, ReadOnly: found.ReadOnly,
		Dir: job.Task, Mode: p.Mode, Failed: p.Failed, Servers: servers, Model: job.Model,
	}, nil
}

// writeFiles writes files below home and nowhere else, whatever links an earlier
// agent has left there.
func writeFiles(home string, files map[string]string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	for path, content := range files {
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings, numbers and booleans
	}
	return string(b)
}

// quote writes a TOML basic string; JSON's escapes are a subset of TOML's.
func quote(s string) string { return encode(s) }
