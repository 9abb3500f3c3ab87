package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/gitlfs"
)

// Remote is a repository whose objects of Git LFS are fetched and pushed. The box does so
// itself: git-lfs runs programs that a repository's configuration names, and an agent
// writes that. The address is that of the repository for git, whatever an .lfsconfig says.
// Objects are at the origin of that address or nowhere.
type Remote struct {
	URL    string
	Token  string       // the password of HTTP basic authentication
	Client *http.Client // nil: one that follows no redirect
}

// Limits of answers, and of transfers at once.
const (
	maxAnswer  = 8 << 20 // bytes
	atOnce     = 4
	batchSize  = 100
	wholeError = 500 // bytes of a message that are passed on
)

// ObjectError says that a host has refused objects of Git LFS. errors.Is finds ErrAuth in it
// if it was for the token, ErrMissing if there is no such repository or no Git LFS, and
// ErrBusy if another try may fare better.
type ObjectError struct {
	Status  int // of the answer; 0: none came
	Message string
	err     error
}

func (e *ObjectError) Error() string { return "Git LFS: " + e.Message }
func (e *ObjectError) Unwrap() error { return e.err }

func refusal(status int, message string) *ObjectError {
	if len(message) > wholeError {
		message = strings.ToValidUTF8(message[:wholeError], "")
	}
	e := &ObjectError{Status: status, Message: message}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.err = ErrAuth
	case status == http.StatusNotFound, status == http.StatusGone, status == http.StatusNotImplemented:
		e.err = ErrMissing
	case status == http.StatusTooManyRequests, status >= 500 && status != http.StatusInsufficientStorage:
		e.err = ErrBusy
	}
	return e
}

func (r Remote) client() *http.Client {
	if r.Client != nil {
		return r.Client
	}
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do makes a request. An answer of another status than 2xx is an *ObjectError. The caller
// closes the body.
func (r Remote) do(req *http.Request) (*http.Response, error) {
	resp, err := r.client().Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which is a credential
		}
		if req.Context().Err() != nil {
			return nil, context.Cause(req.Context())
		}
		return nil, &ObjectError{Message: err.Error(), err: ErrBusy}
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	var said struct{ Message string }
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = "the host answers " + resp.Status
	}
	return nil, refusal(resp.StatusCode, said.Message)
}

// batch asks about at most batchSize objects.
func (r Remote) batch(ctx context.Context, operation string, objects []gitlfs.Pointer) (a gitlfs.Answer, err error) {
	ask := gitlfs.Batch{Operation: operation, Transfers: []string{"basic"}, Objects: objects, HashAlgo: "sha256"}
	body, err := json.Marshal(ask)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/info/lfs/objects/batch", bytes.NewReader(body))
	if err != nil {
		return a, errors.New("worktree: the remote's address is malformed")
	}
	req.Header.Set("Accept", gitlfs.MediaType)
	req.Header.Set("Content-Type", gitlfs.MediaType)
	if r.Token != "" {
		req.SetBasicAuth("x-access-token", r.Token)
	}
	resp, err := r.do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil || !a.Whole(ask) {
		return a, &ObjectError{Status: resp.StatusCode, Message: "the answer of the host is none to this batch", err: ErrBusy}
	}
	return a, nil
}

// at makes a request of an action, whose address must be at the remote's own origin.
func (r Remote) at(ctx context.Context, method string, a gitlfs.Action, body io.Reader, size int64) (*http.Request, error) {
	home, err := url.Parse(r.URL)
	if err != nil {
		return nil, errors.New("worktree: the remote's address is malformed")
	}
	to, err := url.Parse(a.Href)
	if err != nil || to.Scheme != home.Scheme || to.Host != home.Host || to.User != nil {
		return nil, &ObjectError{Message: "the host names an address elsewhere for an object"}
	}
	req, err := http.NewRequestWithContext(ctx, method, a.Href, body)
	if err != nil {
		return nil, &ObjectError{Message: "the host names a malformed address for an object"}
	}
	for name, value := range a.Header {
		req.Header.Set(name, value)
	}
	req.ContentLength = size
	return req, nil
}

