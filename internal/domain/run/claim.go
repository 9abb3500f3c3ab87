package run

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

const (
	defaultTimeout = 2 * time.Hour
	// tokenSlack is how long an attempt's tokens outlive its timeout, so that
	// the box can save the work. The end of the run revokes them; this limit is
	// for a run whose end is missed.
	tokenSlack  = 15 * time.Minute
	gitTokenTTL = time.Hour
)

// Claim gives the box a task, and waits for one up to the time asked. The same
// claim id gets the same run while that lives, with new tokens. Claim returns
// fault.Invalid for a malformed claim id.
func (s *Service) Claim(ctx context.Context, boxID string, c protocol.Claim) (protocol.ClaimReply, error) {
	reply, _, err := s.await(ctx, boxID, c)
	return reply, err
}

// claimSealed is Claim for a call of a box: the tokens of the run are sealed to
// the process that claims it.
func (s *Service) claimSealed(ctx context.Context, boxID string, c protocol.Claim) (protocol.ClaimReply, error) {
	out, key, err := s.await(ctx, boxID, c)
	if err != nil || out.Run == nil {
		return out, err
	}
	tokens := protocol.Tokens{Model: out.Run.ModelToken, Git: out.Run.GitToken}
	out.Run.ModelToken, out.Run.GitToken = "", ""
	out.Sealed, err = sealTokens(key, out.Run.Run, tokens)
	return out, err
}

// await answers a claim, and returns the key to which the tokens of its run are
// to be sealed.
func (s *Service) await(ctx context.Context, boxID string, c protocol.Claim) (out protocol.ClaimReply, key string, err error) {
	if c.ID == "" || len(c.ID) > 100 {
		return out, "", fault.Field("id", "must have 1 to 100 characters")
	}
	wait := min(max(time.Duration(c.WaitMS)*time.Millisecond, 0), protocol.ClaimAnswer(s.Lease))
	dismissed, done := s.waiting.add(boxID)
	defer done()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		if isDone(dismissed) {
			return protocol.ClaimReply{Reasons: []string{"claim_dismissed"}}, "", nil
		}
		changed, outlook, err := s.outlook(ctx, boxID, c)
		if err != nil {
			return out, "", err
		}
		if outlook.Asks() {
			if err := s.Queue.Ask(ctx, outlook); err != nil {
				return out, "", err
			}
			continue
		}
		if outlook.Work {
			start, key, err := s.claim(ctx, boxID, c)
			if db.IsUnique(err) {
				continue // the same claim, delivered twice, was faster
			}
			if err != nil || start != nil {
				return protocol.ClaimReply{Run: start}, key, err
			}
			continue // another box was faster
		}
		if outlook.Reasons != nil {
			return protocol.ClaimReply{Reasons: outlook.Reasons}, "", nil
		}
		var due <-chan time.Time
		if outlook.Wait > 0 {
			due = time.After(outlook.Wait)
		}
		select {
		case <-changed:
		case <-due:
		case <-dismissed:
		case <-deadline.C:
			reasons, err := s.whyNot(ctx, boxID)
			return protocol.ClaimReply{Reasons: reasons}, "", err
		case <-ctx.Done():
			return out, "", ctx.Err()
		}
	}
}

// outlook tells, without writing, whether the claim can get a run now. The
// channel closes when that may have changed.
func (s *Service) outlook(ctx context.Context, boxID string, c protocol.Claim) (changed <-chan struct{}, out queue.Outlook, err error) {
	topic := task.AnyQueue
	for range 2 { // the second time with the right topic
		changed = s.Hub.Watch(topic)
		var want string
		err = s.DB.Read(ctx, func(tx *db.Tx) error {
			box, ok, err := queue.FindBox(tx, boxID)
			if err != nil {
				return err
			}
			if !ok {
				out = queue.Outlook{Reasons: []string{"box_unknown"}}
				return nil
			}
			if box.Left { // the box no longer waits for the answer
				out = queue.Outlook{Reasons: []string{"box_left"}}
				return nil
			}
			want = box.Topic()
			prior, ok, err := selectClaim.Maybe(tx, boxID, c.ID)
			switch {
			case err != nil:
				return err
			case ok: // the answer once more, if the box may still have it
				_, err := held(tx, boxID, prior.ID, int(prior.Attempt), false)
				if out = (queue.Outlook{Work: true}); fault.IsKind(err, fault.NotFound) {
					out, err = queue.Outlook{Reasons: []string{"claim_spent"}}, nil
				}
				return err
			case c.Free <= 0:
				out = queue.Outlook{Reasons: []string{task.HoldBusy}}
				return nil
			}
			out, err = s.Queue.Look(tx, boxID)
			return err
		})
		if err != nil || want == "" || want == topic || out.Work || out.Reasons != nil {
			break
		}
		topic = want
	}
	return changed, out, err
}

