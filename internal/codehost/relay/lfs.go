package relay

import (
	"bytes"
	"context"
	"encoding/json"
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
	"yardmaster/internal/fault"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/observe"
)

// Objects is what the relay needs for objects of Git LFS. The addresses that a host answers
// are sealed, with their headers, into addresses of this server: the relay keeps nothing,
// and any node serves a transfer. The credential of the host is among the headers of an
// address at the host's own origin, and of no other.
type Objects struct {
	BaseURL string // of this server, without a slash at the end
	// Seal hides what an address holds, and Unseal finds it again in one that Seal has made.
	Seal interface {
		Seal(purpose string, plain []byte) string
		Unseal(purpose, sealed string) ([]byte, error)
	}
	// Signed is told of each transfer whose address is ours, of the account that was given it, and of
	// the credential that asked for it, if that was a run's, before its body is read; what it fails
	// with is answered.
	Signed func(ctx context.Context, account, by string) error
	Now    func() time.Time
}

// ObjectPath begins the paths of transfers: a request for one presents nothing but its
// address.
const ObjectPath = "/git/-/lfs/objects/"

const (
	objectPurpose = "relay-lfs"
	addressLife   = time.Hour
	maxAnswer     = 8 << 20 // bytes of the answer to a batch
	maxVerify     = 4 << 10 // bytes of the question whether an object has arrived
)

// sealed is what an address of a transfer holds.
type sealed struct {
	Method  string            `json:"m"`
	Href    string            `json:"h"`
	Header  map[string]string `json:"a,omitempty"`
	Size    int64             `json:"s"`
	Until   int64             `json:"u"` // Unix seconds
	Account string            `json:"c"`
	By      string            `json:"b,omitempty"` // the run for which it is
}

func (h *Relay) now() time.Time { return h.cfg.Objects.Now() }

func (h *Relay) serveObjects(mux *http.ServeMux) {
	for pattern, serve := range map[string]func(*request){
		"POST /git/-/{repo}/info/lfs/objects/batch": (*request).batch,
		"/git/-/{repo}/info/lfs/":                   func(q *request) { gitlfs.RefuseLocks(q.w) }, // locks, and what there is not
		ObjectPath + "{oid}":                        (*request).transfer,
	} {
		_, shown, _ := strings.Cut(pattern, "/")
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			observe.Of(r.Context()).Pattern = "/" + shown
			w.Header().Set("Cache-Control", "no-store")
			t := smarthttp.Transferring(w, maxTransfer, time.Minute)
			defer t.Stop()
			r.Body = t.Body(r.Body)
			serve(&request{relay: h, w: t, r: r, lfs: true})
		})
	}
}

