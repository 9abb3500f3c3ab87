package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// receive answers a push. If the client disconnects while it sends, the host sees a
// truncated request and changes nothing; once everything has arrived, the push is
// completed and announced even if the client has gone.
func (q *request) receive() {
	if len(q.access.Push) == 0 {
		smarthttp.ReadsOnly(q.w, q.r)
		return
	}
	if !q.expects(smarthttp.ReceivePack) {
		return
	}
	leave, err := q.relay.limit.Take(q.r.Context(), q.access.Who)
	if err != nil {
		return // the client has disconnected
	}
	defer leave()
	body := bufio.NewReaderSize(q.body(), bufferSize)
	p, err := smarthttp.ReadPush(body, maxHeld)
	if err != nil {
		record := observe.Of(q.r.Context())
		record.Slug, record.Cause = fault.Invalid.Slug(), fmt.Errorf("read the push: %w", err)
		http.Error(q.w, "The push is malformed.", http.StatusBadRequest)
		return
	}
	if len(p.Updates) == 0 { // a client that probes the connection before a large push
		q.w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		return
	}
	// A client that wants no report could move refs without an event.
	if !p.Reports() {
		http.Error(q.w, "The client must support report-status.", http.StatusBadRequest)
		return
	}
	if p.Options() { // GitHub offers none, and elsewhere they may turn checks off
		http.Error(q.w, "A push must not have options.", http.StatusBadRequest)
		return
	}
	if reasons := q.judge(p); len(reasons) > 0 {
		// Clients read the answer only after they have sent everything.
		if _, err := io.Copy(io.Discard, body); err == nil {
			q.w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
			_, _ = q.w.Write(p.Refusal(reasons))
		}
		return
	}
	ctx, cancel := q.w.Bound(context.WithoutCancel(q.r.Context()))
	defer cancel()
	q.forward(ctx, p, body)
}

// shared is a reader that several goroutines may read from, each some of it.
type shared struct {
	mu   sync.Mutex
	from io.Reader
}

// Read implements io.Reader.
func (s *shared) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.Read(p)
}

// judge returns the reasons to refuse refs of a push; none means that all refs may be
// pushed.
func (q *request) judge(p smarthttp.Push) map[string]string {
	reasons := make(map[string]string)
	for _, u := range p.Updates {
		switch {
		case !q.access.MayPush(u.Ref):
			reasons[u.Ref] = "this token may only push to " + strings.Join(q.access.Push, ", ")
		case u.New == codehost.ZeroSHA:
			reasons[u.Ref] = "this token may not delete branches"
		}
	}
	return reasons
}

// forward sends the push to the host and its answer to the client, and announces the
// changed refs. A pack that is short is held, so that the push is sent again if the host
// refuses the credential.
func (q *request) forward(ctx context.Context, p smarthttp.Push, rest io.Reader) {
	rest = &shared{from: rest} // the transport may read on after it has answered
	body, err := hold(rest)
	if err != nil {
		return // the client has disconnected
	}
	body.head = slices.Concat(p.Raw, body.head)
	resp, err := q.ask(ctx, ask{
		method: http.MethodPost, path: smarthttp.ReceivePack, write: true, length: q.r.ContentLength, body: body,
		contentType: "application/x-git-receive-pack-request",
	})
	if err != nil {
		_, _ = io.Copy(io.Discard, rest) // the client reads only after it has sent everything
		q.fail("push", err)
		return
	}
	defer resp.Body.Close()
	report := smarthttp.NewReport(p.SideBand())
	to := io.MultiWriter(report, &smarthttp.Lossy{To: &smarthttp.Flusher{To: q.w}})
	failed := q.pass(resp, "application/x-git-receive-pack-result", to)

	var changed []codehost.RefUpdate
	for _, u := range p.Updates {
		if report.OK[u.Ref] && u.Old != u.New {
			changed = append(changed, u)
		}
	}
	if len(changed) > 0 {
		q.relay.cfg.Pushed(ctx, codehost.PushEvent{Repo: q.repo, Who: q.access.Who, Updates: changed})
	}
	if failed != nil {
		q.broke(ctx, "push", failed)
	}
}
