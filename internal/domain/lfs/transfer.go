package lfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/gitlfs"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// purpose keeps the signatures of addresses apart from all others.
const purpose = "lfs-address"

// statement is what is signed for an address. by is the run for which it is; empty: none.
func statement(method, repoID string, p gitlfs.Pointer, until int64, by string) []byte {
	out := fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%d", method, repoID, p.OID, p.Size, until)
	if by != "" {
		out = append(out, "\n"+by...)
	}
	return out
}

// action is an address of an object.
func (q *request) action(method string, p gitlfs.Pointer) gitlfs.Action {
	until := q.s.Clock().Add(addressLife).Unix()
	by := q.access.OfRun()
	values := url.Values{
		"size": {strconv.FormatInt(p.Size, 10)}, "until": {strconv.FormatInt(until, 10)},
		"signature": {hex.EncodeToString(q.s.Ring.Sign(purpose, statement(method, q.repo.ID, p, until, by)))},
	}
	if by != "" {
		values.Set("by", by)
	}
	return gitlfs.Action{ExpiresIn: int(addressLife / time.Second), Href: q.s.BaseURL + "/git/" + q.at.Owner + "/" + q.at.Name +
		".git/info/lfs/objects/" + p.OID + "?" + values.Encode()}
}

// signed finds the object of the address; false if it has refused it. Never with 401 or
// 422, see package gitlfs.
func (q *request) signed() (p gitlfs.Pointer, ok bool) {
	values := q.r.URL.Query()
	p.OID = q.r.PathValue("oid")
	var err error
	p.Size, err = strconv.ParseInt(values.Get("size"), 10, 64)
	until, wrong := strconv.ParseInt(values.Get("until"), 10, 64)
	found := false
	if errors.Join(err, wrong) == nil && gitlfs.ValidOID(p.OID) && q.at.Validate() == nil {
		if found, err = q.find(); err != nil {
			q.fail("find the repository", err)
			return p, false
		}
	}
	if found {
		method := q.r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		for _, s := range q.s.Ring.Signatures(purpose, statement(method, q.repo.ID, p, until, values.Get("by"))) {
			ok = seal.Equal(values.Get("signature"), hex.EncodeToString(s)) || ok
		}
	}
	switch {
	case !ok:
		q.refuse(fault.Forbidden, http.StatusForbidden, "This is no address of ours, or a part of it is missing.")
		return p, false
	case q.s.Clock().Unix() >= until:
		q.refuse(fault.Forbidden, http.StatusForbidden, "This address has expired. Ask for a new one.")
		return p, false
	}
	observe.Of(q.r.Context()).Account = q.repo.Account
	if err := q.door.Signed(q.r.Context(), q.repo.Account, values.Get("by")); err != nil {
		q.w.Header().Set("Connection", "close")
		q.fail("admit", err)
		return p, false
	}
	return p, true
}

// stored finds an object.
func (q *request) stored(p gitlfs.Pointer) (found row, ok bool, err error) {
	err = q.s.DB.Read(q.r.Context(), func(tx *db.Tx) error {
		found, ok, err = byOID.Maybe(tx, q.repo.ID, p.OID)
		return err
	})
	return found, ok && found.Size == p.Size, err
}

// give answers the bytes of an object, or a range of them.
func (q *request) give() {
	p, ok := q.signed()
	if !ok {
		return
	}
	found, ok, err := q.stored(p)
	if err != nil {
		q.fail("find the object", err)
		return
	}
	var from io.ReadCloser
	if ok {
		if from, _, err = q.s.Objects.Get(q.r.Context(), found.key()); errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrOff) {
			ok, err = false, nil
		}
	}
	switch {
	case err != nil:
		q.fail("open the object", err)
		return
	case !ok:
		q.refuse(fault.NotFound, http.StatusNotFound, "The repository has no object of this name.")
		return
	}
	defer from.Close()
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	if all, can := from.(io.ReadSeeker); can {
		http.ServeContent(q.w, q.r, "", time.Time{}, all)
		return
	}
	h.Set("Content-Length", strconv.FormatInt(found.Size, 10))
	if _, err := io.Copy(q.w, from); err != nil {
		record := observe.Of(q.r.Context())
		record.Cause, record.Broken = err, true
	}
}

