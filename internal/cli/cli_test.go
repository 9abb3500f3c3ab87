package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"yardmaster/cmd/yardmaster/early"
	"yardmaster/internal/box"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/db/dbtest"
)

// TestMain runs the test's own program as the command line, if told to.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if inner, ok := box.Inner()[os.Args[1]]; ok {
			os.Exit(inner(os.Args[2:])) // of a box that the test started
		}
	}
	agent := len(os.Args) == 2 && os.Args[1] == "agent" // of such a box
	if agent || os.Getenv("YARDMASTER_TEST_AS") == "program" {
		if lines, err := strconv.Atoi(os.Getenv(diesAfter)); err == nil {
			machine.Progress = &dying{lines}
		}
		os.Exit(Run(machine.Program{Version: "dev", Started: early.End}, os.Args[1:], os.Stdout, os.Stderr))
	}
	dbtest.Main(m)
}

// diesAfter makes a rotation of keys kill its process as it prints a line, by its number.
const diesAfter = "YARDMASTER_TEST_DIES_AFTER"

// dying is the output of a program that is killed at a line of it.
type dying struct{ lines int }

func (d *dying) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if d.lines -= bytes.Count(b, []byte("\n")); err == nil && d.lines <= 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing is done after it
	}
	return n, err
}

// yardmaster runs the command line in an empty folder, signed in to a server that
// does not answer.
func yardmaster(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return yardmasterAt(t, "http://127.0.0.1:1", args...)
}

// yardmasterAt is yardmaster, signed in to the server at url.
func yardmasterAt(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return yardmasterTold(t, "", url, args...)
}

// yardmasterTold is yardmasterAt with a standard input.
func yardmasterTold(t *testing.T, typed, url string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(typed)
	cmd.Env = []string{"YARDMASTER_TEST_AS=program", "HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH"), "YARDMASTER_URL=" + url,
		"YARDMASTER_TOKEN=t"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// told runs the command line in this process, for what reads and asks nothing.
func told(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// flagsOf are the names of a command's own flags. To make the whole command line takes 20 ms.
func flagsOf(words string) []string { return allFlags()[words] }

var allFlags = sync.OnceValue(func() map[string][]string {
	root, all := wholeTree(), map[string][]string{}
	for _, c := range commands() {
		of, _, _ := root.Find(strings.Fields(c.Words))
		of.Flags().VisitAll(func(f *pflag.Flag) { all[c.Words] = append(all[c.Words], f.Name) })
	}
	return all
})

// TestEveryCommandHelps checks that each command describes itself, and refuses
// unknown flags and arguments before it does anything.
func TestEveryCommandHelps(t *testing.T) {
	for _, c := range commands() {
		words := strings.Fields(c.Words)
		code, out, errs := told(append(words, "-h")...)
		if code != 0 || !strings.HasPrefix(out, "usage: yardmaster "+c.Words) || errs != "" {
			t.Errorf("%s -h: exit code %d\n%s%s", c.Words, code, out, errs)
		}
		if _, again, _ := told(append([]string{"help"}, words...)...); again != out {
			t.Errorf("help %s differs from %s -h:\n%s", c.Words, c.Words, again)
		}
		many := append(words, "a=b", "c", "d")
		if strings.Contains(c.Args, "…") { // takes any number of arguments
			many = append(words, "--nonsense")
		}
		for _, args := range [][]string{append(words, "--nonsense"), many} {
			code, out, errs = told(args...)
			if code != 2 || out != "" || !strings.HasPrefix(errs, "yardmaster "+c.Words+": ") {
				t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
			}
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string // a part of each
	}{
		{"", 0, "usage: yardmaster COMMAND", ""},
		{"help", 0, "usage: yardmaster COMMAND", ""},
		{"--version", 0, "yardmaster dev\n", ""},
		{"help task", 0, "  task watch ID", ""},
		{"help task watch", 0, "usage: yardmaster task watch ID [flags]\n\nFollow a task until it ends.\n", ""},
		{"tsak list", 2, "", "Did you mean task"},
		{"task -h", 0, "  task watch ID", ""},
		{"nothing -h", 2, "", `there is no command "nothing"`},
		{"help nothing", 2, "", `there is no command "nothing"`},
		{"task", 2, "", "yardmaster: which command of task?\nusage: yardmaster task COMMAND"},
		{"task wach", 2, "", "  task watch ID"},
		{"bogus", 2, "", "yardmaster: there is no command \"bogus\"; `yardmaster help` lists them\n"},
		{"task watch", 2, "", "yardmaster task watch: ID is missing\nusage: yardmaster task watch ID [flags]   (-h tells more)\n"},
		{"task create --repo a/b", 2, "", "TEXT is missing"},
		{"task create --repo a/b --budget 5,50 x", 2, "", "--budget takes US dollars"},
		{"task create --repo a/b --budget NaN x", 2, "", "--budget takes US dollars"},
		{"key add --provider nonsense", 2, "", "--provider takes one of anthropic, "},
		{"box run --slots x", 2, "", `invalid value "x" for --slots`},
		{"serve --lease x", 1, "", `lease (from --lease): "x" is not a duration`},
		{"serve --bogus", 2, "", "there is no flag --bogus"},
		{"key add", 2, "", "give --provider"},
		{"key add --provider openai", 4, "", "no answer from http://127.0.0.1:1"}, // before a key is asked for
		{"setup", 2, "", "give --token"},
		{"login --url example.com", 2, "", `"example.com" is not an address such as http://127.0.0.1:8080`},
		{"repo list", 4, "",
			"no answer from http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\nIs the server running there?"},
		{"task watch 12345678-1234-4234-8234-123456789abc", 4, "", "no answer from http://127.0.0.1:1"},
		{"box join --url http://127.0.0.1:2", 1, "", "your login is one of http://127.0.0.1:1"},
		{"box join --url http://127.0.0.1:2 --token x", 4, "", "no answer from http://127.0.0.1:2"},
		{"box run", 1, "", "`yardmaster box join` enrolls this machine"},
		{"repo create acme/../etc", 2, "", "a repository has a name of letters"},
		{"repo create", 2, "", "NAME|OWNER/NAME is missing"},
		{"repo add nowhere --name a/b/c", 2, "", "--name has the form OWNER/NAME"},
		{"call task.bogus", 2, "", `there is no capability "task.bogus"`},
		{"call template.", 0, "template.set     PUT     /v1/templates/{name}\n", ""},
		{"call task.cancel", 2, "", "task.cancel needs id=…"},
		{"call task.cancel id=1 bogus=2", 2, "", `task.cancel has no input "bogus"`},
		{"call task.redispatch -h", 0, "  guidance=", ""},
		{"call template.set -h", 0, "for the agent builtin; default chat; one of chat, messages, responses\n", ""},
		{"call account.orgs_list -h", 0, "key:value, of billing (paying, comped, paused)", ""},
		{"github setup", 4, "", "no answer from http://127.0.0.1:1"},
	} {
		code, out, errs := yardmaster(t, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) || (tt.errs == "") != (errs == "") {
			t.Errorf("%q: exit code %d, want %d\nstdout: %s\nstderr: %s", tt.args, code, tt.code, out, errs)
		}
	}
}

func TestNameOf(t *testing.T) {
	for source, want := range map[string]string{
		"/home/me/My Project":            "my-project",
		"/home/me/calc/":                 "calc",
		"https://example.com/o/Calc.git": "calc",
		"git@example.com:o/calc.git":     "calc",
		"git@example.com:calc":           "calc",
		"/home/me/日本":                    "",
	} {
		if got := nameOf(source); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}
