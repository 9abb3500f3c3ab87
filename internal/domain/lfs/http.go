package lfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/observe"
)

// Path is below the path of a repository, whose owner and name are the parts of it.
const Path = "/git/{owner}/{name}/info/lfs/"

// IsTransfer tells whether a path is one of an object: a request for it presents no
// credential but its address.
func IsTransfer(path string) bool {
	_, oid, ok := strings.Cut(path, "/info/lfs/objects/")
	return ok && gitlfs.ValidOID(oid)
}

// Door is what is asked before a request is served.
type Door interface {
	// Authorize decides the access of a credential, see builtin.Hooks.
	Authorize(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error)
	// Signed is told of each request whose address is signed, of the account of its repository, and
	// of the credential that asked for the address, if that was a run's, before its body is read;
	// what it fails with is answered.
	Signed(ctx context.Context, account, by string) error
}

// Handler serves what is below Path.
func (s *Service) Handler(door Door) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*request){
		"POST " + Path + "objects/batch": (*request).batch,
		"GET " + Path + "objects/{oid}":  (*request).give,
		"PUT " + Path + "objects/{oid}":  (*request).take,
		"POST " + Path + "objects/{oid}": (*request).verify,
		Path + "locks":                   func(q *request) { gitlfs.RefuseLocks(q.w) },
		Path + "locks/{rest...}":         func(q *request) { gitlfs.RefuseLocks(q.w) },
		Path + "{rest...}":               func(q *request) { gitlfs.Refuse(q.w, http.StatusNotFound, "There is nothing at this address.") },
	} {
		_, shown, _ := strings.Cut(pattern, "/")
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			observe.Of(r.Context()).Pattern = "/" + shown
			w.Header().Set("Cache-Control", "no-store")
			t := smarthttp.Transferring(w, transferTime, time.Minute)
			defer t.Stop()
			r.Body = t.Body(r.Body)
			serve(&request{s: s, door: door, w: t, r: r, at: codehost.Repo{
				Host: codehost.BuiltIn, Owner: r.PathValue("owner"), Name: strings.TrimSuffix(r.PathValue("name"), ".git"),
			}})
		})
	}
	return mux
}

// transferTime is the least time of a request; bytes that pass extend it.
const transferTime = 30 * time.Minute

// request is one request.
type request struct {
	s      *Service
	door   Door
	w      *smarthttp.Transfer
	r      *http.Request
	at     codehost.Repo
	access codehost.Access
	repo   Repo
}

// fail answers an error of ours, or one that somebody can act on.
func (q *request) fail(doing string, err error) {
	f := fault.From(err)
	record := observe.Of(q.r.Context())
	record.Slug, record.Cause = f.Slug, fmt.Errorf("%s: %w", doing, err)
	smarthttp.ComeBack(q.w, f)
	detail := f.Detail
	if f.Kind == fault.Internal {
		detail = fault.Internal.Title()
	}
	gitlfs.RefuseFault(q.w, f.Kind.Status(), detail)
}

// refuse answers a refusal that is no failure.
func (q *request) refuse(k fault.Kind, status int, message string) {
	observe.Of(q.r.Context()).Slug = k.Slug()
	gitlfs.Refuse(q.w, status, message)
}

func (q *request) missing() {
	q.refuse(fault.NotFound, http.StatusNotFound, "There is no such repository.")
}

// admit finds the repository for a credential that may read it; false if it has answered.
// An unknown repository, a foreign one and an invalid name get the same answer.
func (q *request) admit() bool {
	user, password, ok := q.r.BasicAuth()
	if !ok {
		gitlfs.Challenge(q.w)
		return false
	}
	at := q.at
	if at.Validate() != nil {
		at = codehost.Repo{} // the credential is checked all the same
	}
	var err error
	q.access, err = q.door.Authorize(q.r.Context(), user, password, at)
	switch {
	case fault.IsKind(err, fault.Unauthenticated):
		observe.Of(q.r.Context()).Slug = fault.Unauthenticated.Slug()
		gitlfs.Challenge(q.w)
		return false
	case err != nil:
		q.fail("authorize", err)
		return false
	}
	record := observe.Of(q.r.Context())
	record.Actor, record.Account = q.access.Who, q.access.Account
	if at == (codehost.Repo{}) || !q.access.Read {
		q.missing()
		return false
	}
	return true
}

// read reads the batch; false if it has refused it.
func (q *request) read() (b gitlfs.Batch, ok bool) {
	bad := func(message string) (gitlfs.Batch, bool) {
		q.refuse(fault.Invalid, http.StatusBadRequest, message)
		return b, false
	}
	if !gitlfs.IsType(q.r.Header.Get("Content-Type")) {
		return bad("The batch must be of the type " + gitlfs.MediaType + ".")
	}
	body, err := io.ReadAll(http.MaxBytesReader(q.w.ResponseWriter, q.r.Body, gitlfs.MaxBatchBody))
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	switch {
	case err != nil:
		return bad("The batch cannot be read.")
	case b.Operation != gitlfs.Download && b.Operation != gitlfs.Upload:
		return bad("The operation must be download or upload.")
	case len(b.Objects) > gitlfs.MaxBatch:
		q.refuse(fault.TooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("A batch has at most %d objects.", gitlfs.MaxBatch))
		return b, false
	case len(b.Transfers) > 0 && !slices.Contains(b.Transfers, "basic"):
		return bad("The transfer must be basic.")
	case b.HashAlgo != "" && b.HashAlgo != "sha256":
		return bad("Objects are named by sha256 here.")
	}
	return b, true
}