// each does something for every object of some, in batches and several at once, until one fails.
func (r Remote) each(ctx context.Context, operation string, all []gitlfs.Pointer, one func(context.Context, gitlfs.Object) error) error {
	for part := range slices.Chunk(all, batchSize) {
		a, err := r.batch(ctx, operation, part)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancelCause(ctx)
		slots := make(chan struct{}, atOnce)
		var running sync.WaitGroup
		for _, p := range part {
			o, _ := a.Of(p.OID)
			o.Pointer = p // the size that git says, whatever the host says
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				if ctx.Err() != nil {
					return
				}
				if err := one(ctx, o); err != nil {
					stop(err)
				}
			})
		}
		running.Wait()
		err = context.Cause(ctx)
		stop(nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// LFSObjects returns the folder of the objects of Git LFS; "" if there is none. git-lfs in a
// checkout finds it beside Objects, where a sandbox may show it, read-only.
func (c *Cache) LFSObjects() string {
	dir := filepath.Join(c.dir, "lfs", "objects")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// object is where the cache has an object.
func (c *Cache) object(oid string) string {
	return filepath.Join(c.dir, "lfs", "objects", oid[:2], oid[2:4], oid)
}

func (c *Cache) hasObject(p gitlfs.Pointer) bool {
	st, err := os.Stat(c.object(p.OID))
	return err == nil && st.Mode().IsRegular() && st.Size() == p.Size
}

// leftAfter is the age at which an unfinished object is what a process left that has ended.
const leftAfter = 24 * time.Hour

// tidyObjects deletes what processes that were killed have left of objects.
func (c *Cache) tidyObjects(now time.Time) {
	left, err := filepath.Glob(filepath.Join(c.dir, "lfs", "objects", ".put-*"))
	if err != nil {
		return
	}
	for _, name := range left {
		if st, err := os.Lstat(name); err == nil && now.Sub(st.ModTime()) > leftAfter {
			_ = os.Remove(name) // the next checkout tries again
		}
	}
}

// errOtherBytes says that bytes are not those of the name of their object.
var errOtherBytes = errors.New("its bytes are not those of its name")

// putObject takes bytes into the cache as an object. If want is not nil they must be its.
func (c *Cache) putObject(from io.Reader, want *gitlfs.Pointer) (p gitlfs.Pointer, err error) {
	dir := filepath.Join(c.dir, "lfs", "objects")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return p, err
	}
	t, err := os.CreateTemp(dir, ".put-")
	if err != nil {
		return p, err
	}
	defer os.Remove(t.Name())
	defer t.Close()
	if want != nil {
		from = io.LimitReader(from, want.Size+1)
	}
	h := sha256.New()
	if p.Size, err = io.Copy(io.MultiWriter(t, h), from); err != nil {
		return p, err
	}
	p.OID = hex.EncodeToString(h.Sum(nil))
	if want != nil && p != *want {
		return p, errOtherBytes
	}
	to := c.object(p.OID)
	return p, errors.Join(t.Chmod(0o444), t.Close(), os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(t.Name(), to))
}

// download brings objects into the cache that it lacks, and returns why some cannot be had.
func (c *Cache) download(ctx context.Context, r Remote, all []gitlfs.Pointer) (lacking map[string]string, err error) {
	lacking = map[string]string{}
	var mu sync.Mutex
	lack := func(oid, why string) {
		mu.Lock()
		defer mu.Unlock()
		lacking[oid] = why
	}
	want := slices.DeleteFunc(slices.Clone(all), c.hasObject)
	err = r.each(ctx, gitlfs.Download, want, func(ctx context.Context, o gitlfs.Object) error {
		get, ok := o.Actions[gitlfs.Download]
		switch {
		case o.Error != nil:
			lack(o.OID, refusal(o.Error.Code, o.Error.Message).Message)
			return nil
		case !ok:
			lack(o.OID, "the host names no address for it")
			return nil
		}
		req, err := r.at(ctx, http.MethodGet, get, nil, 0)
		if err != nil {
			return err
		}
		resp, err := r.do(req)
		var refused *ObjectError
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			lack(o.OID, refused.Message)
			return nil
		}
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = c.putObject(resp.Body, &o.Pointer)
		if errors.Is(err, errOtherBytes) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = &ObjectError{Message: fmt.Sprintf("object %.12s: %v", o.OID, err), err: ErrBusy}
		}
		return err
	})
	return lacking, err
}

// upload sends objects that the remote lacks, and returns those that the cache lacks too.
func (c *Cache) upload(ctx context.Context, r Remote, all []gitlfs.Pointer) (nowhere []gitlfs.Pointer, err error) {
	var mu sync.Mutex
	err = r.each(ctx, gitlfs.Upload, all, func(ctx context.Context, o gitlfs.Object) error {
		put, ok := o.Actions[gitlfs.Upload]
		switch {
		case o.Error != nil:
			return refusal(o.Error.Code, o.Error.Message)
		case !ok: // it is there
			return nil
		case !c.hasObject(o.Pointer):
			mu.Lock()
			defer mu.Unlock()
			nowhere = append(nowhere, o.Pointer)
			return nil
		}
		f, err := os.Open(c.object(o.OID))
		if err != nil {
			return err
		}
		defer f.Close()
		var body io.Reader = f
		if o.Size == 0 {
			body = http.NoBody
		}
		req, err := r.at(ctx, http.MethodPut, put, body, o.Size)
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		resp, err := r.do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		verify, ok := o.Actions["verify"]
		if !ok {
			return nil
		}
		asked, err := json.Marshal(o.Pointer)
		if err != nil {
			return err
		}
		if req, err = r.at(ctx, http.MethodPost, verify, bytes.NewReader(asked), int64(len(asked))); err != nil {
			return err
		}
		req.Header.Set("Content-Type", gitlfs.MediaType)
		req.Header.Set("Accept", gitlfs.MediaType)
		if resp, err = r.do(req); err != nil {
			return err
		}
		resp.Body.Close()
		return nil
	})
	return nowhere, err
}
