package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/emailroute"
	"yardmaster/internal/domain/notification"
)

// Routes implements notification.Channel: the addresses of teams get each notice of an
// account once, without the links that act in somebody's name.
type Routes struct{ Routes *emailroute.Service }

// Deliver mails a notice of the account. Messages to one person are not for teams.
func (r Routes) Deliver(tx *db.Tx, m notification.Message) error {
	if m.UserID != "" {
		return nil
	}
	return r.Routes.Deliver(tx, emailroute.Notice{
		Kind: m.Kind, Noun: m.Noun, Subject: m.Subject, Repo: m.Repo, About: m.About, Title: m.Title, Text: m.Text, URL: m.URL,
	})
}

// RoutedKinds are the kinds of notices that can be sent to teams: all that are told of as
// they happen.
func RoutedKinds() (out []emailroute.Kind) {
	for _, name := range notification.Kinds() {
		if name != notification.Digest {
			out = append(out, emailroute.Kind{Name: name, Doc: notification.Doc(name)})
		}
	}
	return out
}
