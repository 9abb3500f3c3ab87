package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/money"
	"yardmaster/internal/terminal"
)

// fewRows is the number of rows of each part of the status.
const fewRows = 5

func defineStatus(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.AddWatch(fl)
	return func(ctx context.Context, _ []string) error {
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		return o.Show(ctx, func() ([]byte, error) { return readStatus(ctx, c) }, noun.WithNames(ctx, c, writeStatus))
	}
}

// readStatus reads all parts at once. One that the token may not read is left out, and named as unread.
func readStatus(ctx context.Context, c *client.Client) ([]byte, error) {
	parts := statusParts()
	read := readers(ctx, c, parts)
	numbers := []string{"counts", "spending"}
	type result struct {
		statusRows
		one any
		err error
	}
	results := make([]chan result, len(parts)+len(numbers))
	for i := range results {
		results[i] = make(chan result, 1)
		go func() {
			var r result
			if i < len(parts) {
				r.statusRows, r.err = read[i]()
			} else {
				r.err = c.Call(ctx, http.MethodGet, []string{"/v1/overview/counts", "/v1/overview/burn"}[i-len(parts)], nil, &r.one)
			}
			results[i] <- r
		}()
	}
	out, rows := map[string]any{}, map[string][]json.RawMessage{}
	unread, needs, more, goesOn := []string{}, map[string][]string{}, map[string]int{}, map[string]bool{}
	for i, ch := range results {
		var name string
		if i < len(parts) {
			name = parts[i].name
		} else {
			name = numbers[i-len(parts)]
		}
		r := <-ch
		var p *client.Problem
		switch {
		case errors.As(r.err, &p) && (p.Status == http.StatusForbidden || p.Status == http.StatusNotFound):
			if unread = append(unread, name); len(unread) == len(results) {
				return nil, r.err
			}
			if len(p.MissingScopes) > 0 {
				needs[name] = p.MissingScopes
			}
		case r.err != nil:
			return nil, r.err
		case i < len(parts):
			rows[name] = append([]json.RawMessage{}, r.rows...) // never null
			goesOn[name] = r.more
		default:
			out[name] = r.one
		}
	}
	if stuck, read := rows["stuck"]; read {
		rows["stuck"] = withoutDoubles(stuck, rows["held"], rows["pulls"], rows["spent_pulls"])
	}
	if asked, read := rows["escalations"]; read {
		rows["escalations"] = withoutDoubles(asked, rows["pulls"], rows["spent_pulls"])
	}
	quiet, atLeast := true, []string{} // the parts that may have more than that
	for name, some := range rows {
		if out[name] = some[:min(len(some), fewRows+1)]; len(some) > fewRows {
			more[name] = len(some) - fewRows
			if goesOn[name] {
				atLeast = append(atLeast, name)
			}
		}
		quiet = quiet && len(some) == 0
	}
	if len(unread) > 0 {
		out["unread"], out["needs"] = unread, needs
	}
	if len(more) > 0 {
		slices.Sort(atLeast)
		out["more"], out["at_least"] = more, atLeast
	}
	if quiet {
		if steps := firstSteps(ctx, c); steps != nil {
			out["first_steps"] = steps
		}
	}
	return object.Encode(out)
}

// firstStep is one of what to do in an account in which nothing was ever done.
type firstStep struct {
	Title   string `json:"title"`
	Command string `json:"command"`
}

// firstSteps are those that are open; none once anything was done, and where that cannot be told.
func firstSteps(ctx context.Context, c *client.Client) []firstStep {
	var known struct {
		Begun *bool `json:"begun"`
		Rungs []struct {
			firstStep
			State string `json:"state"`
		} `json:"rungs"`
	}
	if c.Call(ctx, http.MethodGet, "/v1/next-steps", nil, &known) != nil || known.Begun == nil || *known.Begun {
		return nil
	}
	var steps []firstStep
	for _, r := range known.Rungs {
		if r.State == "open" {
			steps = append(steps, r.firstStep)
		}
	}
	return append(steps, firstStep{"File your first task", noun.Called("task").First})
}

