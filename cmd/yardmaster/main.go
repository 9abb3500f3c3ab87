// Yardmaster is a control plane for AI developer agents: one program that serves the
// API, runs as the agent on a box, and is the command line of both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"yardmaster/internal/box"
	"yardmaster/internal/client"
)

// command is one subcommand. words is its name: "repo add". A command without run is
// the heading of the commands after it.
type command struct {
	words   string
	args    string
	summary string
	run     func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"the server", "", "", nil},
		{"demo", "[--once] [--github] [--data DIR]", "show the whole job on a throwaway server", runDemo},
		{"serve", "[flags]", "run the control plane", runServe},
		{"config", "[flags of serve]", "print the effective configuration and where each value came from", runConfig},
		{"keys list", "[flags of serve]", "the master keys, which one seals, and how many values each holds", runKeysList},
		{"keys new", "", "print a new master key", runKeysNew},
		{"keys rotate", "[--new] [--bus] [flags of serve]", "seal all that is sealed with a new master key", runKeysRotate},
		{"keys forget", "ID [flags of serve]", "remove a master key that holds no value any more", runKeysForget},
		{"audit accept", "REASON [flags of serve]",
			"take a record that is not what was noted of it as it is, after an older database was put back", runAuditAccept},
		{"mail", "[--data DIR] [NUMBER] | --queue | --retry ID | --clear ADDRESS", "list the mails of a server without SMTP, or show one; for operators: what is not sent", runMail},
		{"github setup", "", "where the server is connected to GitHub", runGitHubSetup},
		{"github deliveries", "[--state STATE]", "what GitHub has sent, and what became of it", runGitHubDeliveries},
		{"github redeliver", "GUID", "apply a delivery once more, with an operator's token", runGitHubRedeliver},
		{"operator token", "--login LOGIN [--scopes SCOPES]", "print an operator token, which lives an hour", runOperatorToken},
		{"chaos", "[--minutes N] [--seed S]", "do harm to a throwaway server and its boxes, and print what was lost", runChaos},

		{"you, and what you bring", "", "", nil},
		{"setup", "--token TOKEN [flags]", "make the first user and account without a browser", runSetup},
		{"login", "[flags]", "sign in and remember a token", runLogin},
		{"repo add", "PATH|URL", "put a repository on the server", runRepoAdd},
		{"repo create", "NAME|OWNER/NAME [flags]", "make a repository with its first files, and send an agent to set it up", runRepoCreate},
		{"repo list", "", "the repositories", runRepoList},
		{"key add", "--provider NAME [flags]", "add a model key (read from standard input)", runKeyAdd},
		{"box join", "[flags]", "enroll this machine, and run as a box", runBoxJoin},
		{"box run", "[flags]", "run as the box this machine was enrolled as", runBoxRun},
		{"box list", "", "the boxes", runBoxList},
		{"box agents install", "NAME [flags]", "fetch what drives a coding agent from npm into this machine's box", runBoxAgentsInstall},
		{"box agents", "[flags]", "the coding agents of this machine's box, and what is missing", runBoxAgents},

		{"the work", "", "", nil},
		{"task create", "--repo OWNER/NAME TEXT", "file a task", runTaskCreate},
		{"task list", "", "the newest tasks", runTaskList},
		{"task watch", "ID", "follow a task until it ends", runTaskWatch},
		{"task cancel", "ID", "end a task for good", runTaskCancel},
		{"task reassign", "ID", "take a task from its box and queue it again", runTaskReassign},
		{"task redispatch", "ID [--guidance TEXT]", "try a task again that failed or is stuck", runTaskRedispatch},
		{"pr list", "", "the pull requests that wait for a decision", runPRList},
		{"pr view", "ID", "a pull request: its state, its files, what it waits for", runPRView},
		{"pr diff", "ID [PATH] [--since SHA]", "the lines that a pull request changes", runPRDiff},
		{"pr approve", "ID", "approve what is asked about a pull request's current head", runPRApprove},
		{"pr skip", "ID", "decline it", runPRSkip},
		{"pr ask-again", "ID", "have the question put again that was declined, or that nobody answered", runPRAskAgain},
		{"pr merge", "ID", "have a pull request's current head merged, asked about or not", runPRMerge},
		{"ask file", "[--repo OWNER/NAME] TEXT", "file something wanted, for triage to decide about", runAskFile},
		{"ask list", "", "the newest asks", runAskList},
		{"ask get", "ID", "what became of an ask", runAskGet},

		{"everything else", "", "", nil},
		{"audit export", "", "print the account's audit rows, one JSON object a line", runAuditExport},
		{"audit verify", "FILE", "check exported audit rows without a server; names the first bad one, and what was noted and is gone",
			runAuditVerify},
		{"call", "[CAPABILITY [name=value …]]", "call any capability of the API; alone, list them", runCall},
		{"openapi", "", "print the OpenAPI document", runOpenAPI},
		{"events", "", "print the JSON Schema of what the audit record says of events", runEvents},
		{"version", "", "print the version", runVersion},
	}
}

// hidden are the subcommands with which the program runs itself.
func hidden() map[string]func([]string) int {
	all := box.Inner()
	all["agent"], all["astray"] = runAgent, runAstray
	return all
}

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// Exit codes besides 0.
const (
	exitFailed      = 1
	exitMisused     = 2 // nothing was tried
	exitInterrupted = 130
)

