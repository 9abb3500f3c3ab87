package flow

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Grants follows which permissions the owners of repositories have granted to the App of
// the server, and asks for those that are missing.
type Grants struct {
	DB          *db.DB
	Hub         *event.Hub
	Connections *connection.Service
	Logger      *slog.Logger
}

// Watch has it noted when the host of a repository demands a permission for git that its
// owner has yet to grant: then no task is begun there until it is granted.
func (g Grants) Watch(git codehost.GitAccess) codehost.GitAccess { return watchedGit{git, g} }

type watchedGit struct {
	codehost.GitAccess
	grants Grants
}

// Upstream implements codehost.GitAccess.
func (w watchedGit) Upstream(ctx context.Context, r codehost.Repo, write bool) (*url.URL, string, time.Time, error) {
	at, authorization, until, err := w.GitAccess.Upstream(ctx, r, write)
	if f, is := errors.AsType[*codehost.ForbiddenError](err); is && f.Asked && f.Permission != "" {
		// A client that gives up must not keep the refusal from the record.
		if failure := w.grants.lacks(context.WithoutCancel(ctx), r, f.Permission); failure != nil {
			w.grants.Logger.ErrorContext(ctx, "note the permission that is lacking", slog.String("repo", r.String()),
				slog.Any("error", failure))
		}
	}
	return at, authorization, until, err
}

// lacks notes that a repository lacks a permission, and asks a person for it once. A
// permission that the record says is granted has been so meanwhile: no news of it would
// follow.
func (g Grants) lacks(ctx context.Context, at codehost.Repo, permission string) error {
	var r repo.Ref
	known := false
	find := func(tx *db.Tx) (err error) { r, known, err = repo.At(tx, at); return err }
	if err := g.DB.Read(ctx, find); err != nil || !known || r.Lacks == permission {
		return err
	}
	return g.DB.Write(ctx, func(tx *db.Tx) error {
		return tx.As(r.AccountID, func() error {
			installation, err := repo.InstallationOf(tx, r.ID)
			if err != nil || installation == "" {
				return err
			}
			has, err := connection.LockPermissions(tx, at.Host, installation)
			if err != nil || grants(has, permission) {
				return err
			}
			if news, err := repo.Lack(tx, r.ID, permission); err != nil || !news {
				return err
			}
			return g.Raise(tx, intent.Trouble{RepoID: r.ID, Kind: "git", Permission: permission, Asked: true})
		})
	})
}

// refusalTitle begins what people are asked about a code host that lets the server do less
// than it has to; a permission that is lacking follows, after ": ".
const (
	refusalTitle    = "A code host did not let Yardmaster do its work"
	refusalCategory = "code_host"
)

// Raise asks a person to see to what a code host does not let the server do, once for a
// repository and a permission.
func (g Grants) Raise(tx *db.Tx, t intent.Trouble) error {
	body, title := t.Why, refusalTitle
	if t.Permission != "" {
		title += ": " + t.Permission
		how, err := g.how(tx, t)
		if err != nil {
			return err
		}
		body = strings.TrimSpace("The App lacks a permission. It is " + t.Permission + ": " + how)
		open, err := escalation.TitlesOfRepo(tx, t.RepoID, refusalCategory)
		if err != nil || slices.Contains(open, title) {
			return err
		}
	}
	_, err := escalation.Raise(tx, escalation.Draft{
		RepoID: &t.RepoID, Category: refusalCategory, Title: title, Body: body, Reason: t.Kind,
	})
	return err
}

// how is what people are to do about a permission that is lacking.
func (g Grants) how(tx *db.Tx, t intent.Trouble) (string, error) {
	if !t.Asked {
		return "grant it to the App, and have each installation accept it.", nil
	}
	r, ok, err := repo.ByID(tx, t.RepoID)
	if err != nil || !ok {
		return "its owner at the code host has to accept it.", err
	}
	page, err := g.Connections.GrantPage(tx, r.HostRepo().Host)
	if page == "" {
		return "the App asks for it, and the owner of " + r.FullName() + " has to accept it in the settings of the installation.", err
	}
	return "the App asks for it, and the owner of " + r.FullName() + " has to accept it at " + page + ".", err
}

