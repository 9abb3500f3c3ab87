package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/client"
)

// passing are the failures of a try after which the server tries again.
var passing = []string{"box_lost", "box_drained", "lease_expired", "provider_rate_limit", "provider_unavailable", "model_unavailable"}

// hopeless are the reasons of a wait that nothing in the demo will end.
var hopeless = []string{
	"box_unfit", "isolation_unavailable", "agent_not_installed", "template_missing",
	"no_credential", "model_unavailable", "repo_disabled", "plan_does_not_cover",
}

// failure tells whether the task has failed for good.
func failure(t client.Task) error {
	if t.Status != "merged" && t.FailureKind != nil && !slices.Contains(passing, *t.FailureKind) {
		detail := ""
		if t.Failure != nil {
			detail = ": " + *t.Failure
		}
		return fmt.Errorf("the task failed, %s%s", *t.FailureKind, detail)
	}
	for _, h := range t.Holds {
		if slices.Contains(hopeless, h.Reason) {
			return fmt.Errorf("the task cannot go on (%s) until %s", h.Reason, h.ClearsWhen)
		}
	}
	if t.Ended() && t.Status != "merged" {
		return fmt.Errorf("the task ended as %s, not as merged", t.Status)
	}
	return nil
}

// errChecks is the failure of a pull request whose checks are red.
var errChecks = errors.New("the checks of the pull request failed")

func (d *demo) boxLog() string    { return filepath.Join(d.Data, "box.log") }
func (d *demo) serverLog() string { return filepath.Join(d.Data, "server.log") }

// logLines is how many lines of each log are printed after a failure.
const logLines = 8

// showLogs prints the ends of the logs, without the addresses of the server, which
// is about to end.
func (d *demo) showLogs() {
	for _, log := range []struct {
		of, path string
		quiet    bool // its requests are not printed
	}{{"server", d.serverLog(), true}, {"box", d.boxLog(), false}} {
		lines := tail(log.path, logLines, func(line string) bool { return !log.quiet || !strings.Contains(line, " level=INFO ") })
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(d.Out, "\nThe last lines of the %s's log:\n", log.of)
		for _, line := range lines {
			fmt.Fprintf(d.Out, "    %s\n", client.Escape(d.withoutAddresses(line)))
		}
	}
	if d.kept {
		fmt.Fprintf(d.Out, "\nThe data and the whole logs are in %s.\n", d.Data)
	}
	fmt.Fprintln(d.Out)
}

// withoutAddresses replaces the addresses of the server, which nobody can reach any
// more.
func (d *demo) withoutAddresses(text string) string {
	for _, address := range d.addresses {
		_, port, _ := strings.Cut(address, "://")
		text = strings.ReplaceAll(strings.ReplaceAll(text, address, "(its address)"), port, "(its address)")
	}
	return text
}

// tail is the last n wanted lines of a file, without empty ones; none if there is no
// file.
func tail(path string, n int, wanted func(line string) bool) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"),
		func(line string) bool { return strings.TrimSpace(line) == "" || !wanted(line) })
	return lines[max(0, len(lines)-n):]
}
