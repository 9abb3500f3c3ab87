// Package cli is the command line: the commands that start a server or a box, and those that
// call the API.
//
//	cli.go       the commands, in the order of the help
//	tree.go      how they become a command line: arguments, help
//	noun.go      what is common to all nouns: list, view, find, act
//	nouns_….go   the nouns as data
//	the others   one file a group of commands that do something of their own
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"yardmaster/internal/box"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/proxies"
	"yardmaster/internal/terminal"
	"yardmaster/internal/version"
)

// sections are all commands but those with which the program runs itself.
func sections() []tree.Section {
	return withExamples([]tree.Section{
		{Title: "the server", Commands: serverCommands()},
		{Title: "you, and what you bring", Commands: ownCommands()},
		{Title: "the work", Commands: workCommands()},
		{Title: "the account", Commands: slices.Concat(accountCommands(), settingCommands(), restCommands())},
		{Title: "everything else", Commands: otherCommands()},
	})
}

// commandLine is the whole command line.
func commandLine() tree.Line {
	return tree.Line{Sections: sections(), Heads: heads, Values: flagValues(), Help: helpOfCall}
}

// commands are those of all sections.
func commands() []tree.Command { return commandLine().Commands() }

// wholeTree is the whole command line with all flags.
func wholeTree() *cobra.Command { return commandLine().Tree("") }

// heads say what the words are that commands begin with.
var heads = map[string]string{
	"admin": "who operates a server", "release": "the programs that boxes may be updated to",
	"keys": "the master keys of a server", "audit": "the record of what happened", "github": "the connection to GitHub",
	"operator": "credentials of those who run the platform", "auth": "who you are to which server",
	"repo": "repositories", "key": "the account's model keys", "box": "the machines that agents run on",
	"task": "scoped units of work, from the queue to the merge", "pr": "pull requests, and what is asked about them",
	"ask":  "what is wanted and not scheduled yet",
	"plan": "work in several tasks that depend on each other", "blocker": "what runs wait for people to give",
	"escalation": "questions that agents have handed to people", "session": "conversations with models",
	"secret": "values that agents are given and nobody reads back", "template": "which agent works with which model",
	"billing": "the plan, and what is paid for it",
	"budget":  "what may be spent, and was", "token": "personal access tokens", "member": "who belongs to the account",
	"schedule": "asks that are filed again and again", "issue": "issues of repositories, and what became of them",
	"notification": "what concerns you", "webhook": "addresses that are told of events", "finding": "what reviews have found",
	"invitation": "who was invited, and has not come yet",
	"source":     "other systems whose deliveries become asks", "digest": "what happened within a day or a week",
	"account": "how the account is set", "prompt": "what agents are told besides their tasks",
	"board":      "numbers and lists about the account, side by side",
	"artifact":   "reports, pictures and builds that are kept besides code",
	"kb":         "what is known of a repository, in pages",
	"provenance": "what merges came of, signed",
	"donation":   "what accounts give to open-source repositories",
	"sso":        "the account's own identity provider",
	"completion": "scripts that complete commands in a shell", "check": "the checks that boxes run",
}

