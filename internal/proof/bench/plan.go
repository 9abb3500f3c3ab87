package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"yardmaster/internal/id"
)

const (
	planGroups = 500
	planRounds = 7
	planLimit  = 300 * time.Millisecond
)

// approvePlan measures the release of large held plans.
func approvePlan(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "plan")
	if err != nil {
		return err
	}
	defer w.stop()
	bare, err := newCreator(filepath.Join(b.dir, "plan.db"))
	if err != nil {
		return err
	}
	defer bare.pool.Close()
	var ours, theirs []time.Duration
	for i := range planRounds {
		took, err := bare.batch(ctx, planGroups)
		if err != nil {
			return err
		}
		theirs = append(theirs, took)
		var filed struct {
			ID string `json:"plan_id"`
		}
		if err := w.api.Call(ctx, http.MethodPost, "/v1/plans/file", largePlan(i), &filed); err != nil {
			return err
		}
		var approved struct {
			IDs []string `json:"task_ids"`
		}
		begin := time.Now()
		if err := w.api.Call(ctx, http.MethodPost, "/v1/plans/"+filed.ID+"/approve", nil, &approved); err != nil {
			return err
		}
		ours = append(ours, time.Since(begin))
		if len(approved.IDs) != planGroups {
			return fmt.Errorf("%d tasks were minted for %d groups", len(approved.IDs), planGroups)
		}
	}
	m, base := median(ours), median(theirs)
	b.add(row{what: fmt.Sprintf("approve a plan of %d groups", planGroups), value: ms(m), baseline: ms(base), ratio: ratio(m, base),
		target: "< " + ms(planLimit), met: m < planLimit})
	return nil
}

// largePlan is the body of a plan whose slices each depend on the one before. The
// last group updates the status file and depends on all others.
func largePlan(round int) map[string]any {
	documents := map[string]string{"overview.md": "# Turn all widgets\n\nThey turn left when they are asked to turn right.\n"}
	last := ""
	for i := range planGroups - 1 {
		name := fmt.Sprintf("%03d-turn-a-widget", i)
		needs := ""
		if last != "" {
			needs = "depends_on: [" + last + "]\n"
		}
		documents[name+".md"] = "---\n" + needs + "files: [widget" + strconv.Itoa(i) + ".go]\n---\n# Make widget " +
			strconv.Itoa(i) + " turn the right way round\n\nIts test says how it should be.\n"
		last = name
	}
	return map[string]any{"repo": account + "/" + project, "slug": "widgets-" + strconv.Itoa(round), "documents": documents,
		"dry_run": true}
}

// batch inserts n rows of tasks in one durable commit.
func (c *creator) batch(ctx context.Context, n int) (time.Duration, error) {
	begin := time.Now()
	tx, err := c.pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	insert := tx.StmtContext(ctx, c.insert)
	for i := range n {
		taskID := id.Random()
		if _, err := insert.ExecContext(ctx, taskID, "Make widget "+strconv.Itoa(i)+" turn the right way round",
			"Its test says how it should be.",
			time.Now().UnixMicro(), "svc/"+taskID, "user:ada"); err != nil {
			_ = tx.Rollback() // the transaction has failed already
			return 0, err
		}
	}
	err = tx.Commit()
	return time.Since(begin), err
}
