package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/inbound"
	"yardmaster/internal/policy"
)

// maxBody is the most bytes of a delivery.
const maxBody = 1 << 20

// PerMinute is how many signed deliveries a source may send in a minute.
const PerMinute = 120

// patience is how long a delivery waits for others of its source.
const patience = 5 * time.Second

// Receipt answers a delivery.
type Receipt struct {
	_         struct{} `doc:"What became of a delivery." schema:"SourceReceipt"`
	Kind      Outcome  `json:"kind" example:"filed" doc:"filed: an ask was filed; noop: the delivery was taken before, or there is an ask for it; dropped: it leads to nothing, and reason says why; ack: it only tries the address"`
	Reason    Reason   `json:"reason,omitempty" doc:"why it was dropped; left out otherwise"`
	AskID     string   `json:"askId,omitempty" format:"uuid" doc:"the ask that was filed, or that there is; left out without one"`
	Count     int64    `json:"count,omitzero" example:"1" doc:"how often the ask was asked for by now; left out without one"`
	Challenge string   `json:"challenge,omitempty" example:"3eZbrw1aBm2rZgRNFdxV" doc:"the challenge of a system that tries the address with one; left out otherwise"`
}

// StatusCode tells a delivery that filed an ask from others.
func (r Receipt) StatusCode() int {
	if r.Kind == Filed {
		return 202
	}
	return 200
}

var (
	errForged = fault.New(fault.Unauthenticated, "bad-signature",
		"There is no source at this address that the delivery is signed for, or its signature is stale.")
	errBusy = fault.New(fault.Unavailable, "busy", "Other deliveries of the source are being worked at. Send it again.").After(time.Second).OnPurpose()
	errMany = fault.Newf(fault.RateLimited, "", "The source sends more than %d deliveries a minute.", PerMinute)
	errForm = fault.New(fault.UnsupportedMedia, "", "The body must not be compressed.")
)

// receive takes a delivery. A delivery that is signed is counted for its source, and not
// for its address, from which other customers' systems may send as well. One that is not
// signed is counted for its address; it is answered the same whether there is such a source
// or not.
func (s *Service) receive(ctx context.Context, p *op.Pipeline, c *op.Call) op.Answer {
	refuse := func(err error) op.Answer { return p.RefuseFor(c, err) }
	if c.Refused != nil {
		return refuse(c.Refused)
	}
	if coding := c.Header("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(errForm)
	}
	if c.Length > maxBody {
		return refuse(fault.Newf(fault.TooLarge, "", "The body is larger than %d bytes.", maxBody))
	}
	body, err := c.JSON()
	if err != nil {
		return refuse(err)
	}
	r := inbound.Request{Header: c.Header, Body: body}
	src, genuine, err := s.check(ctx, c.Param("sourceId"), r)
	if err != nil {
		return p.Refuse(c, err)
	}
	if !genuine {
		return refuse(errForged)
	}
	if after, ok := s.Rate.Take(src.ID); !ok {
		return p.Refuse(c, errMany.After(after))
	}
	actor := policy.Actor{Credential: policy.System, RequestID: c.Request.ID}
	out, err := s.accept(policy.With(db.WithAccount(ctx, src.AccountID), actor), src, r)
	if err != nil {
		return p.Refuse(c, err)
	}
	return p.Reply(c, out)
}

// unknown is what deliveries to a source that is none are checked against, so that they
// take the time of others.
var unknown = secrets{Current: id.Secret(id.Webhook), Previous: id.Secret(id.Webhook)}

// check finds the source of a delivery, and tells whether the delivery is signed for it.
func (s *Service) check(ctx context.Context, sourceID string, r inbound.Request) (src row, genuine bool, err error) {
	found, all, now := false, unknown, time.Time{}
	if !id.Valid(sourceID) {
		sourceID = ""
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		src, found, err = byIDAnywhere.Maybe(tx, sourceID)
		return err
	})
	if err != nil {
		return src, false, err
	}
	kind := inbound.Generic
	if found {
		kind = src.Kind
		own, err := s.open(src)
		if err != nil {
			return src, false, err
		}
		if all = own; src.PreviousUntil == nil || !now.Before(*src.PreviousUntil) {
			all.Previous = ""
		}
	}
	// Both are looked at whatever the first says.
	current, previous := inbound.Genuine(kind, all.Current, r, now), inbound.Genuine(kind, all.Previous, r, now)
	if found && !current && !previous {
		s.refused.add(src.ID)
	}
	return src, found && (current || previous), nil
}

// accept reads a genuine delivery and stores what becomes of it.
func (s *Service) accept(ctx context.Context, src row, r inbound.Request) (out Receipt, err error) {
	// To read a body takes memory and time as well: few of a source are read at once.
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leave, ok := s.gates.enter(src.ID, wait.Done())
	if !ok {
		return out, errBusy
	}
	defer leave()
	e, doc, err := inbound.Read(src.Kind, r, src.Mapping.V)
	if errors.Is(err, inbound.ErrMalformed) {
		return out, fault.Field("", "is no JSON object with unique names, at most 100 values deep")
	} else if err != nil {
		return out, err
	}
	sum := sha256.Sum256(r.Body)
	n := news{Event: e, hash: "body:" + hex.EncodeToString(sum[:]), bytes: len(r.Body)}
	if !e.Signed {
		n.keys = []string{n.hash}
	}
	for _, known := range e.IDs {
		n.keys = append(n.keys, "id:"+known)
	}
	if src.Kind == inbound.Generic {
		if text, ok := doc.Keep(); ok {
			n.body = new(string(text))
		}
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		// The source is read again: it may have been disconnected or changed meanwhile.
		locked, ok, err := lock.Maybe(tx, tx.Account, src.ID)
		if err != nil {
			return err
		}
		if !ok {
			return errForged
		}
		got, err := s.take(tx, locked, n)
		if err != nil {
			return err
		}
		out = Receipt{Kind: Outcome(got.Outcome), Reason: Reason(got.Reason), AskID: got.AskID, Count: got.Count}
		if got.Outcome == Ack {
			out.Challenge = e.Challenge
		}
		return nil
	})
	return out, err
}