func run(args []string, stderr io.Writer) int {
	if len(args) > 0 {
		if f, ok := hidden()[args[0]]; ok {
			return f(args[1:])
		}
	}
	help := len(args) == 0
	if !help {
		switch args[0] {
		case "help", "-h", "--help":
			help, args = true, args[1:]
		case "-v", "--version":
			args = []string{"version"}
		}
	}
	if len(args) == 2 && (args[1] == "-h" || args[1] == "--help") { // yardmaster keys -h
		if c, _ := find(args); c == nil {
			help, args = true, args[:1]
		}
	}
	c, rest := find(args)
	switch {
	case c == nil && help && usage(os.Stdout, args):
		return 0
	case c == nil:
		fmt.Fprintf(stderr, "yardmaster: there is no command %q; `yardmaster help` lists them\n", client.Escape(strings.Join(args, " ")))
		if len(args) > 0 {
			usage(stderr, args[:1])
		}
		return exitMisused
	case help:
		rest = []string{"-h"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := c.run(ctx, rest)
	var wrong misuse
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "yardmaster %s: %s\nusage: %s   (-h tells more)\n", c.words, client.Escape(wrong.text), c.usage())
		return exitMisused
	}
	fmt.Fprintf(stderr, "yardmaster %s: %s\n", c.words, client.Escape(err.Error()))
	if hint := next(err); hint != "" {
		fmt.Fprintln(stderr, hint)
	}
	return exitFailed
}

// find is the command that the arguments begin with, and the remaining arguments.
func find(args []string) (*command, []string) {
	for _, c := range commands() {
		n := len(strings.Fields(c.words))
		if c.run != nil && len(args) >= n && strings.Join(args[:n], " ") == c.words {
			return &c, args[n:]
		}
	}
	return nil, nil
}

// next is advice about an error, where that is the same for all commands; else "".
func next(err error) string {
	var refusal *client.Problem
	var silent *client.Unreachable
	switch {
	case errors.As(err, &silent):
		return "Is the server running there? `yardmaster serve` starts one, --url of `yardmaster login` and `yardmaster setup` names another."
	case errors.Is(err, syscall.EADDRINUSE):
		return "Another program listens there: stop it, or choose another address with --listen."
	case errors.As(err, &refusal) && refusal.Slug() == "unauthenticated":
		return "The token is not, or no longer, good: `yardmaster login` gets another."
	case errors.As(err, &refusal) && refusal.Slug() == "missing-scope" && slices.ContainsFunc(refusal.MissingScopes, isOperators):
		lacks := slices.DeleteFunc(slices.Clone(refusal.MissingScopes), func(scope string) bool { return !isOperators(scope) })
		return fmt.Sprintf("It takes an operator token, which lives an hour: export YARDMASTER_TOKEN=\"$(yardmaster operator token --login YOU --scopes %s)\"",
			client.Escape(strings.Join(lacks, ",")))
	case errors.As(err, &refusal) && refusal.Clear.Command() != "":
		return "What moves it: " + client.Escape(refusal.Clear.Command())
	case errors.As(err, &refusal) && refusal.Status >= 500 && refusal.RequestID != "":
		return "The server's log has the cause, under request_id=" + client.Escape(refusal.RequestID)
	}
	return ""
}

// isOperators tells whether only operator tokens may hold a scope.
func isOperators(scope string) bool {
	return strings.HasPrefix(scope, "admin:") && !strings.HasPrefix(scope, "admin:read:")
}

func (c *command) usage() string {
	return strings.TrimSpace("yardmaster " + c.words + " " + c.args)
}

// usage lists the commands, or those that begin with a word. It answers false if
// there are none.
func usage(w io.Writer, of []string) bool {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	shown := false
	for _, c := range commands() {
		switch {
		case len(of) > 0 && (len(of) > 1 || !strings.HasPrefix(c.words, of[0]+" ")) || c.run == nil && len(of) > 0:
			continue
		case !shown && len(of) == 0:
			fmt.Fprint(t, "Yardmaster is a control plane for AI developer agents.\n\nusage: yardmaster COMMAND\n")
		}
		if shown = true; c.run == nil {
			fmt.Fprintf(t, "\n%s\n", c.words)
			continue
		}
		fmt.Fprintf(t, "  %s\t%s\n", strings.TrimSpace(c.words+" "+c.args), c.summary)
	}
	t.Flush()
	if shown && len(of) == 0 {
		fmt.Fprint(w, "\n`yardmaster help COMMAND` tells more of one. Client commands use the login of `yardmaster login`,\nor YARDMASTER_URL and YARDMASTER_TOKEN.\n")
	}
	return shown
}

// version and revision (the commit) of this build. The linker sets both for a
// released build (scripts/release); for any other, commit answers Go's own record.
var (
	version  = "dev"
	revision string
)

func commit() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || version == "dev" {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func runVersion(_ context.Context, args []string) error {
	if _, err := parse(flags("version"), args); err != nil {
		return err
	}
	fmt.Println(strings.TrimSpace("yardmaster " + version + " " + commit()))
	return nil
}