// batch asks the host about objects, and answers addresses of this server.
func (q *request) batch() {
	if q.relay.admitted(q) == nil {
		return
	}
	var b gitlfs.Batch
	body, err := io.ReadAll(http.MaxBytesReader(q.w.ResponseWriter, q.r.Body, gitlfs.MaxBatchBody))
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	switch {
	case err != nil || b.Operation != gitlfs.Download && b.Operation != gitlfs.Upload || len(b.Objects) > gitlfs.MaxBatch:
		q.refuse(http.StatusBadRequest, "The batch cannot be read, or has too many objects.")
		return
	case b.Operation == gitlfs.Upload && len(q.access.Push) == 0:
		observe.Of(q.r.Context()).Slug = fault.Forbidden.Slug()
		q.refuse(http.StatusForbidden, "This token may read the repository, not push to it.")
		return
	}
	b.Transfers = []string{"basic"} // what the relay can carry
	if body, err = json.Marshal(b); err != nil {
		q.fail("write a batch", err)
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	write := b.Operation == gitlfs.Upload
	resp, err := q.ask(ctx, ask{
		method: http.MethodPost, path: "info/lfs/objects/batch", write: write, body: &held{head: body}, length: int64(len(body)),
		contentType: gitlfs.MediaType,
	})
	var forbidden *codehost.ForbiddenError
	if errors.As(err, &forbidden) && forbidden.Permission == "" {
		q.refuse(http.StatusForbidden, "The code host refuses objects of Git LFS: its quota may be used up.")
		return
	}
	if err != nil {
		q.fail("ask for objects", err)
		return
	}
	defer resp.Body.Close()
	base, authorization, _, err := q.git.Upstream(ctx, q.repo, write)
	if err != nil {
		q.fail("find the code host", err)
		return
	}
	var a gitlfs.Answer
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	// A client would wait for ever for an object that it has asked about.
	if err != nil || !gitlfs.IsType(resp.Header.Get("Content-Type")) || !a.Whole(b) || a.Transfer != "" && a.Transfer != "basic" {
		q.refuse(http.StatusBadGateway, "The answer of the code host is none to this batch.")
		return
	}
	sizes := map[string]int64{}
	for _, p := range b.Objects {
		sizes[p.OID] = p.Size
	}
	out := gitlfs.Answer{Transfer: "basic", HashAlgo: "sha256"}
	for _, o := range a.Objects {
		o.Size = sizes[o.OID]
		out.Objects = append(out.Objects, q.ours(o, base, authorization))
	}
	gitlfs.Write(q.w, http.StatusOK, out)
}

// ours is an object with addresses of this server in the place of those of the host.
func (q *request) ours(o gitlfs.Object, base *url.URL, authorization string) gitlfs.Object {
	out := gitlfs.Object{Pointer: o.Pointer, Error: o.Error}
	if o.Error != nil || len(o.Actions) == 0 {
		return out
	}
	out.Authenticated, out.Actions = true, map[string]gitlfs.Action{}
	for name, method := range map[string]string{gitlfs.Download: http.MethodGet, gitlfs.Upload: http.MethodPut, "verify": http.MethodPost} {
		act, ok := o.Actions[name]
		if !ok {
			continue
		}
		to, err := url.Parse(act.Href)
		if err != nil || to.User != nil || to.Host == "" || to.Scheme != "https" && (to.Scheme != "http" || base.Scheme != "http") {
			return gitlfs.Object{Pointer: o.Pointer, Error: &gitlfs.Error{
				Code: http.StatusBadGateway, Message: "The code host names an address that is not used.",
			}}
		}
		until := q.relay.now().Add(addressLife)
		if t, err := time.Parse(time.RFC3339, act.ExpiresAt); err == nil && t.Before(until) && t.Year() > 2000 {
			until = t
		}
		if t := q.relay.now().Add(time.Duration(act.ExpiresIn) * time.Second); act.ExpiresIn > 0 && t.Before(until) {
			until = t
		}
		x := sealed{
			Method: method, Href: act.Href, Header: map[string]string{}, Size: o.Size, Until: until.Unix(), Account: q.access.Account,
			By: q.access.OfRun(),
		}
		for key, value := range act.Header {
			if key = http.CanonicalHeaderKey(key); key != "Transfer-Encoding" && key != "Content-Length" && key != "Host" {
				x.Header[key] = value
			}
		}
		if x.Header["Authorization"] == "" && to.Scheme == base.Scheme && to.Host == base.Host {
			x.Header["Authorization"] = authorization
		}
		out.Actions[name] = gitlfs.Action{Href: q.relay.address(o.OID, x), ExpiresIn: max(1, int(until.Sub(q.relay.now())/time.Second))}
	}
	return out
}

// address seals where a transfer leads.
func (h *Relay) address(oid string, x sealed) string {
	plain, err := json.Marshal(x)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	to := h.cfg.Objects.Seal.Seal(objectPurpose+"/"+oid, plain)
	return h.cfg.Objects.BaseURL + ObjectPath + oid + "?" + url.Values{"to": {to}}.Encode()
}

// open finds where an address leads; false if it is not ours, or for another request.
func (q *request) open() (x sealed, ok bool) {
	oid := q.r.PathValue("oid")
	if !gitlfs.ValidOID(oid) {
		return x, false
	}
	plain, err := q.relay.cfg.Objects.Seal.Unseal(objectPurpose+"/"+oid, q.r.URL.Query().Get("to"))
	if err != nil || json.Unmarshal(plain, &x) != nil {
		return x, false
	}
	return x, x.Method == q.r.Method && q.relay.now().Unix() < x.Until
}

// transfer carries the bytes of an object, or the question whether it has arrived.
func (q *request) transfer() {
	x, ok := q.open()
	if !ok {
		observe.Of(q.r.Context()).Slug = fault.Forbidden.Slug()
		q.refuse(http.StatusForbidden, "This is no address of ours, or it has expired. Ask for a new one.")
		return
	}
	observe.Of(q.r.Context()).Account = x.Account
	if err := q.relay.cfg.Objects.Signed(q.r.Context(), x.Account, x.By); err != nil {
		q.w.Header().Set("Connection", "close")
		q.fail("admit", err)
		return
	}
	if x.Method == http.MethodPut && q.r.ContentLength != x.Size { // object stores want a length
		q.refuse(http.StatusBadRequest, fmt.Sprintf("The address is for an upload of %d bytes.", x.Size))
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	resp, err := q.forwardObject(ctx, x)
	if err != nil {
		if ctx.Err() == nil {
			q.fail("carry an object", err)
		}
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent && resp.StatusCode != http.StatusCreated &&
		resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusAccepted {
		status := resp.StatusCode
		if status < 400 || status == http.StatusUnauthorized { // redirects are not followed
			status = http.StatusBadGateway
		}
		if after := resp.Header.Get("Retry-After"); after != "" {
			q.w.Header().Set("Retry-After", after)
		}
		q.refuse(status, fmt.Sprintf("The code host answers %d.", resp.StatusCode))
		return
	}
	if x.Method != http.MethodGet {
		q.w.WriteHeader(http.StatusOK)
		return
	}
	if resp.StatusCode == http.StatusOK && resp.ContentLength >= 0 && resp.ContentLength != x.Size {
		q.refuse(http.StatusBadGateway, "The code host has other bytes than those of the object.")
		return
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", "attachment")
	for _, name := range []string{"Content-Range", "Accept-Ranges"} {
		if v := resp.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	if resp.ContentLength >= 0 {
		h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	q.w.WriteHeader(resp.StatusCode)
	_, err = io.CopyBuffer(writerOnly{q.w}, readerOnly{io.LimitReader(resp.Body, x.Size)}, make([]byte, bufferSize))
	if err != nil {
		q.broke(ctx, "carry an object", err)
	}
}

// forwardObject makes the request of a transfer at the host, or where the host keeps objects.
// The caller closes the body of the answer.
func (q *request) forwardObject(ctx context.Context, x sealed) (*http.Response, error) {
	var body io.Reader
	length := int64(0)
	switch {
	case x.Method == http.MethodPut && x.Size > 0:
		body, length = q.r.Body, x.Size
	case x.Method == http.MethodPost:
		asked, err := io.ReadAll(io.LimitReader(q.r.Body, maxVerify))
		if err != nil {
			return nil, err
		}
		body, length = bytes.NewReader(asked), int64(len(asked))
	}
	out, err := http.NewRequestWithContext(ctx, x.Method, x.Href, body)
	if err != nil {
		return nil, fmt.Errorf("an address of an object: %w", err)
	}
	out.ContentLength = length
	for _, name := range []string{"Content-Type", "Accept", "Range"} {
		if v := q.r.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	out.Header.Set("Accept-Encoding", "identity")
	for name, value := range x.Header {
		out.Header.Set(name, value)
	}
	resp, err := q.relay.client.Do(out)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which is a credential
		}
		return nil, &codehost.BusyError{Cause: err}
	}
	return resp, nil
}