// Retry has tried again what waited for a permission.
func (g Grants) Retry(tx *db.Tx, now connection.Grant) error {
	ids, err := repo.OfInstallation(tx, now.Host, now.InstallationID)
	if err != nil {
		return err
	}
	freed, err := repo.Grant(tx, now.Host, now.InstallationID, func(one string) bool { return grants(now.Permissions, one) })
	if err != nil {
		return err
	}
	if freed {
		g.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
	}
	return intent.RetryNow(tx, ids)
}

// RetryMerges has tried again the merges that waited for a permission.
func RetryMerges(pulls *pull.Service) func(*db.Tx, connection.Grant) error {
	return func(tx *db.Tx, g connection.Grant) error {
		ids, err := repo.OfInstallation(tx, g.Host, g.InstallationID)
		if err != nil {
			return err
		}
		return pulls.RetryNow(tx, ids)
	}
}

// RaiseMerge asks a person for the permission that a merge waits for.
func (g Grants) RaiseMerge(tx *db.Tx, r merge.Refusal) error {
	return g.Raise(tx, intent.Trouble{RepoID: r.RepoID, Kind: "merge", Permission: r.Permission, Asked: true})
}

// RetryRepo goes on with a repository that the code host lets the server at again, through
// the same installation or a new one: what waited is tried again, and what people were
// asked about the host is resolved, unless it is a permission that is lacking yet. merges
// is pull.Service.RetryNow.
func RetryRepo(merges func(tx *db.Tx, repoIDs []string) error) func(*db.Tx, repo.Ref) error {
	return func(tx *db.Tx, r repo.Ref) error {
		installation, err := repo.InstallationOf(tx, r.ID)
		if err != nil {
			return err
		}
		has, err := connection.LockPermissions(tx, r.HostRepo().Host, installation)
		if err != nil {
			return err
		}
		if err := resolve(tx, r.ID, func(lacking string) (string, bool) {
			return "The code host lets the server at the repository again.", lacking == "" || grants(has, lacking)
		}); err != nil {
			return err
		}
		if err := merges(tx, []string{r.ID}); err != nil {
			return err
		}
		return intent.RetryNow(tx, []string{r.ID})
	}
}

// resolve resolves the open escalations about the host of a repository that are over. over
// is given the permission that an escalation is about, "" for other reasons, and answers a
// note.
func resolve(tx *db.Tx, repoID string, over func(lacking string) (note string, ok bool)) error {
	titles, err := escalation.TitlesOfRepo(tx, repoID, refusalCategory)
	if err != nil {
		return err
	}
	for _, title := range titles {
		lacking, about := strings.CutPrefix(title, refusalTitle)
		note, ok := over(strings.TrimPrefix(lacking, ": "))
		if !about || !ok {
			continue
		}
		gone := escalation.About{RepoID: repoID, Category: refusalCategory, Title: title, Note: note}
		if err := escalation.ResolveOfRepo(tx, gone); err != nil {
			return err
		}
	}
	return nil
}

// ResolveGranted resolves what people were asked about permissions that are granted now.
func ResolveGranted(tx *db.Tx, g connection.Grant) error {
	ids, err := repo.OfInstallation(tx, g.Host, g.InstallationID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := resolve(tx, id, func(lacking string) (string, bool) {
			return lacking + " is granted.", lacking != "" && grants(g.Permissions, lacking)
		}); err != nil {
			return err
		}
	}
	return nil
}

// grants tells whether permissions include all of a list such as "contents: write, issues:
// read".
func grants(has map[string]string, list string) bool {
	levels := []string{"read", "write", "admin"}
	for one := range strings.SplitSeq(list, ",") {
		name, level, ok := strings.Cut(strings.TrimSpace(one), ": ")
		if want := slices.Index(levels, level); !ok || want < 0 || slices.Index(levels, has[name]) < want {
			return false
		}
	}
	return true
}