func serverCommands() []tree.Command {
	return []tree.Command{
		{Words: "demo", Summary: "show the whole job on a throwaway server", Define: machine.Demo},
		{Words: "serve", Summary: "run the control plane", Define: machine.Serve},
		{Words: "config", Summary: "print the effective configuration and where each value came from", Define: machine.Config,
			More: "It takes the flags of serve."},
		{Words: "backup", Args: "DEST", Define: machine.Backup,
			Summary:  "on the server's machine: copy the server into a new folder, while it runs or not",
			Examples: []string{"yardmaster backup /backups/monday --data /srv/yardmaster"}},
		{Words: "restore", Args: "[BACKUP]", Define: machine.Restore,
			Summary: "on the server's machine: put a backup into an empty folder, try it with --drill, or see with --compare what does not fit",
			Examples: []string{"yardmaster restore /backups/monday --data /srv/yardmaster-new",
				"yardmaster restore --drill /backups/monday --master-key-file /keys/master.key", "yardmaster restore --compare --data /srv/yardmaster"}},
		{Words: "account export", Args: "LOGIN FILE", Define: machine.AccountExport,
			Summary:  "on the server's machine: write all that an account has into a new file, while the server runs or not",
			Examples: []string{"yardmaster account export acme acme.tar.gz --data /srv/yardmaster"}},
		{Words: "account delete", Args: "LOGIN", Define: machine.AccountDelete,
			Summary:  "on the server's machine: delete an account that was exported, with a signed proof; no server may run",
			Examples: []string{"yardmaster account delete acme --archive acme.tar.gz --proof acme.dsse.json --data /srv/yardmaster"}},
		{Words: "account proof", Args: "FILE", Define: machine.AccountProof,
			Summary:  "check the proof that an account was deleted without a server, and print what it says",
			Examples: []string{"yardmaster account proof acme.dsse.json --key KEY --archive acme.tar.gz"}},
		{Words: "retention", Define: machine.Retention,
			Summary:  "on the server's machine: what is stored, how long it is kept, and what goes next; it deletes nothing",
			Examples: []string{"yardmaster retention --data /srv/yardmaster", "yardmaster retention --keep-notifications 30 --data /srv/yardmaster"}},
		{Words: "egress", Define: machine.Egress,
			Summary:  "on the server's machine: where the server connects to, who named it, and whether it is reached",
			Examples: []string{"yardmaster egress --data /srv/yardmaster", "yardmaster egress --air-gapped on --data /srv/yardmaster"}},
		{Words: "admin grant", Args: "LOGIN", Summary: "on the server's machine: make a person an operator of the server",
			Define: machine.Appoint(true), Examples: []string{"yardmaster admin grant bob --data /srv/yardmaster"}},
		{Words: "admin revoke", Args: "LOGIN", Summary: "on the server's machine: make an operator an ordinary person again",
			Define: machine.Appoint(false), Examples: []string{"yardmaster admin revoke bob --data /srv/yardmaster"}},
		{Words: "keys list", Summary: "the master keys, which one seals, and how many values each holds", Define: machine.KeysList},
		{Words: "keys new", Summary: "print a new master key", Define: tree.Nothing(machine.KeysNew)},
		{Words: "keys rotate", Summary: "seal all that is sealed with a new master key", Define: machine.KeysRotate},
		{Words: "keys forget", Args: "ID", Summary: "remove a master key that holds no value any more", Define: machine.KeysForget},
		{Words: "bundle", Args: "RELEASE FILE", Define: machine.Bundle,
			Summary:  "put a release's folder into one new signed file, for a machine without a network; needs no server",
			Examples: []string{"yardmaster bundle ./v1.4.0 yardmaster_1.4.0.bundle.tar --key KEY"}},
		{Words: "bundle check", Args: "FILE", Define: machine.BundleCheck,
			Summary:  "check that each byte of a bundle is as its publisher signed it, and list what it has",
			Examples: []string{"yardmaster bundle check yardmaster_1.4.0.bundle.tar --key KEY"}},
		{Words: "bundle open", Args: "FILE FOLDER", Define: machine.BundleOpen,
			Summary:  "check a bundle, and put the files of its release into an empty folder",
			Examples: []string{"yardmaster bundle open yardmaster_1.4.0.bundle.tar ./v1.4.0 --key KEY"}},
		{Words: "release import", Args: "FILE", Define: machine.ReleaseImport,
			Summary: "on the server's machine: put a signed program for boxes, whose signature is FILE.minisig, or all of a bundle into the ledger",
			Examples: []string{"yardmaster release import ./yardmaster-v1.4.0-linux-amd64 --data /srv/yardmaster",
				"yardmaster release import ./yardmaster_1.4.0.bundle.tar --data /srv/yardmaster"}},
		{Words: "audit accept", Args: "REASON", Define: machine.AuditAccept,
			Summary: "take a record that is not what was noted of it as it is, after an older database was put back"},
		{Words: "mail", Args: "[NUMBER|ADDRESS]", Define: defineMail,
			Summary: "list the mails of a server without SMTP, or show one; for operators: what is not sent"},
		{Words: "github setup", Summary: "where the server is connected to GitHub", Define: tree.Nothing(runGitHubSetup)},
		{Words: "github deliveries", Answers: "code_host.deliveries", Rows: true, Define: defineGitHubDeliveries,
			Summary: "what GitHub has sent, and what became of it"},
		{Words: "github redeliver", Answers: "code_host.replay", Args: "GUID", Summary: "apply a delivery once more, with an operator's token",
			Define: tree.Answers(runGitHubRedeliver)},
		{Words: "operator token", Answers: "operator_token.issue", Define: defineOperatorToken,
			Summary: "print an operator token, which lives an hour"},
		{Words: "chaos", Summary: "do harm to a throwaway server and its boxes, and print what was lost", Define: machine.Chaos},
	}
}

