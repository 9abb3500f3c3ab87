package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func defineTaskWatch(fl *flag.FlagSet) tree.Action {
	plainly := fl.Bool("no-answers", false, "only show what happens, and read nothing from the terminal")
	return func(ctx context.Context, plain []string) error {
		if *plainly {
			return followTask(ctx, plain[0], nil)
		}
		return watchTask(ctx, plain[0])
	}
}

// watchTask follows a task, and takes answers from the terminal if there is one.
func watchTask(ctx context.Context, id string) error {
	if !terminal.Interactive() {
		return followTask(ctx, id, nil)
	}
	return followTask(ctx, id, os.Stdin)
}

// tones of the lines of a watch.
var watchTones = map[string]terminal.Tone{
	"task": terminal.Strong, "run": terminal.Faint, "output": terminal.Faint, "pull": terminal.Ask, "server": terminal.Bad,
	"failed": terminal.Bad,
	"+":      terminal.Added, "-": terminal.Removed, "edit": terminal.Run,
}

// printer writes what happens, on a terminal with times, colours and short names.
func printer(c *client.Client, out io.Writer) client.Printer {
	s := screen.Out()
	p := client.Printer{Out: out, Width: s.Width}
	if s.Width > 0 {
		p.Now = time.Now
		p.Paint = func(what, text string) string { return s.Paint(watchTones[what], text) }
		p.Short = func(command string) string { return object.IDIn.ReplaceAllStringFunc(command, object.Short) }
		p.Page = func(kind, id string) string { return noun.Called(kind).PageAddress(c.URL, id) }
	}
	return p
}

// followTask prints what happens to a task until it ends. answers is where a person types
// what to do; nil is nobody.
func followTask(ctx context.Context, id string, answers io.Reader) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	out := &guarded{w: os.Stdout, over: ctx.Err}
	w := printer(c, out).Watcher()
	first := w.State
	w.State = func(t client.Task) {
		noun.Called("task").Seen(t.ID)
		first(t)
	}
	a := &answering{c: c, task: id, out: out, leave: leave}
	if answers != nil {
		state, pull := w.State, w.Pull
		w.State = func(t client.Task) {
			state(t)
			a.heard(t)
		}
		w.Pull = func(pr client.Pull) {
			pull(pr)
			a.asked(pr)
		}
		go a.listen(ctx, answers)
	}
	t, err := c.Watch(ctx, id, w)
	if err != nil && a.left() { // whatever the answer in hand was cut off with
		fmt.Fprintf(os.Stdout, "It goes on without you: yardmaster task watch %s\n", client.Word(id))
		return nil
	}
	if err != nil {
		return err
	}
	switch t.Status {
	case "merged", "completed":
		return nil
	case "failed":
		return fmt.Errorf("the task failed; `yardmaster task redispatch %s` tries it again", client.Word(t.ID))
	}
	return fmt.Errorf("the task was %s", t.Status)
}

// guarded is a writer of which whole writes do not mix. It writes nothing once over has an
// error: a long text ends with the watch.
type guarded struct {
	mu   sync.Mutex
	w    io.Writer
	over func() error
}

func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.over(); err != nil {
		return 0, err
	}
	return g.w.Write(b)
}

// answering does what a person types while a task is watched.
type answering struct {
	c     *client.Client
	task  string
	out   io.Writer
	leave context.CancelFunc

	mu      sync.Mutex
	pull    *client.Pull
	blocker string
	run     string
	gone    bool
	told    string
	answers string // id of the blocker whose answer is the next line; "" if that is a letter
}

func (a *answering) left() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone
}

// heard notes what a task waits for.
func (a *answering) heard(t client.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blocker, a.run = "", ""
	if t.RunID != nil {
		a.run = *t.RunID
	}
	for _, h := range t.Holds {
		if id := h.Clear.Blocker(); id != "" {
			a.blocker = id
			a.tell("Answer here: f fills it in, f TEXT answers in words, o opens the page, q leaves", id)
		}
	}
}

// asked notes what is asked about a pull request.
func (a *answering) asked(pr client.Pull) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pull = &pr
	if p := pr.PendingAction; p != nil && p.State == "pending" {
		a.tell("Answer here: a approves, s declines, d shows the diff, o opens the page, q leaves", p.ID+pr.HeadSHA)
	}
}

// tell says once what can be typed. The lock is held.
func (a *answering) tell(text, of string) {
	if a.told != of {
		a.told = of
		fmt.Fprintln(a.out, screen.Out().Paint(terminal.Ask, text+" (and Enter)."))
	}
}

