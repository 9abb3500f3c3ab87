package vault

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

const group = "Secrets"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	rule := policy.Require(policy.WriteSecrets)
	full := []op.Refusal{{Status: 422, Slug: "vault-full"}}
	return []op.Op{
		op.New(op.Row{ID: "project_secret.list", Method: "GET", Path: "/v1/repos/{owner}/{repo}/secrets",
			Group: group, Rule: rule, Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The secrets of a repository, by name; never a value",
			Doc:     "Names and how they are delivered. No capability reads a value back."}, s.listRepo),
		op.New(op.Row{ID: "project_secret.set", Method: "PUT", Path: "/v1/repos/{owner}/{repo}/secrets/{name}",
			Group: group, Rule: rule, NoStore: true, Refuses: full,
			Summary: "Keep a secret of a repository, in place of what had its name",
			Doc: "Runs on the repository get it from the next one on; it wins over one of the account with its name. With delivery broker " +
				"the agent never has the value: the box adds it to requests to the named hosts. Refused when the vault is full: 100 secrets and 48 " +
				"KiB of values."}, s.setRepo),
		op.New(op.Row{ID: "project_secret.delete", Method: "DELETE", Path: "/v1/repos/{owner}/{repo}/secrets/{name}", Group: group,
			Rule:    rule,
			Summary: "Delete a secret of a repository; again is no error",
			Doc:     "Runs that go on keep what they were given."}, s.deleteRepo),
		op.New(op.Row{ID: "secret.list", Method: "GET", Path: "/v1/secrets", Group: group, Rule: rule,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The secrets that every repository of the account gets, by name; never a value",
			Doc:     "Names and how they are delivered. No capability reads a value back."}, s.list),
		op.New(op.Row{ID: "secret.set", Method: "PUT", Path: "/v1/secrets/{name}", Group: group, Rule: rule, NoStore: true, Refuses: full,
			Summary: "Keep a secret of the account, in place of what had its name",
			Doc: "Every repository's runs get it from the next one on. With delivery broker the agent never has the value: the box adds it " +
				"to requests to the named hosts. Refused when the vault is full: 100 secrets and 48 KiB of values."}, s.set),
		op.New(op.Row{ID: "secret.delete", Method: "DELETE", Path: "/v1/secrets/{name}", Group: group, Rule: rule,
			Summary: "Delete a secret of the account; again is no error",
			Doc:     "Runs that go on keep what they were given."}, s.delete),
	}
}

type repoIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

// repoID finds the repository that a path names. It returns fault.NotFound if
// tx.Account has none.
func (s *Service) repoID(tx *db.Tx, in repoIn) (string, error) {
	id, ok, err := s.Repos.ID(tx, in.Owner, in.Repo)
	if err == nil && !ok {
		err = fault.Missing("repository")
	}
	return id, err
}

type listIn struct{ op.PageIn }

type listRepoIn struct {
	op.PageIn
	Owner string `json:"owner" doc:"login of the account that owns the repository"`
	Repo  string `json:"repo" doc:"name of the repository"`
}

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Secret], error) {
	return s.all(ctx, in.PageIn, func(*db.Tx) (string, error) { return "", nil })
}

func (s *Service) listRepo(ctx context.Context, in listRepoIn) (op.Page[Secret], error) {
	return s.all(ctx, in.PageIn, func(tx *db.Tx) (string, error) { return s.repoID(tx, repoIn{in.Owner, in.Repo}) })
}

func (s *Service) all(ctx context.Context, p op.PageIn, repo func(*db.Tx) (string, error)) (op.Page[Secret], error) {
	var out []Secret
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		id, err := repo(tx)
		if err != nil {
			return err
		}
		rows, err := list.All(tx, tx.Account, id)
		for _, r := range rows {
			out = append(out, r.wire())
		}
		return err
	})
	if err != nil {
		return op.Page[Secret]{}, err
	}
	return op.Cut(p, out, func(x Secret) []string {
		if x.Environment == nil {
			return []string{x.Name}
		}
		return []string{x.Name, *x.Environment}
	}), nil
}

