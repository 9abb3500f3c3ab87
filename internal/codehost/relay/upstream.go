package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

const (
	bufferSize   = 32 << 10
	maxHeld      = 64 << 10 // bytes of a body that can be sent again
	maxRedirects = 3
)

// held is the body of a request. Its beginning is held, so that a body that is short
// can be sent again.
type held struct {
	head  []byte
	rest  io.Reader // what follows head; nil if that is all
	spent bool      // rest has been read from
}

// hold reads the beginning of a body.
func hold(r io.Reader) (*held, error) {
	head, err := io.ReadAll(io.LimitReader(r, maxHeld))
	if err != nil {
		return nil, err
	}
	if len(head) < maxHeld {
		return &held{head: head}, nil
	}
	return &held{head: head, rest: r}, nil
}

func (b *held) reader() io.Reader {
	if b.rest == nil {
		return bytes.NewReader(b.head)
	}
	b.spent = true
	return io.MultiReader(bytes.NewReader(b.head), b.rest)
}

// again tells whether the body can be sent once more.
func (b *held) again() bool { return b == nil || !b.spent }

// ask is a request to a host.
type ask struct {
	method, path, query   string // path below the address of the repository
	write                 bool
	body                  *held
	length                int64 // of body; -1 if unknown
	contentType, encoding string
}

// moved is an address of a repository, and where the host redirected from it.
type moved struct {
	from string
	to   *url.URL
}

// errRefused says that the host does not take the credential.
var errRefused = errors.New("the code host refuses the credential")

// ask sends a request to the host of the repository, with a credential of the server. A
// credential that is refused is renewed once, and redirects at the host are followed,
// as long as the body can be sent again. The caller closes the body of the answer, whose
// status is 200.
func (q *request) ask(ctx context.Context, a ask) (*http.Response, error) {
	renewed := false
	for range maxRedirects + 2 {
		base, authorization, _, err := q.git.Upstream(ctx, q.repo, a.write)
		if err != nil {
			return nil, err
		}
		from := base.String()
		if known, ok := q.relay.moved.Load(q.repo.Key()); ok && known.(moved).from == from {
			base = known.(moved).to
		}
		resp, err := q.send(ctx, base, authorization, a)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, bufferSize) // so that the connection is used again
		resp.Body.Close()
		seconds, _ := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32)
		// A host that names a time refuses for a limit, not for the credential.
		slow := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusForbidden && seconds > 0
		if slow || resp.StatusCode >= 500 {
			return nil, &codehost.BusyError{
				After: time.Duration(seconds) * time.Second, Limit: slow, Cause: fmt.Errorf("the code host answers %d", resp.StatusCode),
			}
		}
		if refused, ok := q.git.(codehost.Refuser); ok {
			switch resp.StatusCode {
			case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
				return nil, refused.Refused(ctx, q.repo, resp.StatusCode == http.StatusUnauthorized)
			}
		}
		switch status := resp.StatusCode; {
		case status == http.StatusUnauthorized:
			q.git.Renew(q.repo)
			if renewed || !a.body.again() {
				return nil, &codehost.BusyError{Cause: errRefused}
			}
			renewed = true
		case status >= 300 && status < 400:
			to, err := redirect(base, resp, a.path)
			if err != nil {
				return nil, err
			}
			q.relay.moved.Store(q.repo.Key(), moved{from, to})
			if !a.body.again() {
				return nil, &codehost.BusyError{Cause: errors.New("the code host has moved the repository during a push")}
			}
		case status == http.StatusForbidden:
			return nil, &codehost.ForbiddenError{}
		case status == http.StatusNotFound, status == http.StatusGone:
			return nil, codehost.ErrNotFound
		default:
			return nil, fmt.Errorf("the code host answers %d", status)
		}
	}
	return nil, errors.New("the code host redirects too often")
}

// redirect is the address of the repository to which an answer redirects. It must be at
// the same host: the credential goes there.
func redirect(base *url.URL, resp *http.Response, path string) (*url.URL, error) {
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("the code host redirects to nowhere: %w", err)
	}
	if to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil {
		return nil, fmt.Errorf("the code host redirects to %q, which is another host", to.Host)
	}
	repo, ok := strings.CutSuffix(to.Path, "/"+path)
	if !ok || repo == "" {
		return nil, fmt.Errorf("the code host redirects to the path %.200q", to.Path)
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: repo}, nil
}

// send sends one request. Of the client's headers it has those of git alone.
func (q *request) send(ctx context.Context, base *url.URL, authorization string, a ask) (*http.Response, error) {
	address := base.JoinPath(a.path)
	address.RawQuery = a.query
	var body io.Reader
	if a.body != nil {
		body = a.body.reader()
	}
	r, err := http.NewRequestWithContext(ctx, a.method, address.String(), body)
	if err != nil {
		return nil, fmt.Errorf("ask the code host: %w", err)
	}
	if a.body != nil {
		r.ContentLength = a.length
	}
	set := func(name, value string) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("User-Agent", q.r.Header.Get("User-Agent"))
	r.Header.Set("Accept-Encoding", "identity") // else the transport would unpack the answer
	set("Accept", q.r.Header.Get("Accept"))
	set("Content-Type", a.contentType)
	set("Content-Encoding", a.encoding)
	if !a.write {
		set("Git-Protocol", smarthttp.Protocol(q.r))
	}
	resp, err := q.relay.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return nil, &codehost.BusyError{Cause: err}
	}
	return resp, nil
}

// body is the body of the client's request, limited.
func (q *request) body() io.Reader { return http.MaxBytesReader(q.w.ResponseWriter, q.r.Body, maxBody) }

// errStrange says that the host has answered with something else.
var errStrange = errors.New("the answer of the code host is no answer to git")

// pass sends an answer of the host on to the client, by way of to.
func (q *request) pass(resp *http.Response, contentType string, to io.Writer) error {
	if resp.Header.Get("Content-Type") != contentType {
		q.fail("read the answer", &codehost.BusyError{Cause: errStrange})
		return nil
	}
	q.w.Header().Set("Content-Type", contentType)
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" {
		q.w.Header().Set("Content-Encoding", encoding)
	}
	q.w.WriteHeader(http.StatusOK)
	_, err := io.CopyBuffer(writerOnly{to}, readerOnly{resp.Body}, make([]byte, bufferSize))
	return err
}

// writerOnly and readerOnly hide methods by which io.CopyBuffer would use buffers of
// another size.
type (
	writerOnly struct{ io.Writer }
	readerOnly struct{ io.Reader }
)