func writeStatus(w io.Writer, b []byte) error {
	v, err := object.Decode(b)
	if err != nil {
		return err
	}
	all, _ := v.(map[string]any)
	s := screen.Out()
	counts, _ := all["counts"].(map[string]any)
	spending, _ := all["spending"].(map[string]any)
	used := 0 // columns of the line
	number := func(label, text string) {
		if text = client.Inert(text); text == "" {
			return
		}
		width := terminal.Width(label + " " + text)
		switch {
		case used > 0 && s.Width > 0 && used+3+width > s.Width:
			fmt.Fprintln(w)
			used = width
		case used > 0:
			fmt.Fprint(w, "   ")
			used += 3 + width
		default:
			used = width
		}
		fmt.Fprint(w, s.Paint(terminal.Faint, label), " ", s.Paint(terminal.Strong, text))
	}
	number("approvals", object.Text(counts["pending_approvals"]))
	number("open pull requests", object.Text(counts["open_prs"]))
	number("merged in 24 h", object.Text(counts["merged_prs_24h"]))
	switch cost := object.Text(spending["cost_usd"]); {
	case cost != "":
		number("spent in the last hour", money.Shown(cost))
	case object.Text(spending["sessions"]) != "" && object.Text(spending["sessions"]) != "0":
		number("spent in the last hour", "–") // no call has a known price
	}
	fmt.Fprintln(w)
	faint := func(text string) {
		for part := range client.Broken(text, s.Width-2) {
			fmt.Fprintln(w, s.Paint(terminal.Faint, "  "+part))
		}
	}
	quiet := true
	for _, p := range statusParts() {
		rows, _ := all[p.name].([]any)
		if len(rows) == 0 {
			continue
		}
		quiet = false
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, p.title))
		rows = rows[:min(len(rows), fewRows)]
		b, err := object.Encode(rows)
		if err != nil {
			return err
		}
		if err := p.of.People(w, b); err != nil {
			return err
		}
		then := p.then
		if p.thenFor != nil {
			then = p.thenFor(rows)
		}
		if text := object.Text(object.Map(all["more"])[p.name]); text != "" {
			n, _ := strconv.Atoi(text)
			goesOn, _ := all["at_least"].([]any)
			if faint(p.more(n, slices.Contains(goesOn, any(p.name)))); then == p.lists {
				continue
			}
		}
		faint(then)
	}
	if text := notShown(all); text != "" {
		fmt.Fprintln(w)
		faint(text)
	}
	first, _ := all["first_steps"].([]any)
	switch {
	case quiet && len(first) > 0:
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, "first steps"))
		for _, step := range first {
			fmt.Fprintln(w, client.Inert(object.Text(object.Map(step)["title"])))
			fmt.Fprintln(w, s.Paint(terminal.Faint, "  "+client.Inert(object.Text(object.Map(step)["command"]))))
		}
	case quiet && slices.ContainsFunc(statusParts(), func(p statusPart) bool { return all[p.name] == nil }):
		fmt.Fprintln(w, "\nNothing of what your token may read waits or runs, and nothing of it went wrong in the last 24 h.")
	case quiet:
		fmt.Fprintln(w, "\nNothing waits or runs, and nothing went wrong in the last 24 h.")
	}
	return nil
}

// defineDoctor looks at what a client needs, part by part, and at what a box does on the
// machine of one.
func defineDoctor(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.Add(fl)
	data := fl.String("data", machine.Env("YARDMASTER_BOX_DATA", "./yardmaster-box"),
		"folder of a box of this machine, which is looked at if there is one (YARDMASTER_BOX_DATA)")
	address := fl.String("address", "", "only ask the server at an address whether it is ready, without a login, as containers and services do")
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		switch {
		case *address != "" && o.ForPrograms():
			return exit.Misused("--address answers by the exit code alone: leave --json, --jq, --template and -o out")
		case *address != "":
			return askHealth(ctx, *address)
		}
		all := o.Find()
		say := all.Say
		out, err := exec.CommandContext(ctx, "git", "--version").Output()
		say(err == nil, strings.TrimSpace("git: "+string(out)), "install git: repo add and clones need it")
		id, isBox, wrong := boxHere(*data, fl.Changed("data") || os.Getenv("YARDMASTER_BOX_DATA") != "")
		if wrong != nil {
			say(false, "box: "+wrong.Error(), "run this as the user of the box; `yardmaster box join` enrolls this machine")
		}
		l, err := signin.Login()
		where := "from the environment"
		if given := os.Getenv("YARDMASTER_TOKEN") != "" && signin.Context == ""; given {
			where = "from YARDMASTER_TOKEN"
			l.Name = ""
		} else if l.Name != "" {
			where = "in the context " + l.Name
		}
		if err != nil && isBox {
			say(true, "login: none, and a box needs none", "")
		} else if err != nil {
			say(false, "login: "+err.Error(), "yardmaster auth login")
		} else {
			say(true, "login: a token for "+l.URL+", "+where, "")
		}
		if l.Name != "" && !l.Keyring {
			if path, err := client.LoginFile(); err == nil {
				if info, err := os.Stat(path); err == nil {
					say(info.Mode().Perm()&0o077 == 0, "the file of tokens: mode "+info.Mode().Perm().String(), "chmod 600 "+path)
				}
			}
		}
		if l.URL != "" && (err == nil || !isBox) {
			lookAtServer(ctx, l, say)
		}
		if isBox {
			lookAtBox(ctx, id, l, say)
		}
		return all.End()
	}
}

// lookAtServer checks that a server answers, that it knows the token, and that the clocks
// agree.
func lookAtServer(ctx context.Context, l client.Login, say func(bool, string, string)) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := &client.Client{URL: l.URL, Token: l.Token}
	begun := time.Now()
	at, err := c.Clock(ctx)
	took := time.Since(begun)
	if err != nil {
		say(false, "server: nothing answers at "+l.URL, "is it running there? yardmaster serve starts one")
		return
	}
	say(true, fmt.Sprintf("server: %s answers within %s", l.URL, took.Round(time.Millisecond)), "")
	apart := at.Sub(begun).Abs()
	say(at.IsZero() || apart < time.Minute, fmt.Sprintf("clocks: %s apart", apart.Round(time.Second)),
		"set the clock of this machine or of the server")
	if l.Token == "" {
		return
	}
	var me signin.Identity
	if err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		say(false, "token: "+err.Error(), "yardmaster auth login")
		return
	}
	ends := ""
	good := true
	if e := me.Credential.ExpiresAt; e != nil {
		ends = ", ends " + terminal.When(time.Now(), *e)
		good = time.Until(*e) > 24*time.Hour
	}
	say(good, fmt.Sprintf("token: of the account %s, with %d scopes%s", me.Account.Login, len(me.Scopes), ends),
		"yardmaster auth login gets another")
}