type setIn struct {
	Name        string            `json:"name" example:"PAYMENT_TEST_KEY" doc:"of the environment variable, or by which the broker's part of it is known"`
	Value       string            `json:"value" maxLength:"16384" example:"example-value" doc:"the secret; never read back"`
	Environment string            `json:"environment,omitempty" example:"staging" doc:"what it is for, say staging; one name may have a value for each"`
	Delivery    protocol.Delivery `json:"delivery,omitempty" doc:"env: the agent has it in its environment; broker: the box adds it to requests and the agent never has it; env unless given"`
	Hosts       []string          `json:"hosts,omitempty" maxItems:"20" maxLength:"255" doc:"of broker: the hosts that it is sent to, over https, and no others"`
	Header      string            `json:"header,omitempty" maxLength:"100" doc:"of broker: Authorization unless given"`
	Prefix      *string           `json:"prefix,omitempty" maxLength:"100" doc:"of broker: what stands before the value; \"Bearer \" for Authorization, else nothing"`
}

type setRepoIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	setIn
}

func (in setIn) item(repoID string) Item {
	return Item{RepoID: repoID, Name: in.Name, Environment: in.Environment, Value: in.Value, Delivery: in.Delivery, Hosts: in.Hosts,
		Header: in.Header, Prefix: in.Prefix}
}

func (s *Service) set(ctx context.Context, in setIn) (Secret, error) {
	return s.keep(ctx, func(*db.Tx) (string, error) { return "", nil }, in)
}

func (s *Service) setRepo(ctx context.Context, in setRepoIn) (Secret, error) {
	return s.keep(ctx, func(tx *db.Tx) (string, error) { return s.repoID(tx, repoIn{in.Owner, in.Repo}) }, in.setIn)
}

func (s *Service) keep(ctx context.Context, repo func(*db.Tx) (string, error), in setIn) (out Secret, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		repoID, err := repo(tx)
		if err != nil {
			return err
		}
		if err := s.Put(tx, policy.From(ctx).Label(), in.item(repoID)); err != nil {
			return err
		}
		r, err := one.One(tx, oneArgs{AccountID: tx.Account, RepoID: repoID, Environment: in.Environment, Name: in.Name})
		if err != nil {
			return err
		}
		out = r.wire()
		return setEvent.Record(tx, event.Subject{ID: in.Name, RepoID: repoID},
			setData{Environment: out.Environment, Delivery: out.Delivery, Hosts: out.Hosts, Header: out.Header})
	})
	return out, err
}

type deleteIn struct {
	Name        string `json:"name" example:"PAYMENT_TEST_KEY" doc:"name of the secret"`
	Environment string `json:"environment,omitempty" doc:"the environment it is for; left out: the one for all"`
}

type deleteRepoIn struct {
	Owner       string `json:"owner" doc:"owner of the repository"`
	Repo        string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
	Name        string `json:"name" example:"PAYMENT_TEST_KEY" doc:"name of the secret"`
	Environment string `json:"environment,omitempty" doc:"the environment it is for; left out: the one for all"`
}

// DeletedSecret is the answer of secret.delete and project_secret.delete.
type DeletedSecret struct {
	_       struct{} `doc:"What became of a secret." schema:"DeletedSecret"`
	Name    string   `json:"name" example:"PAYMENT_TEST_KEY" doc:"name of the secret"`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

func (s *Service) delete(ctx context.Context, in deleteIn) (DeletedSecret, error) {
	return s.drop(ctx, func(*db.Tx) (string, error) { return "", nil }, in)
}

func (s *Service) deleteRepo(ctx context.Context, in deleteRepoIn) (DeletedSecret, error) {
	return s.drop(ctx, func(tx *db.Tx) (string, error) { return s.repoID(tx, repoIn{in.Owner, in.Repo}) },
		deleteIn{in.Name, in.Environment})
}

func (s *Service) drop(ctx context.Context, repo func(*db.Tx) (string, error), in deleteIn) (out DeletedSecret, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		repoID, err := repo(tx)
		if err != nil {
			return err
		}
		n, err := remove.Exec(tx, removeArgs{
			AccountID: tx.Account, RepoID: repoID, Environment: in.Environment, Name: in.Name,
		})
		out = DeletedSecret{Name: in.Name, Deleted: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return deletedEvent.Record(tx, event.Subject{ID: in.Name, RepoID: repoID}, deletedData{Environment: in.Environment})
	})
	return out, err
}
