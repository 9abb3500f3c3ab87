package rollout

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
)

// PinScope is which boxes a pin is for.
type PinScope string

// Scopes of a pin, the widest first.
const (
	OfAccount = "account"
	OfLabel   = "label"
	OfBox     = "box"
)

// Values lists all.
func (PinScope) Values() []string { return []string{OfAccount, OfLabel, OfBox} }

// policyOf are the pins of an account.
type policyOf []pinRow

func policies(tx *db.Tx) (policyOf, error) { return pinsOf.All(tx, tx.Account) }

// of is the channel that a box follows, and whether it takes no updates, with the reason. What is
// said of a box goes before what is said of a label, and that before what is said of the account.
// Of several labels, one that pins does.
func (p policyOf) of(b box.Standing) (channel string, pinned bool, why string) {
	channel = release.BuiltIn
	for _, scope := range []string{OfAccount, OfLabel, OfBox} {
		said := false
		for _, each := range p {
			if each.Scope != scope || !each.about(b) {
				continue
			}
			if each.Channel != "" {
				channel = each.Channel
			}
			if each.Pinned == nil || said && pinned {
				continue
			}
			said, pinned, why = true, *each.Pinned, each.Why
		}
	}
	return channel, pinned, why
}

func (p pinRow) about(b box.Standing) bool {
	switch p.Scope {
	case OfLabel:
		for name, value := range b.Labels {
			if p.Ref == name+"="+value {
				return true
			}
		}
		return false
	case OfBox:
		return p.Ref == b.ID
	}
	return true
}

// channelOf is the channel that an account follows.
func (p policyOf) channelOf() string {
	channel, _, _ := p.of(box.Standing{})
	return channel
}