func ownCommands() []tree.Command {
	return slices.Concat([]tree.Command{
		{Words: "setup", Summary: "make the first user and account without a browser", Define: defineSetup},
		{Words: "login", Summary: "sign in and remember a token: auth login", Define: defineLogin},
	}, authCommands(), repoCommands(), keyCommands(), donationCommands(), boxCommands())
}

func workCommands() []tree.Command {
	return slices.Concat(taskCommands(), prCommands(), askCommands(), planCommands(), blockerCommands(), workNouns(),
		kbCommands(), artifactCommands(), provenanceCommands(),
		[]tree.Command{
			simulateCommand(),
			{Words: "simulate fleet", Summary: "drive many boxes and tasks through a throwaway server, and print what each costs",
				Define: machine.Fleet, Examples: []string{"yardmaster simulate fleet --boxes 1000 --tasks 5000"}},
			{Words: "status", Summary: "what waits for you, runs, went wrong, and what it costs", Define: defineStatus, Members: statusMembers(),
				Examples: []string{"yardmaster status", "yardmaster status --watch"}},
			{Words: "open", Args: "[NOUN] [ID]", Summary: "open the page of an object in a browser", Define: defineOpen,
				Examples: []string{"yardmaster open task @last", "yardmaster open pr acme/web#3", "yardmaster open"},
				Values:   map[string]tree.Values{"NOUN": noun.PageNouns, "ID": noun.IDsOfPage}},
		})
}

func otherCommands() []tree.Command {
	return []tree.Command{
		{Words: "audit export", Summary: "print the account's audit rows, one JSON object a line", Define: tree.Nothing(machine.AuditExport)},
		{Words: "audit verify", Args: "FILE", Define: machine.AuditVerify,
			Summary: "check exported audit rows without a server; names the first bad one, and what was noted and is gone"},
		{Words: "call", Args: "[CAPABILITY] [name=value]…", Summary: "call any capability of the API; alone, list them", Define: defineCall,
			More: "A value is text where the input is text, else JSON. name:=value is JSON always, name=@FILE is the content of a file,\n" +
				"and name=- standard input. -h after a capability describes its inputs.",
			Examples: []string{"yardmaster call task.stalls", "yardmaster call template.set -h",
				"yardmaster call session.replay id=ID yml=@policy.yml",
				"yardmaster call task.list filter=status:failed --jq '.data[].title'"},
			Values: map[string]tree.Values{"CAPABILITY": capabilities, "name=value": inputsOfCall}},
		{Words: "doctor", Summary: "find out what keeps this machine from talking to the server", Define: defineDoctor,
			Members: []string{"ok", "what", "then"}},
		{Words: "doctor server", Define: machine.Examine,
			Summary:  "on the server's machine: look at all that the server stands on, and say what to do; it takes the flags of serve",
			Members:  []string{"ok", "what", "then"},
			Examples: []string{"yardmaster doctor server --data /srv/yardmaster"}},
		{Words: "git-credential", Args: "[OPERATION]", Define: tree.Nothing(runGitCredential),
			Summary: "be git's credential helper for the repositories of the server",
			More:    "`yardmaster auth git` has git use it.",
			Values:  map[string]tree.Values{"OPERATION": tree.Fixed("get", "store", "erase")}},
		{Words: "completion", Args: "SHELL", Summary: "print the script that completes commands in bash, zsh or fish",
			Define: tree.Nothing(runCompletion), Values: map[string]tree.Values{"SHELL": tree.Fixed("bash", "zsh", "fish")},
			More: "Values come from the server: ids, repositories, capabilities.",
			Examples: []string{"source <(yardmaster completion bash)", "yardmaster completion zsh > ~/.zfunc/_yardmaster",
				"yardmaster completion fish > ~/.config/fish/completions/yardmaster.fish"}},
		{Words: "man", Args: "DIR", Summary: "write a manual page for each command into a folder", Define: tree.Nothing(runMan),
			Examples: []string{"yardmaster man ~/.local/share/man/man1"}},
		{Words: "openapi", Summary: "print the OpenAPI document", Define: tree.Nothing(runOpenAPI)},
		{Words: "events", Summary: "print the JSON Schema of what the audit record says of events", Define: tree.Nothing(runEvents)},
		{Words: "version", Summary: "print the version", Define: tree.Answers(runVersion), Members: []string{"version", "commit"}},
	}
}