func (s *Service) whyNot(ctx context.Context, boxID string) (reasons []string, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		reasons, err = s.Queue.WhyNot(tx, boxID)
		return err
	})
	return reasons, err
}

// claim makes a run of the next task for the box. start is nil if there is
// none.
func (s *Service) claim(ctx context.Context, boxID string, c protocol.Claim) (start *protocol.Start, key string, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		start = nil
		t, err := s.Queue.Claimable(tx, boxID) // locks the box, so that duplicates of one claim follow each other
		if err != nil {
			return err
		}
		prior, again, err := selectClaim.Maybe(tx, boxID, c.ID)
		if err != nil || again && prior.EndedAt != nil || !again && t == nil {
			return err
		}
		if key, err = s.Boxes.SealKey(tx, boxID); err != nil {
			return err
		}
		if again {
			start, err = s.repeat(tx, &prior, key)
			return err
		}
		start, err = s.begin(tx, t, boxID, c.ID, key)
		return err
	})
	return start, key, err
}

// begin makes the run of the task's next attempt; nil if the box may not take the work now.
// key is the key of the process that claims it.
func (s *Service) begin(tx *db.Tx, t *task.Row, boxID, claimID, key string) (*protocol.Start, error) {
	defer tx.About(t.AccountID)()
	r := Row{ID: id.New(), AccountID: t.AccountID, TaskID: t.ID, RepoID: t.RepoID, BoxID: boxID, ClaimID: claimID, Template: t.Template}
	right, ok, err := fleet.Holding(tx, boxID, t.AccountID)
	if err != nil || !ok { // the box has just lost its right
		return nil, err
	}
	if err := s.unbind(tx, t, right); err != nil {
		return nil, err
	}
	if err := s.Tasks.MarkClaimed(tx, t, r.ID, boxID); err != nil {
		return nil, err
	}
	r.Attempt, r.BoxRight = t.Attempt, &right.Kind
	start, err := s.start(tx, t, &r)
	if err != nil {
		return nil, err
	}
	preferred, err := s.prefer(tx, t, start)
	if err != nil {
		return nil, err
	}
	_, err = insertRun.Exec(tx, insertRunArgs{
		ID: r.ID, AccountID: r.AccountID, TaskID: r.TaskID, RepoID: r.RepoID, Attempt: r.Attempt, BoxID: r.BoxID,
		ClaimID: r.ClaimID, LeaseExpiresAt: s.acceptBy(tx), Agent: start.Agent, Template: r.Template,
		Model: start.Model, CreatedAt: tx.Now, ProgressAt: tx.Now, SecretsKey: key,
		BoxRight: right.Kind, ConsentBy: right.UserID, ConsentAt: right.Agreed, PromptSHA256: digestOf(start.Prompt),
	})
	if err != nil {
		return nil, err
	}
	if err := preferred.keep(tx, r.ID, start.Model); err != nil {
		return nil, err
	}
	why, err := s.trigger(tx, t)
	if err != nil {
		return nil, err
	}
	policy, err := s.Setup.Policy(tx, t.RepoID)
	if err != nil {
		return nil, err
	}
	err = session.Begin(tx, session.Beginning{
		AccountID: r.AccountID, RunID: r.ID, TaskID: r.TaskID, RepoID: r.RepoID, Trigger: why, Kind: t.Kind, Policy: policy,
	})
	if err != nil {
		return nil, err
	}
	return start, s.mintTokens(tx, start)
}

// repeat answers a claim whose answer the box may not have received. The tokens
// of that answer are deleted: only their hashes are stored.
func (s *Service) repeat(tx *db.Tx, r *Row, key string) (*protocol.Start, error) {
	defer tx.About(r.AccountID)()
	t, ok, err := task.Get(tx, r.AccountID, r.TaskID)
	if err != nil || !ok {
		return nil, err
	}
	start, err := s.start(tx, &t, r)
	if err != nil {
		return nil, err
	}
	preferred, err := s.prefer(tx, &t, start)
	if err != nil {
		return nil, err
	}
	if err := preferred.keep(tx, r.ID, start.Model); err != nil {
		return nil, err
	}
	n, err := renewLease.Exec(tx, renewLeaseArgs{
		BoxID: r.BoxID, ID: r.ID, Attempt: r.Attempt, LeaseExpiresAt: s.redispatchAt(tx),
	})
	if err != nil || n == 0 { // it was given up just now, and gets no tokens any more
		return nil, err
	}
	if _, err := forgetTokens.Exec(tx, r.ID); err != nil {
		return nil, err
	}
	if _, err := claimKey.Exec(tx, r.ID, key, digestOf(start.Prompt)); err != nil {
		return nil, err
	}
	return start, s.mintTokens(tx, start)
}