// take stores an object. Bytes that are not those of its name are answered as if they were,
// and not kept: the client asks about them by verify, and fails at once when it hears that
// they did not arrive. Any other refusal it tries nine times.
func (q *request) take() {
	p, ok := q.signed()
	if !ok {
		return
	}
	if q.r.ContentLength >= 0 && q.r.ContentLength != p.Size {
		q.refuse(fault.Invalid, http.StatusBadRequest, fmt.Sprintf("The address is for an upload of %d bytes.", p.Size))
		return
	}
	_, there, err := q.stored(p)
	if err != nil {
		q.fail("find the object", err)
		return
	}
	if there {
		_, _ = io.Copy(io.Discard, io.LimitReader(q.r.Body, p.Size))
		q.w.WriteHeader(http.StatusOK)
		return
	}
	ctx, cancel := q.w.Bound(q.r.Context())
	defer cancel()
	switch err := q.s.store(ctx, q.repo, p, q.r.Body); {
	case errors.Is(err, errHash):
		record := observe.Of(q.r.Context())
		record.Slug, record.Cause = fault.Invalid.Slug(), err
		q.w.WriteHeader(http.StatusOK)
	case errors.Is(err, blob.ErrSize):
		q.refuse(fault.Invalid, http.StatusBadRequest, "The upload was cut short.")
	case err != nil:
		q.fail("store the object", err)
	default:
		q.w.WriteHeader(http.StatusOK)
	}
}

// store stores an object of a repository. It fails with errHash, blob.ErrSize or a
// fault.StorageFull, and then nothing is kept.
func (s *Service) store(ctx context.Context, to Repo, p gitlfs.Pointer, from io.Reader) error {
	ctx = db.WithAccount(ctx, to.Account)
	r := row{ID: id.New(), AccountID: to.Account, RepoID: to.ID, OID: p.OID, Size: p.Size}
	// The row is first: the room for the bytes is taken, and what a crash leaves of them is found.
	if err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := insertUpload.Exec(tx, insertArgs{row: r, BegunAt: tx.Now}); err != nil {
			return err
		}
		return s.Room.ObjectMade(tx)
	}); err != nil {
		return err
	}
	checked := &checking{from: from, left: p.Size, oid: p.OID, sum: sha256.New()}
	err := s.Objects.Put(ctx, r.key(), checked, p.Size, "application/octet-stream")
	if err == nil && p.Size == 0 && !checked.right() {
		err = errHash
	}
	if err == nil {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := storedRow.Exec(tx, r.ID, tx.Now)
			return err
		})
	}
	if err == nil {
		return nil
	}
	// Another upload of the object was faster, or this one has failed.
	other := db.IsUnique(err)
	if dropped := s.drop(context.WithoutCancel(ctx), r); dropped != nil {
		return errors.Join(err, dropped) // Loop tries again
	}
	if other {
		return nil
	}
	return err
}

// checking reads an upload, and fails with errHash in the place of its last bytes if they
// are not those of its name.
type checking struct {
	from io.Reader
	left int64
	oid  string
	sum  hash.Hash
}

func (c *checking) right() bool { return hex.EncodeToString(c.sum.Sum(nil)) == c.oid }

func (c *checking) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.sum.Write(b[:n])
	if c.left -= int64(n); n > 0 && c.left == 0 && !c.right() {
		return 0, errHash
	}
	return n, err
}

// verify tells whether an object has arrived.
func (q *request) verify() {
	p, ok := q.signed()
	if !ok {
		return
	}
	var asked gitlfs.Pointer
	if json.NewDecoder(io.LimitReader(q.r.Body, 4096)).Decode(&asked) != nil || asked != p {
		q.refuse(fault.Invalid, http.StatusBadRequest, "The address is about another object.")
		return
	}
	_, there, err := q.stored(p)
	switch {
	case err != nil:
		q.fail("find the object", err)
	case !there:
		q.refuse(fault.NotFound, http.StatusNotFound, "The object did not arrive.")
	default:
		gitlfs.Write(q.w, http.StatusOK, struct{}{})
	}
}