// batch answers which objects there are, and where they are had or sent.
func (q *request) batch() {
	if !q.admit() {
		return
	}
	b, ok := q.read()
	if !ok {
		return
	}
	if b.Operation == gitlfs.Upload && len(q.access.Push) == 0 {
		q.refuse(fault.Forbidden, http.StatusForbidden, "This token may read the repository, not push to it.")
		return
	}
	ok, err := q.find()
	if err == nil && !ok && b.Operation == gitlfs.Upload && q.access.Create {
		if ok, err = q.begin(b); err == nil && !ok {
			return
		}
	}
	switch {
	case err != nil:
		q.fail("find the repository", err)
		return
	case !ok || q.repo.Account != q.access.Account:
		q.missing()
		return
	}
	a, err := q.answer(b)
	if err != nil {
		q.fail("answer a batch", err)
		return
	}
	gitlfs.Write(q.w, http.StatusOK, a)
}

// begin notes that a first push is to make the repository, if all of its objects are taken.
// Otherwise it answers with what is refused, and returns false.
func (q *request) begin(b gitlfs.Batch) (ok bool, err error) {
	q.repo = Repo{Account: q.access.Account}
	a, err := q.answer(b)
	if err != nil {
		return false, err
	}
	refused := slices.ContainsFunc(a.Objects, func(o gitlfs.Object) bool { return o.Error != nil })
	if refused || len(a.Objects) == 0 {
		gitlfs.Write(q.w, http.StatusOK, a)
		return false, nil
	}
	if err := q.start(); err != nil {
		return false, err
	}
	return q.find()
}

// answer judges the objects of a batch one by one.
func (q *request) answer(b gitlfs.Batch) (gitlfs.Answer, error) {
	ctx := q.r.Context()
	a := gitlfs.Answer{Transfer: "basic", HashAlgo: "sha256", Objects: make([]gitlfs.Object, 0, len(b.Objects))}
	var oids []string
	for _, p := range b.Objects {
		if gitlfs.ValidOID(p.OID) {
			oids = append(oids, p.OID)
		}
	}
	var there map[string]row
	if err := q.s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		there, err = storedOf(tx, q.repo.ID, oids)
		return err
	}); err != nil {
		return a, err
	}
	left, full := int64(-1), ""
	if b.Operation == gitlfs.Upload {
		if err := q.s.tell(ctx, q.repo.Account, there); err != nil {
			return a, err
		}
		if _, off := q.s.Objects.(blob.Off); off {
			return a, fault.New(fault.StorageFull, "", "This server keeps no objects, so it takes none of Git LFS. "+
				"Its operator has to say with blob where they go.").OnPurpose()
		}
		var err error
		if left, full, err = q.s.Room.ObjectsLeft(ctx, q.repo.Account); err != nil {
			return a, err
		}
	}
	limited := left >= 0
	for _, p := range b.Objects {
		o := gitlfs.Object{Pointer: p}
		known, has := there[p.OID]
		refuse := func(code int, format string, args ...any) {
			o.Error = &gitlfs.Error{Code: code, Message: fmt.Sprintf(format, args...)}
		}
		switch {
		case !gitlfs.ValidOID(p.OID) || p.Size < 0:
			refuse(http.StatusUnprocessableEntity, "The name of the object must be 64 hexadecimal digits, and its size not negative.")
		case has && known.Size != p.Size:
			refuse(http.StatusUnprocessableEntity, "The object has %d bytes, not %d.", known.Size, p.Size)
		case b.Operation == gitlfs.Download && !has:
			refuse(http.StatusNotFound, "The repository has no object of this name.")
		case b.Operation == gitlfs.Download:
			o.Authenticated, o.Actions = true, map[string]gitlfs.Action{gitlfs.Download: q.action(http.MethodGet, p)}
		case has:
		case p.Size > MaxObject:
			refuse(http.StatusRequestEntityTooLarge, "An object has at most %d bytes.", int64(MaxObject))
		case limited && p.Size > left:
			refuse(http.StatusInsufficientStorage, "%s", full)
		default:
			left -= p.Size
			o.Authenticated, o.Actions = true, map[string]gitlfs.Action{
				gitlfs.Upload: q.action(http.MethodPut, p), "verify": q.action(http.MethodPost, p),
			}
		}
		a.Objects = append(a.Objects, o)
	}
	return a, nil
}

// errHash says that the bytes of an upload are not those of its name.
var errHash = errors.New("the bytes are not those of the name of the object")
