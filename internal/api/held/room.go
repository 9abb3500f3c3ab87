package held

import (
	"errors"
	"io"
	"net/http"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// Room limits the requests that are answered at once: of an address, and in all. Some kinds
// have room of their own besides, so that they are answered when everything else is full.
type Room struct {
	Limits
	Apart []Apart
	// Strange tells of a request whether it presents no credential. Half of the room is for
	// those that do. One with a credential that is none is refused before its body is read.
	Strange func(*http.Request) bool
	// StrangersTime is how long the body of a stranger may take in all, by Now. A body beyond
	// it breaks off.
	StrangersTime time.Duration
	Now           func() time.Time
	// Address is the address that a request comes from, past trusted proxies.
	Address func(*http.Request) string
	// Refuse answers a request with a fault.
	Refuse func(http.ResponseWriter, *http.Request, *fault.Error)

	held limit.Held
}

// Apart is a kind of requests with room of its own.
type Apart struct {
	Name string
	Is   func(*http.Request) bool
	Most int
}

// room is how many requests may be answered of all kinds together: what is not set apart.
func (r *Room) room() int {
	all := r.All
	for _, a := range r.Apart {
		all -= a.Most
	}
	return max(all, 1)
}

// Handler lets requests to next, within the limits. The connection of one that is refused is
// closed.
func (r *Room) Handler(next http.Handler) http.Handler {
	room := r.room()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c := connOf(req.Context()); c != nil {
			defer c.work()()
		}
		leave, refusal := r.enter(req, room)
		if refusal != nil {
			w.Header().Set("Connection", "close")
			r.Refuse(w, req, refusal)
			return
		}
		defer leave()
		if r.Strange(req) && req.Body != nil && req.Body != http.NoBody {
			req.Body = &timed{req.Body, http.NewResponseController(w), r.Now().Add(r.StrangersTime), r.Now}
		}
		next.ServeHTTP(w, req)
	})
}

func (r *Room) enter(req *http.Request, room int) (leave func(), refusal *fault.Error) {
	from := limit.Site(r.Address(req))
	all := []limit.Quota{
		{Bucket: limit.Bucket{Name: "address", IP: from}, Most: r.PerAddress},
		{Bucket: limit.Bucket{Name: "all"}, Most: room},
	}
	if r.Strange(req) {
		all = append(all, limit.Quota{Bucket: limit.Bucket{Name: "strangers"}, Most: max(room/2, 1)})
	}
	leave, full := r.held.Take(all...)
	if full == nil {
		return leave, nil
	}
	for _, a := range r.Apart {
		if !a.Is(req) {
			continue
		}
		// Half of it is for others than one address.
		leave, full = r.held.Take(limit.Quota{Bucket: limit.Bucket{Name: a.Name, IP: from}, Most: max(a.Most/2, 1)},
			limit.Quota{Bucket: limit.Bucket{Name: a.Name}, Most: a.Most})
		if full == nil {
			return leave, nil
		}
	}
	if full.Name == "address" {
		return nil, op.TooMuchOpen("There are as many open requests from this address as there may be. End some, or try again.")
	}
	return nil, op.TooMuchOpen("The server has as many open requests as it may have. Try again.")
}

// errSlow ends the body of a stranger who has had their time.
var errSlow = errors.New("the body took longer than strangers have time for")

// timed is a body that fails when its time is over.
type timed struct {
	io.ReadCloser
	rc   *http.ResponseController
	till time.Time
	now  func() time.Time
}

// Read implements io.Reader.
func (t *timed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if err == nil && !t.now().Before(t.till) {
		err = errSlow
		_ = t.rc.SetReadDeadline(time.Unix(1, 0)) // nor does the server wait for the rest
	}
	return n, err
}
