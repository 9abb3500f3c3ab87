package flow

import (
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// CountRepo refuses a repository that is one too many for its account. Those of other hosts
// take no room here, and an installation of the App brings many at once.
func CountRepo(tx *db.Tx, host string) error {
	if host != codehost.BuiltIn {
		return nil
	}
	return quota.RepoMade(tx)
}

// nearlyFull: the owners and admins hear of what their account soon has no room for.
func (n Notify) nearlyFull(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := quota.NearlyFullEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Spending, Noun: nounQuota, Subject: e.Object, Path: "/ui/settings/account",
		Title: fmt.Sprintf("The account is nearly full: %d of %d %s", data.Used, data.Most, quota.Text(data.Thing)),
		Text:  "What has no room is refused. Delete what is not needed, or ask an operator of the server to raise it.",
	}
	out.To, err = deciders(tx, nil, policy.ReadAccount)
	return out, true, err
}
