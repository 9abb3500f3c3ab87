package notary

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/event/hashchain"
)

// pending holds the notes that are still to be delivered: the newest of each
// account, and every break.
type pending struct {
	lines  map[string][]byte // by account
	breaks [][]byte
}

// maxBreaks limits the breaks that wait for an unreachable receiver.
const maxBreaks = 1000

func (p *pending) add(n hashchain.Note, line []byte) {
	switch {
	case n.Type != hashchain.NoteBreak:
		if p.lines == nil {
			p.lines = map[string][]byte{}
		}
		p.lines[n.Account] = line
	case len(p.breaks) < maxBreaks:
		p.breaks = append(p.breaks, line)
	}
}

// take returns the pending notes and leaves none.
func (p *pending) take() (out pending) {
	out, *p = *p, pending{}
	return out
}

// back puts notes back that could not be delivered, before those that were added
// since.
func (p *pending) back(old pending) {
	p.breaks = append(old.breaks, p.breaks...)
	for account, line := range old.lines {
		if p.lines[account] == nil {
			if p.lines == nil {
				p.lines = map[string][]byte{}
			}
			p.lines[account] = line
		}
	}
}

func (p pending) empty() bool { return len(p.breaks) == 0 && len(p.lines) == 0 }

func (p pending) all() [][]byte {
	out := slices.Clone(p.breaks)
	for _, account := range slices.Sorted(maps.Keys(p.lines)) {
		out = append(out, p.lines[account])
	}
	return out
}

// deliver mails and posts the pending notes. What fails is tried again.
func (n *Notary) deliver(ctx context.Context) {
	for what, tell := range map[string]func(context.Context) error{"mail the audit heads": n.mail, "post the audit heads": n.post} {
		if err := tell(ctx); err != nil && ctx.Err() == nil {
			n.Logger.WarnContext(ctx, what, slog.Any("error", err))
		}
	}
}

func (n *Notary) takePending(p *pending) pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.take()
}

func (n *Notary) putBack(p *pending, old pending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.back(old)
}

// client follows no redirects, because the address is the operator's own.
var client = &http.Client{Timeout: deliveryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

// post sends {"notes": […]} to the webhook.
func (n *Notary) post(ctx context.Context) error {
	due := n.takePending(&n.unposted)
	if n.Hook == "" || due.empty() {
		return nil
	}
	body := append([]byte(`{"notes":[`), bytes.Join(due.all(), []byte(","))...)
	err := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.Hook, bytes.NewReader(append(body, "]}\n"...)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
			return err
		}
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("the webhook answers %s", resp.Status)
		}
		return nil
	}()
	if err != nil {
		n.putBack(&n.unposted, due)
	}
	return err
}

// maxLines limits the lines of a mail.
const maxLines = 2000

// mail queues a mail with the new notes; of several servers only one does so in
// each interval. A break is mailed at once, by each server that finds it.
func (n *Notary) mail(ctx context.Context) error {
	due := n.takePending(&n.unmailed)
	if n.MailTo == "" || due.empty() {
		return nil
	}
	sent := false
	err := n.DB.Write(ctx, func(tx *db.Tx) error {
		at := func(by time.Duration) string { return fmt.Sprintf("%020d", db.Micros(tx.Now.Add(by))) }
		claimed, err := meta.Claim(tx, mailedAt, at(0), at(checkEvery/2-n.Every), at(n.Every))
		if sent = err == nil && (claimed || len(due.breaks) > 0); !sent {
			return err
		}
		subject, text := letter(due, tx.Now)
		return n.Post(tx, n.MailTo, subject, text)
	})
	if err != nil || !sent {
		n.putBack(&n.unmailed, due)
	}
	return err
}

func letter(due pending, now time.Time) (subject, text string) {
	lines := due.all()
	subject = fmt.Sprintf("Audit heads of %s", now.Format(time.DateTime))
	var b strings.Builder
	if n := len(due.breaks); n > 0 {
		subject = fmt.Sprintf("Audit chains are broken: %d", n)
		b.WriteString("The record in the database is not what was noted of it; the lines of type \"break\" say how.\n" +
			"If an older database was put back, `yardmaster audit accept REASON` says so on the record.\n\n")
	}
	b.WriteString("Keep this mail where the operators of the server do not reach it. Each line is a signed note of\n" +
		"the record; `yardmaster audit verify --head FILE --key KEY EXPORT` holds an export against them.\n\n")
	for i, line := range lines {
		if i == maxLines {
			fmt.Fprintf(&b, "%d more are in the file of the server.\n", len(lines)-maxLines)
			break
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return subject, b.String()
}