// mintTokens gives the attempt its tokens. A check needs none for models.
func (s *Service) mintTokens(tx *db.Tx, start *protocol.Start) (err error) {
	ttl := time.Duration(start.TimeoutMS)*time.Millisecond + tokenSlack
	if start.GitToken, err = mint(tx, start.Run, TokenGit, ttl); err != nil {
		return err
	}
	if start.Kind == task.KindCI {
		return nil
	}
	start.ModelToken, err = mint(tx, start.Run, TokenModel, ttl)
	return err
}

// demanded returns a level of isolation as boxes expect it: empty for the best
// that the box has.
func demanded(isolation string) string {
	if isolation == queue.Best {
		return ""
	}
	return isolation
}

// start returns all that a box needs to carry out the attempt, except its
// tokens.
func (s *Service) start(tx *db.Tx, t *task.Row, r *Row) (*protocol.Start, error) {
	repo, err := s.Tasks.RepoByID(tx, t.RepoID)
	if err != nil {
		return nil, fmt.Errorf("repository of task %s: %w", t.ID, err)
	}
	st := &protocol.Start{
		Run: r.ID, Attempt: int(r.Attempt), Task: t.ID, Kind: t.Kind, Title: t.Title, LeaseMS: s.Lease.Milliseconds(),
		Repo: repo.FullName(), CloneURL: repo.CloneURL, DefaultRef: repo.DefaultBranch,
		GatewayURL: s.GatewayURL, CommitName: s.CommitName, CommitEmail: s.CommitEmail,
		Env: map[string]string{}, TimeoutMS: defaultTimeout.Milliseconds(), LFS: repo.LFS, Depth: repo.Depth,
	}
	declares, err := s.Setup.Declares(tx, t)
	if err != nil {
		return nil, fmt.Errorf("whose text task %s has: %w", t.ID, err)
	}
	st.Mute = !declares
	st.Isolation = repo.Isolation
	if st.Submodules, err = s.Setup.Submodules(tx, t); err != nil {
		return nil, fmt.Errorf("submodules for task %s: %w", t.ID, err)
	}
	if r.lent() && st.Submodules != nil {
		st.Submodules.Known, st.Submodules.Why = []protocol.Module{}, "a box that another account has lent is given none"
	}
	if st.Environment, err = s.Setup.Environment(tx, t, r.lent()); err != nil {
		return nil, fmt.Errorf("environment for task %s: %w", t.ID, err)
	}
	if t.Kind == task.KindCI {
		st.Agent, st.Command = commandAgent, t.Command.V
		if repo.CheckTimeout > 0 {
			st.TimeoutMS = repo.CheckTimeout.Milliseconds()
		}
		if t.CheckoutSHA != nil {
			st.Checkout = *t.CheckoutSHA
		}
		st.Isolation = demanded(st.Isolation)
		return st, nil
	}
	tpl, ok, err := s.Setup.Template(tx, t.AccountID, t.RepoID, t.Template, ownerOf(t))
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", t.Template, err)
	}
	if !ok {
		return nil, fmt.Errorf("template %s of task %s is gone", t.Template, t.ID)
	}
	st.Agent, st.Model, st.Options, st.Command = tpl.Agent, tpl.Model, tpl.Options, tpl.Command
	st.Isolation = demanded(queue.Stricter(tpl.Isolation, repo.Isolation))
	if tpl.Timeout > 0 {
		st.TimeoutMS = tpl.Timeout.Milliseconds()
	}
	if pushes(t.Kind) {
		st.Branch = t.Branch
		if t.StartSHA != nil {
			st.Base = *t.StartSHA
		}
		if err := setSaved(tx, r, st); err != nil {
			return nil, err
		}
	}
	if t.CheckoutSHA != nil {
		st.Checkout = *t.CheckoutSHA
		if st.CheckoutRef, err = s.Setup.HeadRef(tx, t); err != nil {
			return nil, fmt.Errorf("ref of task %s: %w", t.ID, err)
		}
	}
	notes, err := s.Setup.Notes(tx, t, r.BoxID)
	if err != nil {
		return nil, fmt.Errorf("notes for task %s: %w", t.ID, err)
	}
	if !r.lent() { // they take secrets
		if st.MCPServers, err = s.Setup.Servers(tx, t); err != nil {
			return nil, fmt.Errorf("MCP servers for task %s: %w", t.ID, err)
		}
	}
	st.Prompt = brief(t, repo, st.Saved != "", st.Mute, notes)
	return st, nil
}

// savingTime is how long the next run waits for the box from which a person
// took the run before to save its work.
const savingTime = 10 * time.Second