// hidden are the subcommands with which the program runs itself.
func hidden() map[string]func([]string) int {
	all := box.Inner()
	all["agent"] = machine.Agent
	if machine.This.Lab != nil {
		for name, f := range machine.This.Lab.Inner {
			all[name] = func(args []string) int {
				return f(args, func(args []string) int { return run(args, os.Stdout, os.Stderr) })
			}
		}
	}
	return all
}

// Run carries out a command line, without the name of the program, and answers its exit code.
func Run(of machine.Program, args []string, stdout, stderr io.Writer) int {
	machine.This, version.Own = of, of.Version
	return run(args, stdout, stderr)
}

func run(args []string, stdout, stderr io.Writer) int {
	proxies.SpareThisMachine()
	if len(args) > 0 {
		if f, ok := hidden()[args[0]]; ok {
			machine.Started()
			return f(args[1:])
		}
		if args[0] == "-v" || args[0] == "--version" {
			args = []string{"version"}
		}
	}
	defer time.AfterFunc(time.Second, machine.Started).Stop() // what takes longer is not short
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = client.Telling(ctx, signin.Telling(stderr))
	line := commandLine() // once: to make all commands takes longer than what most of them do here
	args = line.Spelled(args)
	line.Completes = len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
	root := line.Tree(firstWord(args))
	if n := len(args) - 1; n > 0 && (args[n] == "-h" || args[n] == "--help") {
		if c, rest, err := root.Find(args[:n]); err == nil && c == root && !strings.HasPrefix(rest[0], "-") {
			args = args[:n] // words that are no command have no help
		}
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	c, err := root.ExecuteContextC(ctx)
	var wrong exit.Misuse
	var none tree.Lost
	var passed exit.Status
	if kept := (draft.Unsent{}); errors.As(err, &kept) {
		defer func() { fmt.Fprintln(stderr, kept.Where()) }()
	}
	name := "yardmaster"
	if c != nil {
		name = c.CommandPath()
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &passed):
		return int(passed)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil, errors.Is(err, terminal.ErrInterrupted):
		return exit.CodeInterrupted
	case errors.As(err, &none):
		fmt.Fprintf(stderr, "yardmaster: %s\n", none.Text)
		if none.At.HasParent() {
			tree.Describe(stderr, none.At)
		}
		return exit.CodeMisused
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "%s: %s\nusage: %s   (-h tells more)\n", name, client.Escape(string(wrong)), tree.Usage(c))
		return exit.CodeMisused
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, client.Escape(err.Error()))
	if hint := next(err); hint != "" {
		fmt.Fprintln(stderr, hint)
	}
	return exit.Code(err)
}

