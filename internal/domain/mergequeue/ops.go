package mergequeue

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "pr.queue", Method: "GET", Path: "/v1/repos/{owner}/{repo}/merge-queue", Group: "Pull requests",
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "The merge queues of a repository: the batches in flight, and who waits",
			Doc:     "In order of base and approval. A repository without a queue answers empty lists; one that is not enabled is answered 404."}, s.show),
	}
}

// Queue is the merge queues of a repository.
type Queue struct {
	_       struct{} `doc:"The merge queues of a repository, of all of its bases." schema:"MergeQueue"`
	Batches []Batch  `json:"batches" doc:"the batches in flight, at most one of a base"`
	Waiting []Member `json:"waiting" doc:"the heads that are in no batch, or in the queue of the code host"`
}

// Batch is heads that are checked and merged together.
type Batch struct {
	_         struct{}   `doc:"Heads that are checked together, and merged in order." schema:"MergeBatch"`
	ID        string     `json:"id" format:"uuid" doc:"id of the batch"`
	BaseRef   string     `json:"base_ref" example:"main" doc:"the branch that the heads are merged into"`
	State     BatchState `json:"state" example:"checking" doc:"building: its candidate is made; checking: the candidate is checked; merging: the candidate passed, and the heads are merged"`
	BaseSHA   *string    `json:"base_sha" doc:"the commit of the base that the heads are merged into; null before the candidate is made"`
	SHA       *string    `json:"sha" doc:"the candidate: the base with all heads; null before it is made"`
	Try       int64      `json:"try" example:"1" doc:"how often a candidate was made: a failure that may come and go is checked again"`
	Members   []Member   `json:"members" doc:"its heads, in the order in which they are merged"`
	CreatedAt time.Time  `json:"created_at" doc:"when it was begun"`
}

// Member is a head in a queue.
type Member struct {
	_       struct{} `doc:"A head in a merge queue." schema:"MergeMember"`
	PRID    string   `json:"pr_id" format:"uuid" doc:"the pull request"`
	Number  int64    `json:"number" example:"42" doc:"its number in the repository"`
	BaseRef string   `json:"base_ref" example:"main" doc:"the branch that it is merged into"`
	HeadSHA string   `json:"head_sha" doc:"the head that was approved"`
	Place   Place    `json:"place" doc:"its place"`
}

type queueIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

func (s *Service) show(ctx context.Context, in queueIn) (out Queue, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = Queue{Batches: []Batch{}, Waiting: []Member{}}
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !r.Enabled {
			return fault.Missing("enabled repository")
		}
		open, err := openOfRepo.All(tx, tx.Account, r.ID)
		if err != nil {
			return err
		}
		at := map[string]int{}
		for i, b := range open {
			at[b.ID] = i
			out.Batches = append(out.Batches, b.wire())
		}
		all, err := lineOfRepo.All(tx, tx.Account, r.ID)
		rank := map[[2]string]int64{}
		for _, e := range all {
			line := [2]string{e.Kind, e.BaseRef}
			rank[line]++
			m := Member{PRID: e.PRID, Number: max(e.Number, 0), BaseRef: e.BaseRef, HeadSHA: e.HeadSHA, Place: placedRow{
				Kind: e.Kind, State: e.State, Place: e.Place, EnteredAt: e.EnteredAt, Rank: rank[line],
			}.wire()}
			if i, is := at[e.BatchID]; is && (e.State == Batched || e.State == Going) {
				out.Batches[i].Members = append(out.Batches[i].Members, m)
			} else {
				out.Waiting = append(out.Waiting, m)
			}
		}
		return err
	})
	return out, err
}

func (b batchRow) wire() Batch {
	out := Batch{ID: b.ID, BaseRef: b.BaseRef, State: BatchState(b.State), Try: b.Try, Members: []Member{}, CreatedAt: b.CreatedAt}
	if b.SHA != "" {
		out.BaseSHA, out.SHA = &b.BaseSHA, &b.SHA
	}
	return out
}
