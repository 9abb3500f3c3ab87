package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

var update = flag.Bool("update", false, "write what the sessions on a terminal show into their files")

// yard runs a control plane that ada of acme has set up.
func yard(t *testing.T, flags ...string) *rig.Yard {
	t.Helper()
	y := rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	}, flags...)
	return y.Enter()
}

// person is somebody with a home folder who uses the command line.
type person struct {
	t    *testing.T
	home string
	env  []string
	cols uint16 // of the terminal; 240 if 0
}

func newPerson(t *testing.T, env ...string) *person {
	t.Helper()
	home := t.TempDir()
	p := &person{t: t, home: home}
	p.env = append([]string{"YARDMASTER_TEST_AS=program", "HOME=" + home, "PATH=" + os.Getenv("PATH"),
		"TERM=xterm-256color", "LANG=C.UTF-8",
		"YARDMASTER_KEYRING=off", "TZ=UTC", "BROWSER=true"}, env...)
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PAGER=") }) {
		p.env = append(p.env, "NO_PAGER=1") // which would wait for keys
	}
	return p
}

// step is something that is typed once the terminal shows a text.
type step struct{ shows, typed string }

// terminal runs the command line on a terminal of 24 lines of 240 columns, where no table
// is cut, until it ends, and answers what it has shown and its exit code.
func (p *person) terminal(args []string, steps ...step) (shown string, code int) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	return p.program(append([]string{self}, args...), steps...)
}

func (p *person) program(argv []string, steps ...step) (shown string, code int) {
	p.t.Helper()
	ctx := patience.Context(p.t)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.home, p.env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: cmp.Or(p.cols, 240)})
	if err != nil {
		p.t.Fatal(err)
	}
	defer tty.Close()
	var mu sync.Mutex
	var all bytes.Buffer
	more := make(chan struct{}, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			mu.Lock()
			all.Write(b[:n])
			mu.Unlock()
			select {
			case more <- struct{}{}:
			default:
			}
			if err != nil {
				return // the other side is closed
			}
		}
	}()
	from := 0
	for _, s := range steps {
		for over := false; ; {
			mu.Lock()
			at := strings.Index(all.String()[from:], s.shows)
			mu.Unlock()
			if at >= 0 {
				from += at + len(s.shows)
				break
			}
			if over {
				p.t.Fatalf("%q ended and never showed %q:\n%s", argv, s.shows, all.String())
			}
			select {
			case <-more:
			case <-read:
				over = true // with its last words, which may be these
			case <-ctx.Done():
				mu.Lock()
				defer mu.Unlock()
				p.t.Fatalf("%q never shows %q:\n%s", argv, s.shows, all.String())
			}
		}
		if _, err := tty.WriteString(s.typed); err != nil {
			p.t.Fatal(err)
		}
	}
	select {
	case <-read:
	case <-ctx.Done():
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		p.t.Fatalf("%q: %v\n%s", argv, err, all.String())
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	shorts  = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	commits = regexp.MustCompile(`\b[0-9a-f]{10,40}\b`)
	clocks  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d\d:\d\d:\d\d( \([^)]*\))?|\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?( \([^)]*\))?|\b20\d\d-\d\d\b`)
	ages    = regexp.MustCompile(`\b\d+[smhd]\b`)
	colours = regexp.MustCompile(`\x1b\[([1-9][0-9]*)m`)
	spaces  = regexp.MustCompile(` {2,}`)
	drawn   = regexp.MustCompile(`[^\n]*\r(\x1b\[K)?`)
)

// settled is what a terminal has shown, without what differs each time. Runs of spaces
// count as two; a colour is shown as {NUMBER text}, other escape sequences as they are.
func settled(shown string, y *rig.Yard, home string) string {
	s := strings.ReplaceAll(shown, "\r\n", "\n")
	s = drawn.ReplaceAllString(s, "")
	s = strings.NewReplacer(y.URL, "http://server", home, "~", "^C", "",
		"\x1b[?1049h", "{to the other screen}", "\x1b[?1049l", "{back to the first}").Replace(s)
	s = colours.ReplaceAllString(strings.ReplaceAll(s, "\x1b[0m", "}"), "{$1 ")
	s = uuids.ReplaceAllString(s, "ID")
	s = shorts.ReplaceAllString(s, "SHORT")
	s = commits.ReplaceAllString(s, "COMMIT")
	s = clocks.ReplaceAllString(s, "TIME")
	s = ages.ReplaceAllString(s, "AGE")
	s = spaces.ReplaceAllString(s, "  ")
	return strings.ReplaceAll(s, "\x1b", "␛")
}

// TestSessions plays each session of testdata/terminal on a terminal: a line that begins
// with $ is a command, one with > types its second part once the first is shown, and the
// lines after them are what the terminal shows. -update writes what it does.
func TestSessions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/terminal/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"main.go": "package main\n", ".svc/policy.yml": "version: 1\n"}); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		p := newPerson(t)
		if err := os.WriteFile(filepath.Join(p.home, "task.md"), []byte("Fix the parser\n\nIt drops the last line.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		lines := strings.Split(string(script), "\n")
		for i := 0; i < len(lines); i++ {
			line := lines[i]
			if strings.HasPrefix(line, "# ") {
				out.WriteString(line + "\n")
			}
			command, is := strings.CutPrefix(line, "$ yardmaster ")
			if !is {
				continue
			}
			out.WriteString(line + "\n")
			var steps []step
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "> ") {
				i++
				out.WriteString(lines[i] + "\n")
				shows, typed, _ := strings.Cut(strings.TrimPrefix(lines[i], "> "), " | ")
				typed = strings.NewReplacer("PASSWORD", rig.Password, "ENTER", "\r", "DOWN", "\x1b[B", "ESC", "\x1b",
					"CTRLC", "\x03").Replace(typed)
				steps = append(steps, step{shows, typed})
			}
			args := word.FindAllString(strings.ReplaceAll(command, "SERVER", y.URL), -1)
			for i := range args {
				args[i] = strings.Trim(args[i], `'"`)
			}
			shown, code := p.terminal(args, steps...)
			out.WriteString(settled(shown, y, p.home))
			if code != 0 {
				fmt.Fprintf(&out, "exit code %d\n", code)
			}
			out.WriteString("\n")
		}
		if *update {
			if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if out.String() != string(script) {
			t.Errorf("%s: the terminal shows\n%s", file, difference(string(script), out.String()))
		}
	}
}

// difference is the first line in which two texts differ, and those around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			return fmt.Sprintf("line %d:\n%s\nwant:\n%s", i+1, strings.Join(g[max(i-2, 0):min(i+6, len(g))], "\n"),
				strings.Join(w[min(max(i-2, 0), len(w)):min(i+6, len(w))], "\n"))
		}
	}
	return "fewer lines than it should"
}
