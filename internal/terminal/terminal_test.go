package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestTableFits(t *testing.T) {
	t.Parallel()
	columns := []Column{{Head: "ID"}, {Head: "STATUS"}, {Head: "TITLE", Flex: true}, {Head: "COST", Right: true}, {Head: "NEVER"}}
	rows := [][]Cell{
		{{Text: "c06a6b89"}, {Text: "running", Tone: Run}, {Text: "日本語の長い題名がここにあります"}, {Text: "$1.25"}},
		{{Text: "7479aa73"}, {Text: "failed", Tone: Bad}, {Text: "e\u0301\x1b[31m\u202ex\nnext 👩‍👩‍👧 family"}, {Text: "$12.00"}},
		{{Text: "eac760d9"}},
	}
	for width, want := range map[int]string{
		0: "ID        STATUS   TITLE                               COST\n" +
			"c06a6b89  running  日本語の長い題名がここにあります   $1.25\n" +
			"7479aa73  failed   e\u0301[31mx next 👩👩👧 family         $12.00\n" +
			"eac760d9\n",
		40: "ID        STATUS   TITLE            COST\n" +
			"c06a6b89  running  日本語の長い…   $1.25\n" +
			"7479aa73  failed   e\u0301[31mx next…   $12.00\n" +
			"eac760d9\n",
		30: "ID        STATUS   TITLE\n" +
			"c06a6b89  running  日本語の長…\n" +
			"7479aa73  failed   e\u0301[31mx nex…\n" +
			"eac760d9\n",
		12: "ID\nc06a6b89\n7479aa73\neac760d9\n",
	} {
		var b strings.Builder
		if err := (Screen{Width: width}).Table(&b, columns, rows); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("at %d:\n%s\nnot\n%s", width, b.String(), want)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); width > 0 && Width(line) > width {
				t.Errorf("%q is wider than %d", line, width)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%q controls the terminal", line)
			}
		}
	}
	var b strings.Builder
	if err := (Screen{Width: 80, Colour: true}).Table(&b, columns, rows); err != nil || !strings.Contains(b.String(),
		"\x1b[31mfailed\x1b[0m") ||
		strings.Count(b.String(), "\x1b[")%2 != 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// Extra columns are left out before a title is cut, and one that gives way itself before a title is cut to little.
