package flake

import (
	"strings"

	"yardmaster/internal/lazy"
)

var (
	// ansi are control sequences of terminals (ECMA-48, sections 5.4 and 5.6).
	ansi = lazy.New("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-_]")
	// stamp is the time before each line of a log of GitHub Actions.
	stamp = lazy.New(`^\x{FEFF}?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ?`)
	// marker is a command of a log of GitHub Actions.
	marker = lazy.New(`##\[[a-z-]+\]`)
)

// step cleans a log, and cuts out the output of the step that failed: the text between the
// header of the last group "Run" and the error that ends the step. A log without these
// marks is one step.
func step(log string) string {
	lines := strings.Split(strings.ReplaceAll(log, "\r\n", "\n"), "\n")
	for i, l := range lines {
		l = stamp.ReplaceAllString(ansi.ReplaceAllString(l, ""), "")
		if at := strings.LastIndexByte(l, '\r'); at >= 0 {
			l = l[at+1:] // a terminal shows what follows the last carriage return
		}
		lines[i] = strings.TrimRight(l, " \t")
	}
	end := len(lines)
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "##[error]Process completed") {
			end = i
			break
		}
	}
	begin := 0
	for i := end - 1; i >= 0; i-- {
		if !strings.HasPrefix(lines[i], "##[group]Run") {
			continue
		}
		begin = i + 1
		// The group shows the command and its environment, which are no output.
		for k := begin; k < end; k++ {
			if strings.HasPrefix(lines[k], "##[endgroup]") {
				begin = k + 1
				break
			}
		}
		break
	}
	lines = lines[begin:end]
	for i, l := range lines {
		lines[i] = marker.ReplaceAllString(l, "")
	}
	return strings.Join(lines, "\n")
}

var (
	saysError = lazy.New(`(?i)\b(error|fatal|panic|exception|undefined|assert\w*)\b`)
	noErrors  = lazy.New(`(?i)\b0 errors?(\(s\))?`)
	// compiles are messages of compilers, type checkers and linters.
	compiles = lazy.New(`(?i)^\S*[^\s:(]\.[a-z0-9]+(:\d+(:\d+)?:|\(\d+(,\d+)?\):)\s|^\s*(error|warning)(\[[a-z]+\d+\]| TS\d+)?: |` +
		`^\s*\d+:\d+\s+(error|warning)\s|^e: \S`)
)

// firstError is the first line that speaks of an error; "" if there is none.
func firstError(lines []string) string {
	for _, l := range lines {
		if saysError.MatchString(noErrors.ReplaceAllString(l, "")) {
			return l
		}
	}
	return ""
}

var (
	// machine are failures of the machine of a job, wherever they occur.
	machine = lazy.New(`No space left on device|The (hosted )?runner(: .*)? (has received a shutdown signal|lost communication with the server)|` +
		`The self-hosted runner lost communication|The operation was canceled because the runner`)
	// mirror are failures of servers of packages, as their clients report them.
	mirror = lazy.New(`(?i)(failed to fetch https?://|npm (err!|error)|HTTP error|reading https?://\S*(proxy|sum)\S*: |` +
		`could not (transfer|get|download|resolve) \S|received status code|unexpected (HTTP )?status|failed to download |` +
		`spurious network error|error response from daemon: ).*\b5(00|02|03|04|20|22|24|29)\b`)
)

// infrastructure is the line that tells that the machine, or a server of packages, failed;
// "" if there is none. Tests may print anything about servers, so these count only where
// no test has failed.
func infrastructure(lines []string, mirrors bool) string {
	for _, l := range lines {
		if machine.MatchString(l) || mirrors && mirror.MatchString(l) {
			return l
		}
	}
	return ""
}
