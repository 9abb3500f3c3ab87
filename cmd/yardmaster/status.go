package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// statusPart is a part of the status: rows of a noun, under a heading.
type statusPart struct {
	name, title string
	of          *noun
	in          []given
	then        string // the command that deals with them
}

func statusParts() []statusPart {
	only := func(key, value string) []given { return []given{{name: "filter", text: key + ":" + value}} }
	return []statusPart{
		{"approvals", "waits for your yes or no", nounCalled("question"), nil, "yardmaster pr approve ID"},
		{"blockers", "waits for what you can give", nounCalled("blocker"), nil, "yardmaster blocker fill ID"},
		{"escalations", "was handed to people", nounCalled("escalation"), only("state", "open"), "yardmaster escalation resolve ID"},
		{"held_plans", "plans to release", nounCalled("plan"), []given{{name: "bucket", text: "held"}}, "yardmaster plan approve ID"},
		{"running", "runs now", nounCalled("task"), only("status", "running"), "yardmaster task watch ID"},
		{"failed", "went wrong", nounCalled("task"), only("status", "failed"), "yardmaster task redispatch ID"},
		{"waiting", "why tasks wait", nounCalled("stall"), nil, "yardmaster task stalls"},
	}
}

// fewRows is the number of rows of each part of the status.
const fewRows = 5

func defineStatus(fl *flag.FlagSet) action {
	o := &output{}
	o.addWatch(fl)
	return func(ctx context.Context, _ []string) error {
		c, err := connect()
		if err != nil {
			return err
		}
		return o.show(ctx, func() ([]byte, error) { return readStatus(ctx, c) }, writeStatus)
	}
}

// readStatus reads all parts at once. One that the token may not read is left out.
func readStatus(ctx context.Context, c *client.Client) ([]byte, error) {
	parts := statusParts()
	type result struct {
		rows any
		err  error
	}
	results := make([]chan result, len(parts)+2)
	for i := range results {
		results[i] = make(chan result, 1)
		go func() {
			if i < len(parts) {
				rows, _, err := parts[i].of.rows(ctx, c, parts[i].in, fewRows+1)
				results[i] <- result{rows, err}
				return
			}
			var v any
			err := c.Patient(ctx, http.MethodGet, []string{"/v1/overview/counts", "/v1/overview/burn"}[i-len(parts)], &v)
			results[i] <- result{v, err}
		}()
	}
	out := map[string]any{}
	refused := 0
	for i, ch := range results {
		r := <-ch
		var p *client.Problem
		switch {
		case errors.As(r.err, &p) && (p.Status == http.StatusForbidden || p.Status == http.StatusNotFound):
			if refused++; refused == len(results) {
				return nil, r.err
			}
		case r.err != nil:
			return nil, r.err
		case i < len(parts):
			out[parts[i].name] = r.rows
		default:
			out[[]string{"counts", "spending"}[i-len(parts)]] = r.rows
		}
	}
	return encoded(out)
}

func writeStatus(w io.Writer, b []byte) error {
	v, err := decoded(b)
	if err != nil {
		return err
	}
	all, _ := v.(map[string]any)
	s := screen()
	counts, _ := all["counts"].(map[string]any)
	spending, _ := all["spending"].(map[string]any)
	number := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s %s   ", s.Paint(terminal.Faint, label), s.Paint(terminal.Strong, client.Inert(text)))
		}
	}
	number("approvals", plainText(counts["pending_approvals"]))
	number("open pull requests", plainText(counts["open_prs"]))
	number("merged in 24 h", plainText(counts["merged_prs_24h"]))
	if cost := plainText(spending["cost_usd"]); cost != "" {
		number("last hour", "$"+cost)
	}
	fmt.Fprintln(w)
	quiet := true
	for _, p := range statusParts() {
		rows, _ := all[p.name].([]any)
		if len(rows) == 0 {
			continue
		}
		quiet = false
		fmt.Fprintf(w, "\n%s\n", s.Paint(terminal.Strong, p.title))
		more := len(rows) > fewRows
		b, err := encoded(rows[:min(len(rows), fewRows)])
		if err != nil {
			return err
		}
		if err := p.of.people(w, b); err != nil {
			return err
		}
		then := p.then
		if more {
			then = "and more; " + then
		}
		fmt.Fprintln(w, s.Paint(terminal.Faint, "  "+then))
	}
	if quiet {
		fmt.Fprintln(w, "\nNothing waits, runs or went wrong.")
	}
	return nil
}

// defineDoctor looks at what a client needs, part by part.
func defineDoctor(*flag.FlagSet) action {
	return func(ctx context.Context, _ []string) error {
		s, bad := screen(), 0
		say := func(ok bool, what, then string) {
			sign, tone := "ok ", terminal.Good
			if !ok {
				sign, tone = "bad", terminal.Bad
				bad++
			}
			fmt.Printf("%s  %s\n", s.Paint(tone, sign), client.Inert(what))
			if then != "" && !ok {
				fmt.Printf("     %s\n", client.Inert(then))
			}
		}
		out, err := exec.CommandContext(ctx, "git", "--version").Output()
		say(err == nil, strings.TrimSpace("git: "+string(out)), "install git: repo add and clones need it")
		l, err := login()
		where := "from the environment"
		if l.Name != "" {
			where = "in the context " + l.Name
		}
		if err != nil {
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
		if l.URL != "" {
			lookAtServer(ctx, l, say)
		}
		if bad > 0 {
			return fmt.Errorf("%d of these need to be seen to", bad)
		}
		return nil
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
	say(err == nil, fmt.Sprintf("server: %s answers within %s", l.URL, took.Round(time.Millisecond)),
		"is it running there? yardmaster serve starts one")
	if err != nil {
		return
	}
	apart := at.Sub(begun).Abs()
	say(at.IsZero() || apart < time.Minute, fmt.Sprintf("clocks: %s apart", apart.Round(time.Second)),
		"set the clock of this machine or of the server")
	if l.Token == "" {
		return
	}
	var me identity
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