func (a *answering) listen(ctx context.Context, in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() && ctx.Err() == nil {
		if of := a.answers; of != "" {
			a.answers = ""
			if err := a.answer(ctx, of, strings.TrimSpace(lines.Text())); err != nil && ctx.Err() == nil {
				fmt.Fprintln(a.out, client.Escape(err.Error()))
			}
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if err := a.do(ctx, word, strings.TrimSpace(rest)); err != nil && ctx.Err() == nil {
			fmt.Fprintln(a.out, client.Escape(err.Error()))
		}
	}
}

// answer answers a blocker in words.
func (a *answering) answer(ctx context.Context, blocker, text string) error {
	if text == "" {
		fmt.Fprintln(a.out, "It is left as it is.")
		return nil
	}
	_, err := a.c.Fetch(ctx, http.MethodPost, "/v1/blockers/"+url.PathEscape(blocker)+"/answer", map[string]any{"answer": text})
	return err
}

// message says something to the agent, and shows what becomes of it.
func (a *answering) message(ctx context.Context, run, text string) {
	fmt.Fprintln(a.out, "Your message is on its way.")
	var out struct {
		Status string  `json:"status"`
		Reply  *string `json:"reply"`
		Note   *string `json:"note"`
	}
	err := a.c.Call(ctx, http.MethodPost, "/v1/fleet/runs/"+url.PathEscape(run)+"/message", map[string]any{"message": text}, &out)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		fmt.Fprintln(a.out, client.Escape("Your message: "+err.Error()))
	case out.Reply != nil && *out.Reply != "":
		fmt.Fprintf(a.out, "The agent replies: %s\n", client.InertLines(*out.Reply))
	case out.Note != nil:
		fmt.Fprintf(a.out, "Your message is %s: %s\n", client.Inert(out.Status), client.Inert(*out.Note))
	default:
		fmt.Fprintf(a.out, "Your message is %s.\n", client.Inert(out.Status))
	}
}

// do does what a letter means.
func (a *answering) do(ctx context.Context, word, rest string) error {
	a.mu.Lock()
	pull, blocker, run := a.pull, a.blocker, a.run
	a.mu.Unlock()
	switch word {
	case "":
		return nil
	case "q":
		a.mu.Lock()
		a.gone = true
		a.mu.Unlock()
		a.leave()
		return nil
	case "o":
		if blocker != "" {
			return noun.OpenPage(ctx, noun.Called("blocker"), blocker)
		}
		if pull != nil {
			return noun.OpenPage(ctx, noun.Called("pr"), pull.ID)
		}
		return noun.OpenPage(ctx, noun.Called("task"), a.task)
	case "f":
		if blocker == "" {
			return errors.New("nothing is to be filled in")
		}
		if rest != "" {
			return a.answer(ctx, blocker, rest)
		}
		var spec struct {
			Question string      `json:"question"`
			Fields   []formField `json:"fields"`
		}
		if err := a.c.Call(ctx, http.MethodGet, "/v1/blockers/"+url.PathEscape(blocker)+"/spec", nil, &spec); err != nil {
			return err
		}
		if len(spec.Fields) == 0 {
			a.answers = blocker
			fmt.Fprintf(a.out, "%s\nYour answer, in a line; an empty one leaves it:\n", client.InertLines(spec.Question))
			return nil
		}
		_, err := fillBlocker(ctx, a.c, blocker, map[string]any{}, func(prompt string) (string,
			error) {
			return signin.Ask(ctx, prompt, true)
		}, a.out)
		return err
	case "m":
		if run == "" || rest == "" {
			return errors.New("m TEXT tells the agent something while it runs")
		}
		go a.message(ctx, run, rest) // the agent's answer takes a while; keys are read meanwhile
		return nil
	case "a", "s", "d":
		if pull == nil {
			return errors.New("there is no pull request yet")
		}
		switch word {
		case "d":
			return change.Show(ctx, a.c, []string{pull.ID}, "")
		case "a":
			// The head and the question that were shown are approved, and no others.
			question := ""
			if p := pull.PendingAction; p != nil {
				question = p.ID
			}
			return a.c.DecideAt(ctx, pull.ID, "approve-pending", pull.HeadSHA, question)
		}
		return a.c.DecideAt(ctx, pull.ID, "skip-pending", pull.HeadSHA, "")
	}
	return fmt.Errorf("%s is none of a, s, d, f, o, m TEXT and q", client.Inert(word))
}