// setSaved tells the box where the box before saves its work, if the task was
// taken from that box.
func setSaved(tx *db.Tx, r *Row, st *protocol.Start) error {
	l, ok, err := selectLast.Maybe(tx, r.AccountID, r.TaskID, r.ID)
	if err != nil || !ok || l.Outcome == nil || *l.Outcome != Lost && *l.Outcome != Interrupted {
		return err
	}
	st.Saved = protocol.SavedRef(l.ID, int(l.Attempt))
	if *l.Outcome == Interrupted && l.FailureKind == nil && l.Presence == "online" { // its box did not hand it back
		st.SavedMS = max(0, l.EndedAt.Add(savingTime).Sub(tx.Now).Milliseconds())
	}
	return nil
}

// pushes tells whether a kind of task hands in commits.
func pushes(kind string) bool {
	return kind != task.KindCI && kind != task.KindScout && kind != task.KindReview && kind != task.KindKB
}

// Accept notes that the box has stored the run. OK is false if the attempt is
// not the box's any more.
func (s *Service) Accept(ctx context.Context, boxID string, a protocol.Accept) (protocol.Renewal, error) {
	return s.renew(ctx, boxID, a.Run, a.Attempt)
}

// Renew extends a lease. OK is false if the attempt is not the box's any more.
func (s *Service) Renew(ctx context.Context, boxID string, r protocol.Renew) (protocol.Renewal, error) {
	return s.renew(ctx, boxID, r.Run, r.Attempt)
}

func (s *Service) renew(ctx context.Context, boxID, runID string, attempt int) (out protocol.Renewal, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		out = protocol.Renewal{ServerMS: tx.Now.UnixMilli()}
		n, err := renewLease.Exec(tx, renewLeaseArgs{
			BoxID: boxID, ID: runID, Attempt: int64(attempt), LeaseExpiresAt: s.redispatchAt(tx),
		})
		if err != nil {
			return err
		}
		r, ok, err := selectOfBox.Maybe(tx, boxID, runID)
		if err != nil || !ok || r.Attempt != int64(attempt) {
			return err
		}
		// The box of a run that has ended learns from CommittedSeq that the end
		// is stored.
		if out.CommittedSeq = r.CommittedSeq; n == 0 {
			return nil
		}
		out.OK, out.LeaseMS = true, s.Lease.Milliseconds()
		if r.AcceptedAt == nil {
			r.AcceptedAt = &tx.Now
			s.Hub.Notify(tx, event.RunTopic(r.ID))
			return store(tx, &r)
		}
		return nil
	})
	return out, err
}

// held finds a live attempt that a box holds and may hold: whatever a box is given for a run,
// this is asked at that moment. It returns fault.NotFound if there is none.
func held(tx *db.Tx, boxID, runID string, attempt int, lock bool) (Row, error) {
	q := selectHeld
	if lock {
		q = q.ForUpdate()
	}
	r, ok, err := q.Maybe(tx, boxID, runID, int64(attempt))
	if err == nil && !ok {
		err = fault.Missing("live attempt")
	}
	return r, err
}

// AccountOf is the account of a live attempt that a box holds. It fails as held does.
func AccountOf(tx *db.Tx, boxID, runID string, attempt int) (string, error) {
	r, err := held(tx, boxID, runID, attempt, false)
	return r.AccountID, err
}

// GitToken gives a live attempt a new push token, sealed to the box's present
// process, and deletes the token before. It returns fault.NotFound if the box
// has no such live attempt.
func (s *Service) GitToken(ctx context.Context, boxID string, ask protocol.GitTokenAsk) (out protocol.GitToken, err error) {
	key, token, err := s.gitToken(ctx, boxID, ask)
	if err == nil {
		out.ExpiresMS = gitTokenTTL.Milliseconds()
		out.Sealed, err = sealTokens(key, ask.Run, protocol.Tokens{Git: token})
	}
	return out, err
}

func (s *Service) gitToken(ctx context.Context, boxID string, ask protocol.GitTokenAsk) (key, token string, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, err := held(tx, boxID, ask.Run, ask.Attempt, true)
		if err != nil {
			return err
		}
		if key, err = s.Boxes.SealKey(tx, boxID); err != nil {
			return err
		}
		if _, err := forgetKind.Exec(tx, r.ID, TokenGit); err != nil {
			return err
		}
		token, err = mint(tx, r.ID, TokenGit, gitTokenTTL)
		return err
	})
	return key, token, err
}

// ownerOf is the person who asked for a task in which nobody else had a part; empty: there
// is none.
func ownerOf(t *task.Row) string {
	if t.RequestedBy == nil || t.Unbound {
		return ""
	}
	return *t.RequestedBy
}
