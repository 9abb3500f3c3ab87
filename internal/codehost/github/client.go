package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
)

// maxAnswer is the largest answer of the API that is read, in bytes.
const maxAnswer = 64 << 20

// perPage is the largest page of a list.
const perPage = "100"

// lenient reads GitHub's JSON: texts of people may be no UTF-8.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// permissions are what a token is asked for, by GitHub's names: read or write.
type permissions map[string]string

// String is "contents=write; issues=read", sorted.
func (p permissions) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		all = append(all, name+"="+p[name])
	}
	return strings.Join(all, "; ")
}

// request is one call of the API.
type request struct {
	method  string
	path    string // below the address of the API, with its query; or an address, of a next page
	body    any    // sent as JSON
	tag     codehost.Tag
	auth    credential
	need    permissions // what the credential was asked for
	content bool        // it makes something that people are told of
	reads   bool        // it changes nothing, whatever its method
}

// credential is what goes into the header Authorization.
type credential struct {
	header string
	payer  string // whom GitHub counts the call for
}

// reply is what an answer says beside its body.
type reply struct {
	status int
	header http.Header
	tag    codehost.Tag
	next   string // address of the next page; "" after the last
}

// errMoved says that a write was answered with a redirect.
var errMoved = errors.New("GitHub has moved the repository")

// send carries out one call. It reads the body of the answer into out, unless out is
// nil, and fails with the faults of package codehost, errMoved, errUnauthorized or a
// *Refusal.
func (h *Host) send(ctx context.Context, q request, out any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var re reply
	for range 3 {
		resp, err := h.exchange(ctx, q)
		if err != nil {
			return re, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		resp.Body.Close()
		if err == nil && len(body) > maxAnswer {
			err = fmt.Errorf("the answer of %s %s is larger than %d bytes", q.method, q.path, maxAnswer)
		}
		if err != nil {
			return re, &codehost.BusyError{Cause: err}
		}
		re.status, re.header = resp.StatusCode, resp.Header
		re.tag = codehost.Tag(resp.Header.Get("Etag"))
		re.next = nextPage(resp.Header)
		switch {
		case re.status == http.StatusNotModified:
			return re, codehost.ErrNotModified
		case re.status >= 300 && re.status < 400:
			to, err := resp.Location()
			if err != nil || q.method != http.MethodGet || !h.own(to) {
				return re, errMoved
			}
			q.path = to.String()
			continue
		case re.status >= 400:
			err := h.failure(re.status, resp.Header, body, q.need)
			if busy, is := errors.AsType[*codehost.BusyError](err); is && busy.Limit && hidden(resp.Header) {
				h.limits.Note(q.auth.payer, pace.Note{Refused: true})
			}
			return re, err
		case out == nil || len(body) == 0:
			return re, nil
		}
		if err := json.Unmarshal(body, out, lenient); err != nil {
			return re, fmt.Errorf("read the answer of %s %s: %w", q.method, q.path, err)
		}
		return re, nil
	}
	return re, errMoved
}

// exchange sends a request and returns the answer, whose body the caller closes. It
// keeps the pace of the limits, and fails with *codehost.BusyError if there is no
// answer.
func (h *Host) exchange(ctx context.Context, q request) (*http.Response, error) {
	address, err := h.address(q.path)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if q.body != nil {
		b, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("User-Agent", "yardmaster")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if h.web.Hostname() == "github.com" {
		r.Header.Set("X-GitHub-Api-Version", "2022-11-28") // an Enterprise Server may not know it
	}
	if q.auth.header != "" {
		r.Header.Set("Authorization", q.auth.header)
	}
	if q.tag != "" {
		r.Header.Set("If-None-Match", string(q.tag))
	}
	cost := pace.Cost{
		Resource: h.resourceOf(address), Write: q.method != http.MethodGet && !q.reads, Content: q.content,
		Urgency: codehost.UrgencyOf(ctx),
	}
	if err := h.limits.Take(ctx, q.auth.payer, cost); err != nil {
		return nil, err
	}
	resp, err := h.http.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
			return nil, cause
		}
		return nil, &codehost.BusyError{Cause: fmt.Errorf("%s %s: %w", q.method, r.URL.Path, withoutQuery(err))}
	}
	h.limits.Note(q.auth.payer, noteOf(resp))
	return resp, nil
}

