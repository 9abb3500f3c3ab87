// Yardmaster is a control plane for AI developer agents: one program that
// serves the API, runs as the agent on a box, and is the command line of both.
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
	"strings"
	"syscall"
	"text/tabwriter"

	"yardmaster/internal/agent/sandbox"
	"yardmaster/internal/client"
)

// command is one subcommand. Its words are its name: "repo add".
type command struct {
	words   string
	args    string
	summary string
	run     func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"demo", "[--once] [--data DIR]", "show the whole job on a throwaway server", runDemo},
		{"serve", "[flags]", "run the control plane", runServe},
		{"config", "[flags of serve]", "print the effective configuration and where each value came from", runConfig},
		{"login", "[flags]", "sign in and remember a token", runLogin},
		{"setup", "--token TOKEN [flags]", "make the first user and account without a browser", runSetup},
		{"repo add", "PATH|URL", "put a repository on the server", runRepoAdd},
		{"repo list", "", "the repositories", runRepoList},
		{"box join", "[flags]", "enroll this machine, and run as a box", runBoxJoin},
		{"box run", "[flags]", "run as the box this machine was enrolled as", runBoxRun},
		{"box list", "", "the boxes", runBoxList},
		{"ask file", "[--repo OWNER/NAME] TEXT", "file something wanted, for triage to decide about", runAskFile},
		{"ask list", "", "the newest asks", runAskList},
		{"ask get", "ID", "what became of an ask", runAskGet},
		{"task create", "--repo OWNER/NAME TEXT", "file a task", runTaskCreate},
		{"task list", "", "the newest tasks", runTaskList},
		{"task watch", "ID", "follow a task until it ends", runTaskWatch},
		{"pr approve", "ID", "approve what is asked about a pull request's current head", runPRApprove},
		{"key add", "--provider NAME [flags]", "add a model key (read from standard input)", runKeyAdd},
		{"mail", "[--data DIR] [NUMBER]", "list the mails of a server without SMTP, or show one", runMail},
		{"audit export", "", "print the account's audit rows, one JSON object a line", runAuditExport},
		{"audit verify", "FILE", "check exported audit rows without a server; names the first bad one", runAuditVerify},
		{"call", "CAPABILITY [name=value …]", "call any capability of the API", runCall},
		{"chaos", "[--minutes N] [--seed S]", "do harm to a throwaway server and its boxes, and print what was lost", runChaos},
		{"openapi", "", "print the OpenAPI document", runOpenAPI},
		{"version", "", "print the version", runVersion},
	}
}

// hidden are the subcommands that the program runs itself with.
func hidden() map[string]func([]string) int {
	return map[string]func([]string) int{
		"agent":        runAgent,
		"sandbox-exec": sandbox.Main,
		"astray":       runAstray,
	}
}

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	if len(args) > 0 {
		if f, ok := hidden()[args[0]]; ok {
			return f(args[1:])
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, c := range commands() {
		words := strings.Fields(c.words)
		if len(args) < len(words) || strings.Join(args[:len(words)], " ") != c.words {
			continue
		}
		err := c.run(ctx, args[len(words):])
		switch {
		case err == nil || errors.Is(err, flag.ErrHelp):
			return 0
		case errors.Is(err, context.Canceled) && ctx.Err() != nil:
			return 130
		}
		fmt.Fprintf(stderr, "yardmaster %s: %s\n", c.words, client.Escape(err.Error()))
		return 1
	}
	w := stderr
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(os.Stdout)
		return 0
	}
	fmt.Fprintf(w, "yardmaster: there is no command %q\n\n", strings.Join(args, " "))
	usage(w)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Yardmaster is a control plane for AI developer agents.\n\nusage: yardmaster COMMAND\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(t, "  %s\t%s\n", strings.TrimSpace(c.words+" "+c.args), c.summary)
	}
	t.Flush()
	fmt.Fprint(w, "\n`yardmaster COMMAND -h` lists a command's flags. Client commands use the login of `yardmaster login`, or YARDMASTER_URL and YARDMASTER_TOKEN.\n")
}

// version and commit of this build. A released build sets version with the
// linker; the commit is the one Go recorded, if the tree was clean.
var version = "dev"

func commit() string {
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

func runVersion(context.Context, []string) error {
	fmt.Println("yardmaster", version, commit())
	return nil
}
