package nodes

import (
	"context"

	"yardmaster/internal/db"
)

// Home answers the node that has the folder of a repository; false: none has.
func Home(ctx context.Context, d *db.DB, owner, name string) (n Node, ok bool, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		row, found, err := homeOf.Maybe(tx, owner, name)
		n, ok = row.node(), found
		return err
	})
	return n, ok, err
}

// Settle makes a node the home of the repositories, given as owner and name, that have none.
func Settle(ctx context.Context, d *db.DB, nodeID string, repos [][2]string) error {
	if len(repos) == 0 {
		return nil
	}
	return d.Write(ctx, func(tx *db.Tx) error {
		for _, r := range repos {
			if _, err := settle.Exec(tx, r[0], r[1], nodeID); err != nil {
				return err
			}
		}
		return nil
	})
}

// Away is a repository whose home is another node.
type Away struct {
	Node        string // its name
	Owner, Name string // of the repository
}

// Elsewhere answers the repositories that other nodes than one have, node by node.
func Elsewhere(tx *db.Tx, nodeID string) ([]Away, error) { return elsewhere.All(tx, nodeID) }

// Down is how many repositories are away, because their homes are not live.
func (r *Registry) Down(ctx context.Context) (n int64, err error) {
	err = r.DB.Read(ctx, func(tx *db.Tx) error {
		now, err := clock(tx)
		if err != nil {
			return err
		}
		n, err = homesDown.One(tx, now-(silence*r.Every).Microseconds())
		return err
	})
	return n, err
}

// At answers the repositories, as owner and name, whose home is a node.
func At(ctx context.Context, d *db.DB, nodeID string) (repos [][2]string, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		rows, err := homesAt.All(tx, nodeID)
		repos = nil
		for _, r := range rows {
			repos = append(repos, [2]string{r.Owner, r.Name})
		}
		return err
	})
	return repos, err
}