// firstWord is the first word of a command line if its commands are all that is wanted;
// "" for those that look at all commands.
func firstWord(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || slices.Contains([]string{"help", "__complete",
		"__completeNoDesc", "man"}, args[0]) {
		return ""
	}
	return args[0]
}

// next is advice about an error, where that is the same for all commands; else "".
func next(err error) string {
	var refusal *client.Problem
	var silent *client.Unreachable
	switch {
	case errors.As(err, &silent):
		if others := otherContexts(silent.URL); len(others) > 0 {
			return "Is the server running there? `yardmaster auth use NAME` goes to another of your servers: " + strings.Join(others, ", ") +
				"; `yardmaster serve` starts one."
		}
		return "Is the server running there? `yardmaster serve` starts one, --url of `yardmaster login` and `yardmaster setup` names another."
	case errors.Is(err, syscall.EADDRINUSE):
		return "Another program listens there: stop it, or choose another address with --listen."
	case errors.As(err, &refusal) && refusal.Slug() == "unauthenticated":
		address, name := signin.Server()
		again := "`" + client.SignInCommand(name, address) + "` gets another."
		if os.Getenv("YARDMASTER_TOKEN") != "" && signin.Context == "" {
			return "The token in YARDMASTER_TOKEN is not, or no longer, good: unset that, and " + again
		}
		return "The token is not, or no longer, good: " + again
	case errors.As(err, &refusal) && refusal.Slug() == "missing-scope" && slices.ContainsFunc(refusal.MissingScopes, isOperators):
		lacks := slices.DeleteFunc(slices.Clone(refusal.MissingScopes), func(scope string) bool { return !isOperators(scope) })
		return fmt.Sprintf("It takes an operator token, which lives an hour: export YARDMASTER_TOKEN=\"$(yardmaster operator token --login YOU --scopes %s)\"",
			client.Escape(strings.Join(lacks, ",")))
	case errors.As(err, &refusal) && refusal.Clear.Command() != "":
		return "What moves it: " + client.Escape(refusal.Clear.Command())
	case errors.As(err, &refusal) && len(refusal.Errors) > 0:
		return "" // what is wrong is said, and by whom
	case errors.As(err, &refusal) && refusal.RequestID != "" && failed(refusal.Slug()):
		return "The server's log has the cause, under request_id=" + client.Escape(refusal.RequestID)
	case errors.As(err, &refusal) && refusal.RequestID != "":
		return "request_id=" + client.Escape(refusal.RequestID)
	}
	return ""
}

// failed tells whether a problem is that something failed at the server, of which its log says more. Problems with
// slugs of their own, whatever their status, are refusals that say all there is to know.
func failed(slug string) bool {
	return slug == "internal" || slug == "unavailable" || slug == "storage-full"
}

// otherContexts are the names of the logins at other servers than one that does not answer,
// where that was not named for this command alone.
func otherContexts(address string) (names []string) {
	all, err := client.ReadLogins()
	if err != nil || signin.Context != "" || os.Getenv("YARDMASTER_URL") != "" {
		return nil
	}
	if of, _ := all.Get(all.Current); of.URL != address {
		return nil
	}
	for _, name := range all.Names() {
		if of, _ := all.Get(name); of.URL != address {
			names = append(names, client.Escape(name)+" ("+client.Escape(of.URL)+")")
		}
	}
	return names
}

// isOperators tells whether only operator tokens may hold a scope.
func isOperators(scope string) bool {
	return strings.HasPrefix(scope, "admin:") && !strings.HasPrefix(scope, "admin:read:") && client.Word(scope) == scope
}

func runVersion(_ context.Context, _ []string, o *output.Flags) error {
	if o.ForPrograms() {
		b, err := object.Encode(map[string]string{"version": machine.This.Version, "commit": machine.Commit()})
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	fmt.Println(strings.TrimSpace("yardmaster " + machine.This.Version + " " + machine.Commit()))
	return nil
}