// withoutQuery is the cause of an error of package http, which names the whole address.
func withoutQuery(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// address is the full address of a path. An address that GitHub gave must be its own:
// a credential goes there.
func (h *Host) address(path string) (string, error) {
	if strings.HasPrefix(path, "/") {
		return h.cfg.Addresses.API + path, nil
	}
	u, err := url.Parse(path)
	if err != nil || !h.own(u) {
		return "", fmt.Errorf("GitHub names the address %.200q, which is not its own", path)
	}
	return path, nil
}

func (h *Host) own(u *url.URL) bool {
	for _, base := range []string{h.cfg.Addresses.API, h.cfg.Addresses.GraphQL} {
		if b, err := url.Parse(base); err == nil && u.Scheme == b.Scheme && u.Host == b.Host {
			return true
		}
	}
	return false
}

// nextPage reads the header Link.
func nextPage(header http.Header) string {
	for _, all := range header.Values("Link") {
		for one := range strings.SplitSeq(all, ",") {
			address, rel, _ := strings.Cut(one, ";")
			if strings.Contains(rel, `rel="next"`) {
				return strings.Trim(strings.TrimSpace(address), "<>")
			}
		}
	}
	return ""
}

// call is a request about a repository.
type call struct {
	method  string
	sub     string // the path below that of the repository, beginning with "/", or ""
	query   url.Values
	body    any
	tag     codehost.Tag
	need    permissions
	content bool
	page    string // address of a next page, instead of sub and query
}

// do carries out a call about a repository with a token for it. It asks for a new token
// once if GitHub does not know the one it has.
func (h *Host) do(ctx context.Context, r codehost.Repo, c call, out any) (reply, error) {
	if err := h.ours(r); err != nil {
		return reply{}, err
	}
	renewed, moved := false, false
	for {
		auth, err := h.tokenFor(ctx, r, c.need)
		if err != nil {
			return reply{}, err
		}
		path := c.page
		if path == "" {
			if path = byID(r) + c.sub; len(c.query) > 0 {
				path += "?" + c.query.Encode()
			}
		}
		re, err := h.send(ctx, request{
			method: c.method, path: path, body: c.body, tag: c.tag, auth: auth, need: c.need, content: c.content,
		}, out)
		switch {
		case errors.Is(err, errUnauthorized) && !renewed:
			h.tokens.forget(r)
			renewed = true
			continue
		case errors.Is(err, codehost.ErrNotFound) && !moved:
			var failed error
			if moved, failed = h.reinstalled(ctx, r); failed != nil {
				return re, failed
			}
			if moved {
				continue
			}
		case errors.Is(err, errUnauthorized):
			err = &codehost.BusyError{Cause: err}
		case errors.Is(err, errMoved): // of a write, by a name
			err = codehost.ErrNotFound.Because(err)
		}
		if err != nil && !errors.Is(err, codehost.ErrNotModified) {
			err = fmt.Errorf("%s of %s: %w", strings.TrimSpace(c.method+" "+c.sub), r, err)
		}
		return re, err
	}
}

// get is a read of a repository.
func (h *Host) get(ctx context.Context, r codehost.Repo, need permissions, sub string, out any) error {
	_, err := h.do(ctx, r, call{method: http.MethodGet, sub: sub, need: need}, out)
	return err
}

// list reads the pages of a list. read is given each page; it answers false to read no
// further. The tag is that of the only page, or "": the first page of several may stay
// as it is while another changes.
func list[P any](ctx context.Context, h *Host, r codehost.Repo, c call, read func(P) bool) (codehost.Tag, error) {
	c.method = http.MethodGet
	if c.query == nil {
		c.query = url.Values{}
	}
	c.query.Set("per_page", perPage)
	var tag codehost.Tag
	for first := true; ; first = false {
		var page P
		re, err := h.do(ctx, r, c, &page)
		if err != nil {
			return "", err
		}
		if tag = ""; first && re.next == "" {
			tag = re.tag
		}
		if !read(page) || re.next == "" {
			return tag, nil
		}
		c.page, c.tag = re.next, ""
	}
}

// pages reads all elements of a list whose pages are objects.
func pages[P, T any](ctx context.Context, h *Host, r codehost.Repo, c call, of func(P) []T) ([]T, codehost.Tag, error) {
	var out []T
	tag, err := list(ctx, h, r, c, func(page P) bool {
		out = append(out, of(page)...)
		return true
	})
	return out, tag, err
}

// all reads all elements of a list.
func all[T any](ctx context.Context, h *Host, r codehost.Repo, need permissions, sub string, query url.Values) ([]T, error) {
	var out []T
	_, err := list(ctx, h, r, call{sub: sub, query: query, need: need}, func(page []T) bool {
		out = append(out, page...)
		return true
	})
	return out, err
}

// number is a path segment of a number.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// refPath escapes the name of a ref for a path, in which slashes stand as they are.
func refPath(ref string) string {
	parts := strings.Split(ref, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
