package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// subjectOut tells the other nodes that a box is put out for a while. It is of the control
// plane's account, which no box can publish to.
const subjectOut = "nodes.out"

const (
	// updateLimit bounds the change of an account's claims.
	updateLimit = 5 * time.Second
	// answerWait is how often it is looked how many nodes there are to answer.
	answerWait = 100 * time.Millisecond
)

// update makes every node use new claims of an account at once, if it knows the account. It
// returns when as many have answered as there are: the first answer may be another node's.
// One that is cut off meanwhile compares its accounts when it is back.
func (b *Bus) update(ctx context.Context, account, claims string) error {
	if b.abroad != nil {
		return b.push(ctx, account, claims)
	}
	ctx, cancel := context.WithTimeout(ctx, updateLimit)
	defer cancel()
	inbox := b.system.NewRespInbox()
	sub, err := b.system.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("update account claims: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is gone, and then there is none
	if err := b.system.PublishRequest("$SYS.REQ.ACCOUNT."+account+".CLAIMS.UPDATE", inbox, []byte(claims)); err != nil {
		return fmt.Errorf("update account claims: %w", err)
	}
	for answers := 0; answers < 1+b.server.NumRemotes(); {
		wait, done := context.WithTimeout(ctx, answerWait)
		m, err := sub.NextMsgWithContext(wait)
		done()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("update account claims: %d of %d nodes have answered: %w", answers, 1+b.server.NumRemotes(), ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			continue
		case err != nil:
			return fmt.Errorf("update account claims: %w", err)
		}
		var got server.ServerAPIClaimUpdateResponse
		if err := json.Unmarshal(m.Data, &got); err != nil {
			return fmt.Errorf("update account claims: read the answer: %w", err)
		}
		if got.Error != nil {
			return fmt.Errorf("update account claims: %s", got.Error.Description)
		}
		answers++
	}
	return nil
}

// seats are the accounts that this node has admitted, with their boxes.
func (b *Bus) seats() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for box, account := range b.admitted {
		out[account] = box
	}
	return out
}

// sweep compares the accounts that this node serves with those that boxes may use. A node
// that was cut off has not heard of what was revoked meanwhile.
func (b *Bus) sweep(why string) {
	served := b.seats()
	ctx, cancel := context.WithTimeout(b.ctx, ownerLimit)
	defer cancel()
	owners, err := b.cfg.Cluster.Owners(ctx)
	if err != nil {
		if b.ctx.Err() == nil {
			b.log.Warn("the accounts of this node were not compared with the database", "error", err)
		}
		return
	}
	for account, box := range served {
		if owners[account] == box {
			continue
		}
		b.log.Warn("a box that may not is cut off", "box", box, "because", why)
		if err := b.Shut(b.ctx, account); err != nil && b.ctx.Err() == nil {
			b.log.Error("a box that may not was not cut off", "box", box, "error", err)
		}
	}
	if !b.group.adrift.Load() {
		b.letIn()
	}
}

// letGo closes the accounts of this node's boxes at this node alone.
func (b *Bus) letGo() {
	b.changing.Lock()
	defer b.changing.Unlock()
	for account := range b.seats() {
		b.here(account, b.keys.closedClaims)
		b.group.mu.Lock()
		b.group.gone = append(b.group.gone, account)
		b.group.mu.Unlock()
	}
}

// letIn opens the accounts that letGo has closed, but those that were shut meanwhile.
func (b *Bus) letIn() {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.group.mu.Lock()
	gone := b.group.gone
	b.group.gone = nil
	b.group.mu.Unlock()
	b.mu.Lock()
	out := maps.Clone(b.out)
	b.mu.Unlock()
	served := b.seats()
	for _, account := range gone {
		if box := served[account]; box != "" && !out[box] {
			b.here(account, func(account string) (string, error) { return b.keys.boxClaims(account, box) })
		}
	}
}

// here changes the claims of an account at this node, if it knows the account.
func (b *Bus) here(account string, claims claims) {
	signed, err := claims(account)
	if err != nil {
		b.log.Error("account of a box cannot be changed here", "error", err)
		return
	}
	decoded, err := jwt.DecodeAccountClaims(signed)
	if err != nil {
		b.log.Error("account of a box cannot be changed here", "error", err)
		return
	}
	if known, err := b.server.LookupAccount(account); err == nil {
		b.server.UpdateAccountClaims(known, decoded)
	}
}

// tellOut tells the other nodes that a box is put out.
func (b *Bus) tellOut(boxID string) {
	if b.cfg.Cluster == nil && b.abroad == nil {
		return
	}
	if err := b.nc.Publish(subjectOut, []byte(boxID)); err != nil {
		b.log.Warn("other nodes were not told that a box is put out", "box", boxID, "error", err)
	}
}

// hearOut refuses a box that a node has put out, for as long as that node does. It may have come
// here before this was heard, and that node may not be there any more when the time is over.
func (b *Bus) hearOut(m *nats.Msg) {
	boxID := string(m.Data)
	if checkToken("box id", boxID) != nil {
		return
	}
	b.mu.Lock()
	account, already := b.admitted[boxID], b.out[boxID]
	b.out[boxID] = true
	b.mu.Unlock()
	if already {
		return // by this node, which told it
	}
	change := b.changeHere
	if b.abroad != nil {
		change = b.change
	}
	b.calls.also(func() { b.keepOut(boxID, account, change) })
}

// changeHere is change at this node alone. One that is cut off opens no account.
func (b *Bus) changeHere(boxID, account string, claims claims) {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	leave := account == "" || b.shut[account] || b.group.adrift.Load() && !b.out[boxID]
	b.mu.Unlock()
	if !leave {
		b.here(account, claims)
	}
}