func TestExtraColumnsGiveWayFirst(t *testing.T) {
	t.Parallel()
	columns := []Column{{Head: "ID"}, {Head: "STATE"}, {Head: "BRANCH", Flex: true, Extra: true}, {Head: "TRY", Extra: true},
		{Head: "BOX", Extra: true}, {Head: "TITLE", Flex: true}}
	title, branch := strings.Repeat("t", 40), strings.Repeat("b", 40)
	rows := [][]Cell{{{Text: "c06a6b89"}, {Text: "running"}, {Text: branch}, {Text: "1"}, {Text: "builder"}, {Text: title}}}
	for width, want := range map[int]string{
		120: "c06a6b89  running  " + branch + "  1    builder  " + title,
		112: "c06a6b89  running  " + branch + "  1    " + title,
		105: "c06a6b89  running  " + branch + "  " + title,
		90:  "c06a6b89  running  " + strings.Repeat("b", 33) + "…  " + strings.Repeat("t", 34) + "…",
		80:  "c06a6b89  running  " + title,
		50:  "c06a6b89  running  " + strings.Repeat("t", 30) + "…",
	} {
		var b strings.Builder
		if err := (Screen{Width: width}).Table(&b, columns, rows); err != nil {
			t.Fatal(err)
		}
		if _, line, _ := strings.Cut(b.String(), "\n"); strings.TrimSuffix(line, "\n") != want {
			t.Errorf("at %d: %q, not %q", width, line, want)
		}
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	if got := (Screen{}).Paint(Bad, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := (Screen{Colour: true}).Paint(Bad, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "0s", 40 * time.Second: "40s", 100 * time.Second: "1m", 5 * time.Minute: "5m", 3 * time.Hour: "3h", 50 * time.Hour: "2d",
		40 * 24 * time.Hour: "5w", 1000 * 24 * time.Hour: "2y", -5 * time.Minute: "in 5m", -time.Millisecond: "0s",
	} {
		if got := Age(now, now.Add(-ago)); got != want {
			t.Errorf("%s ago is %q, not %q", ago, got, want)
		}
	}
}

func TestPicker(t *testing.T) {
	t.Parallel()
	rows := []string{"one fish", "two fish", "red \u202ebox", "blue fish"}
	for _, c := range []struct {
		keys []string
		row  int
	}{
		{[]string{"\r"}, 0},
		{[]string{"\x1b[B", "\x1b[B", "\x1b[A", "\r"}, 1},
		{[]string{"b", "l", "\r"}, 3},
		{[]string{"x", "\x7f", "f", "i", "\x1b[B", "\x1b[B", "\x1b[B", "\x1b[B", "\r"}, 3},
		{[]string{"z", "\r", "\x1b"}, -1},
		{[]string{"\x03"}, -1},
	} {
		p := &picker{prompt: "which", rows: rows}
		row, err := -1, error(nil)
		for _, k := range c.keys {
			if row, err = p.key(k); row >= 0 || err != nil {
				break
			}
			var b strings.Builder
			p.draw(Screen{Width: 20}, &b)
		}
		if row != c.row || (row < 0) != (err != nil) {
			t.Errorf("%q picks %d, %v", c.keys, row, err)
		}
	}
	many := &picker{rows: make([]string, 30)}
	for range 25 {
		if _, err := many.key("\x1b[B"); err != nil {
			t.Fatal(err)
		}
	}
	if many.at != 25 || many.top != 25-shown+1 {
		t.Errorf("at %d, from %d", many.at, many.top)
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	env := func(command string) func(string) string {
		return func(key string) string { return map[string]string{"EDITOR": command}[key] }
	}
	text, path, err := Edit(t.Context(), env(`sh -c 'printf "written\n" | cat - "$1" > "$1.new" && mv "$1.new" "$1"' -`),
		"begun", "help\nof two lines")
	if err != nil || text != "written\nbegun" {
		t.Errorf("%q, %v", text, err)
	}
	if b, err := os.ReadFile(path); string(b) != "written\nbegun\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
	Forget(path)
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the file is left: %v", err)
	}
	if _, path, err := Edit(t.Context(), env("true"), "", "help"); err != ErrEmpty || path != "" {
		t.Errorf("%q, %v", path, err)
	}
	if _, path, err := Edit(t.Context(), env("false"), "x", "help"); err == nil || path != "" {
		t.Errorf("an editor that failed wrote something: %q", path)
	}
	if _, path, err = Edit(t.Context(), env(`sh -c 'echo much > "$1"; exit 1' -`), "x", "help"); err == nil {
		t.Error("an editor that failed is none that did not")
	}
	if b, err := os.ReadFile(path); string(b) != "much\n" {
		t.Errorf("what an editor that failed has left is %q, %v", b, err)
	}
	Forget(path)
}

// A pipe gets a line for each step, and nothing that is drawn.
func TestProgressOnAPipe(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := Screen{}.NewProgress(&b, "one")
	p.Step("one")
	p.Part("45%")
	p.Step("two\x1b[2J")
	p.Stop()
	if b.String() != "one\ntwo[2J\n" {
		t.Errorf("%q", b.String())
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 45 * time.Second: "45s", time.Minute: "1m", 90 * time.Second: "1m30s",
		time.Hour: "1h", 90 * time.Minute: "1h30m", 24 * time.Hour: "24h", time.Hour + 20*time.Second: "1h0m20s", 10 * time.Minute: "10m"} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, not %q", d, got, want)
		}
	}
}

// lastLine keeps what was drawn last, for those who wait for it.
type lastLine struct{ lines chan string }

func (l lastLine) Write(b []byte) (int, error) {
	l.lines <- string(b)
	return len(b), nil
}

// A terminal shows the step and how far it is, on one line that is gone at the end.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	out := lastLine{make(chan string)}
	p := Screen{Width: 60, Live: true}.NewProgress(out, "")
	p.Step("Pushing web")
	p.Part("Writing objects:  45%\x1b[2J")
	line := <-out.lines
	for !strings.Contains(line, "45%") { // drawn between the two calls
		line = <-out.lines
	}
	if !strings.HasPrefix(line, "\r") || strings.Contains(line, "\n") ||
		!strings.Contains(line, " Pushing web: Writing objects:  45%[2J (") {
		t.Errorf("%q", line)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop()
	}()
	for last := ""; ; {
		select {
		case last = <-out.lines:
			continue
		case <-stopped:
		}
		if last != "\r\x1b[K" {
			t.Errorf("it leaves %q", last)
		}
		return
	}
}
