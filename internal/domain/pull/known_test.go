package pull

import (
	"reflect"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/proof/seed"
)

// columnsOf are the columns of a pull request that facts are read from.
type columnsOf struct {
	ID, State, Babysit, Watch, AuthorKind, Review, ChecksHold, Carry, Mergeable, Checks, HeadRef, RoundSHA, RoundOf string
	Draft, Fork, RoundAsked                                                                                         bool
	CIRounds, ConflictRounds, ReviewRounds, RequestRounds, Findings, Objections, Remarks, AttendAt, Unread          int64
	AbandonedAt                                                                                                     *int64
}

var setColumns = db.SWith[columnsOf](`UPDATE pulls SET state = :state, babysit = :babysit, watch = :watch, author_kind = :author_kind,
	review = :review, checks_hold = :checks_hold, carry = :carry, mergeable = :mergeable, checks = :checks, head_ref = :head_ref,
	round_sha = :round_sha, round_of = :round_of, round_asked = :round_asked, draft = :draft, fork = :fork, ci_rounds = :ci_rounds,
	conflict_rounds = :conflict_rounds, review_rounds = :review_rounds, request_rounds = :request_rounds, findings = :findings, objections = :objections,
	remarks = :remarks, attend_at = :attend_at, facts_want = facts_have + :unread, abandoned_at = :abandoned_at WHERE id = :id`)

var (
	clearActions = db.S(`DELETE FROM pull_actions WHERE pr_id = $1`)
	setError     = db.S(`UPDATE pull_actions SET error = $2 WHERE id = $1`)
)

// known reads the facts of a pull request.
func (y *yard) known(prID string) (f moves.Facts) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		pr, err := record.ByID.One(tx, tx.Account, prID)
		if err != nil {
			return err
		}
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		f, err = y.FactsOf(tx, r, &pr)
		return err
	})
	return f
}

// insertOf is an action of a pull request.
func (y *yard) insertOf(pr, sha string, a record.InsertActionArgs) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		a.ID, a.AccountID, a.PRID, a.HeadSHA, a.RequestedAt, a.ExpiresAt = "action-"+a.Kind, "acme", pr, sha, tx.Micros(), tx.Micros()+1
		if a.State != record.ActionPending {
			a.DecidedAt = &tx.Now
		}
		_, err := record.InsertAction.Exec(tx, a)
		return err
	})
}

// Each value of each fact is read from the row, the actions and the queue that tell it; the
// others stay as they were.
func TestFactsOfRows(t *testing.T) {
	t.Parallel()
	const person = "user:ada"
	type want = func(*moves.Facts)
	columns := map[string]struct {
		set  func(*columnsOf)
		want want
	}{
		"as it is":       {func(*columnsOf) {}, func(*moves.Facts) {}},
		"opening":        {func(c *columnsOf) { c.State = record.Opening }, func(f *moves.Facts) { f.State = moves.Opening }},
		"merged":         {func(c *columnsOf) { c.State = record.Merged }, func(f *moves.Facts) { f.State = moves.Merged }},
		"closed":         {func(c *columnsOf) { c.State = record.Closed }, func(f *moves.Facts) { f.State = moves.Closed }},
		"abandoned":      {func(c *columnsOf) { c.AbandonedAt = new(int64(1)) }, func(f *moves.Facts) { f.Abandoned = moves.GivenUp }},
		"draft":          {func(c *columnsOf) { c.Draft = true }, func(f *moves.Facts) { f.Draft = moves.Drafted }},
		"stopped":        {func(c *columnsOf) { c.Watch = record.WatchOff }, func(f *moves.Facts) { f.Watch = moves.Stopped }},
		"of a person":    {func(c *columnsOf) { c.AuthorKind = record.ByPerson }, func(f *moves.Facts) { f.Branch = moves.TheirBranch }},
		"of a fork":      {func(c *columnsOf) { c.Fork = true }, func(f *moves.Facts) { f.Branch = moves.ForkBranch }},
		"unread":         {func(c *columnsOf) { c.Unread = 1 }, func(f *moves.Facts) { f.Known = moves.Unread }},
		"without a base": {func(c *columnsOf) { c.Mergeable = "unknown" }, func(f *moves.Facts) { f.Known = moves.NoBase }},
		"in conflict":    {func(c *columnsOf) { c.Mergeable = "conflict" }, func(f *moves.Facts) { f.Fit = moves.Conflict }},
		"pending": {func(c *columnsOf) { c.Checks = record.ChecksPending },
			func(f *moves.Facts) { f.Checks = moves.ChecksPending }},
		"passed":      {func(c *columnsOf) { c.Checks = record.ChecksPassed }, func(f *moves.Facts) { f.Checks = moves.ChecksPassed }},
		"failed":      {func(c *columnsOf) { c.Checks = record.ChecksFailed }, func(f *moves.Facts) { f.Checks = moves.ChecksFailed }},
		"base broken": {func(c *columnsOf) { c.ChecksHold = record.NeedsBase }, func(f *moves.Facts) { f.Checks = moves.ChecksBase }},
		"check missing": {func(c *columnsOf) { c.ChecksHold = record.NeedsCheck },
			func(f *moves.Facts) { f.Checks = moves.ChecksMissing }},
		"checks held": {func(c *columnsOf) { c.ChecksHold = record.NeedsApproval },
			func(f *moves.Facts) { f.Checks = moves.ChecksAction }},
		"machines failed": {func(c *columnsOf) { c.ChecksHold = record.NeedsMachine },
			func(f *moves.Facts) { f.Checks = moves.ChecksInfra }},
		"not reviewed yet": {func(c *columnsOf) { c.Review = record.ReviewDue }, func(f *moves.Facts) { f.Review = moves.ReviewNone }},
		"reviewing": {func(c *columnsOf) { c.Review = record.ReviewRunning },
			func(f *moves.Facts) { f.Review = moves.ReviewRunning }},
		"reviewed": {func(c *columnsOf) { c.Review = record.ReviewReviewed },
			func(f *moves.Facts) { f.Review = moves.ReviewLooked }},
		"blindly reviewed": {func(c *columnsOf) { c.Review = record.ReviewBlind }, func(f *moves.Facts) { f.Review = moves.ReviewBlind }},
		"failed to review": {func(c *columnsOf) { c.Review = record.ReviewFailed }, func(f *moves.Facts) { f.Review = moves.ReviewBlind }},
		"review cancelled": {func(c *columnsOf) { c.Review = record.ReviewCancelled },
			func(f *moves.Facts) { f.Review = moves.ReviewBlind }},
		"found":       {func(c *columnsOf) { c.Findings = 1 }, func(f *moves.Facts) { f.Findings = moves.OpenFindings }},
		"review held": {func(c *columnsOf) { c.Review = record.ReviewHeld }, func(f *moves.Facts) { f.Review = moves.ReviewHeld }},
		"found before": {func(c *columnsOf) { c.Findings, c.Review = 1, record.ReviewRunning },
			func(f *moves.Facts) { f.Findings, f.Review = moves.AgainFindings, moves.ReviewRunning }},
		"objected": {func(c *columnsOf) { c.Objections, c.Remarks = 1, 1 }, func(f *moves.Facts) { f.Objections = moves.FreshRequest }},
		"answered": {func(c *columnsOf) { c.Objections = 1 }, func(f *moves.Facts) { f.Objections = moves.AnsweredRequest }},
		"resting":  {func(c *columnsOf) { c.AttendAt = 1 << 60 }, func(f *moves.Facts) { f.Round = moves.Resting }},
		"repaired": {func(c *columnsOf) { c.Babysit = record.BabysitCI }, func(f *moves.Facts) { f.Round = moves.RoundRunning }},
		"repaired, asked for": {func(c *columnsOf) { c.Babysit, c.RoundAsked = record.BabysitConflict, true },
			func(f *moves.Facts) { f.Round = moves.RoundGoingOn }},
		"objected, and answered": {func(c *columnsOf) { c.Babysit, c.RoundOf, c.Objections = record.BabysitReview, moves.KindRequest, 1 },
			func(f *moves.Facts) { f.Round, f.Objections = moves.RoundRunning, moves.FreshRequest }},
		"answered before": {func(c *columnsOf) { c.Babysit, c.RoundOf, c.Objections = record.BabysitReview, moves.KindReview, 1 },
			func(f *moves.Facts) { f.Round, f.Objections = moves.RoundRunning, moves.AnsweredRequest }},
		"repaired, and moved": {func(c *columnsOf) { c.Babysit, c.RoundSHA = record.BabysitReview, "" },
			func(f *moves.Facts) { f.Round = moves.RoundGoingOn }},
		"no rounds for checks":    {func(c *columnsOf) { c.CIRounds = 3 }, func(f *moves.Facts) { f.CI = moves.RoundsSpent }},
		"no rounds for conflicts": {func(c *columnsOf) { c.ConflictRounds = 2 }, func(f *moves.Facts) { f.Conflicts = moves.RoundsSpent }},
		"no rounds for reviews": {func(c *columnsOf) { c.ReviewRounds = 3 },
			func(f *moves.Facts) { f.Reviews = moves.RoundsSpent }},
		"no rounds for requests": {func(c *columnsOf) { c.RequestRounds = 3 },
			func(f *moves.Facts) { f.Requests = moves.RoundsSpent }},
		"spent": {func(c *columnsOf) { c.Babysit = record.BabysitSpent }, func(f *moves.Facts) {
			f.CI, f.Conflicts, f.Requests, f.Reviews = moves.RoundsSpent, moves.RoundsSpent, moves.RoundsSpent, moves.RoundsSpent
		}},
		"shown": {func(c *columnsOf) { c.AuthorKind, c.Babysit = record.ByBot, record.BabysitOff },
			func(f *moves.Facts) { f.Branch, f.Watch = moves.TheirBranch, moves.Shown }},
		"of the default branch": {func(c *columnsOf) { c.AuthorKind, c.HeadRef = record.ByPerson, "main" },
			func(f *moves.Facts) { f.Branch = moves.DefaultBranch }},
		"to be carried": {func(c *columnsOf) { c.Carry = record.CarryLook }, func(f *moves.Facts) { f.Carry = moves.MaybeQuestion }},
	}
	ask := func(kind, state string) record.InsertActionArgs {
		return record.InsertActionArgs{Kind: kind, State: state}
	}
	decide := func(kind, state, by string) record.InsertActionArgs {
		return record.InsertActionArgs{Kind: kind, State: state, DecidedBy: &by}
	}
	named := ask(record.KindMerge, record.ActionPending)
	named.Protected = &db.JSON[record.Protected]{}
	actions := map[string]struct {
		action record.InsertActionArgs
		set    func(*columnsOf)
		want   want
	}{
		"asked":   {ask(record.KindMerge, record.ActionPending), nil, func(f *moves.Facts) { f.Question = moves.Asked }},
		"expired": {ask(record.KindMerge, record.ActionExpired), nil, func(f *moves.Facts) { f.Question = moves.Expired }},
		"named":   {named, nil, func(f *moves.Facts) { f.Question, f.Names = moves.Asked, moves.NamesSomething }},
		"ordered": {decide(record.KindMerge, record.ActionApproved, person), nil,
			func(f *moves.Facts) { f.Yes = moves.YesFirm }},
		"ordered by the policy": {decide(record.KindMerge, record.ActionApproved, record.ByPolicy), nil, func(*moves.Facts) {}},
		"declined": {decide(record.KindMerge, record.ActionSkipped, person), nil,
			func(f *moves.Facts) { f.Question, f.Refused = moves.Declined, moves.WasRefused }},
		"not merged": {decide(record.KindMerge, record.ActionFailed, person), nil,
			func(f *moves.Facts) { f.Yes, f.Act = moves.YesFirm, moves.ActFailed }},
		"a push is asked": {ask(record.KindPush, record.ActionPending), nil, func(f *moves.Facts) { f.Push = moves.PushAsked }},
		"a push is agreed": {decide(record.KindPush, record.ActionApproved, person), nil,
			func(f *moves.Facts) { f.Push = moves.PushGranted }},
		"a close is asked": {ask(record.KindClose, record.ActionPending), nil, func(*moves.Facts) {}},
		"a close is agreed": {decide(record.KindClose, record.ActionApproved, person), nil,
			func(f *moves.Facts) { f.State = moves.Closing }},
		"a reopen is agreed": {decide(record.KindReopen, record.ActionApproved, person), func(c *columnsOf) { c.State = record.Closed },
			func(f *moves.Facts) { f.State = moves.Reopening }},
	}
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		begin := func(name string) (pr string, plain columnsOf) {
			branch := "svc/" + strings.ReplaceAll(name, " ", "-")
			pr = y.propose(branch, sha)
			return pr, columnsOf{ID: pr, State: record.Open, Babysit: record.BabysitWatching, AuthorKind: record.ByAgent,
				Review: record.ReviewOff, Mergeable: "clean",
				Checks: record.ChecksNone, HeadRef: branch, RoundSHA: sha}
		}
		is := func(name, pr string, c columnsOf, want want) {
			t.Helper()
			y.write(func(tx *db.Tx) error { _, err := setColumns.Exec(tx, c); return err })
			expect := moves.Facts{
				State: moves.Open, Abandoned: moves.CaredFor, Enabled: moves.RepoOn, Draft: moves.Ready, Watch: moves.Watched,
				Branch: moves.OwnBranch, Known: moves.Read, Fit: moves.Clean, Names: moves.NamesNothing, Under: moves.NoneBelow,
				Checks: moves.ChecksNone, Review: moves.ReviewBlind, Findings: moves.NoFindings, Objections: moves.NoRequest,
				Round: moves.NoRound, CI: moves.RoundsLeft, Conflicts: moves.RoundsLeft, Requests: moves.RoundsLeft,
				Reviews: moves.RoundsLeft,
				Push:    moves.NoPush, Seat: moves.SeatFree, Question: moves.NoQuestion, Refused: moves.NeverRefused, Carry: moves.NoCarry,
				Yes: moves.NoYes, Turn: moves.TurnFree, Act: moves.NoAct, Host: moves.HostAnswers,
			}
			want(&expect)
			if got := y.known(pr); got != expect {
				t.Errorf("%s: %+v,\nwant %+v", name, got, expect)
			}
		}
		y.policy("version: 1\nmerge: {mode: never}\nreview: {mode: auto}\n") // nobody is asked
		for name, c := range columns {
			pr, plain := begin(name)
			c.set(&plain)
			is(name, pr, plain, c.want)
		}
		for name, c := range actions {
			pr, plain := begin(name)
			y.write(func(tx *db.Tx) error { _, err := clearActions.Exec(tx, pr); return err })
			if c.set != nil {
				c.set(&plain)
			}
			y.insertOf(pr, sha, c.action)
			is(name, pr, plain, c.want)
			y.write(func(tx *db.Tx) error { _, err := clearActions.Exec(tx, pr); return err })
		}

		pr, plain := begin("carried out")
		y.insertOf(pr, sha, decide(record.KindMerge, record.ActionApproved, person))
		y.write(func(tx *db.Tx) error { _, err := record.CallHost.Exec(tx, "action-merge"); return err })
		called := func(f *moves.Facts) { f.Yes, f.Act = moves.YesFirm, moves.ActCalled }
		is("called", pr, plain, called)
		for why, host := range map[string]moves.Host{record.Limited: moves.HostBusy, record.Unanswered: moves.HostBusy,
			"No.": moves.HostAnswers,
			record.UngrantedWords + "merge_queues: write.": moves.HostRefuses} {
			y.write(func(tx *db.Tx) error {
				_, err := setError.Exec(tx, "action-merge", why)
				return err
			})
			is(why, pr, plain, func(f *moves.Facts) { called(f); f.Host = host })
		}
		y.write(func(tx *db.Tx) error { _, err := clearActions.Exec(tx, pr); return err })

		pr, plain = begin("places")
		y.below = "task-below"
		is("below dropped", pr, plain, func(f *moves.Facts) { f.Names = moves.NamesSomething })
		y.below = ""
		y.line.on = true
		is("in a queue", pr, plain, func(f *moves.Facts) { f.Turn = moves.TurnWaiting })
		y.line.on = false
		y.policy("version: 1\nmerge: {mode: never, queue: batch}\nreview: {mode: auto}\n")
		is("before a queue", pr, plain, func(f *moves.Facts) { f.Turn = moves.TurnOut })
		y.write(func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, y.repo, false); return err })
		is("disabled", pr, plain, func(f *moves.Facts) { f.Enabled, f.Turn = moves.RepoOff, moves.TurnOut })
	})
}

// assumed are the facts, and the values of facts, that nothing stored tells. factsOf fills in
// what the server does today, and each entry says what has to be stored before that ends.
var assumed = map[string]string{
	"State":    "Closing and Reopening are approved actions, of which nobody stores that the host was told",
	"Watch":    "a pull request of people that agents were told to leave alone is Shown: today it waits for nobody",
	"Known":    "NoBase is a look after which nobody knows whether the head merges; an answer of the host that was no answer looks alike",
	"Names":    "Something is what a question has stored, or work below that was dropped; what a merge would do is forgotten otherwise",
	"Checks":   "Due is never: checks begin in the transaction that moves the head",
	"Review":   "a head whose review is off is Blind where the policy wants one: nobody begins it any more",
	"Findings": "Again is while the review of a newer head is due or runs; whether a round has answered them is not stored",
	"Round":    "GoingOn is a round whose head has moved, or that a person asked for",
	"Seat":     "Free until the queue of the account refuses the round, which is tried first",
	"Question": "Narrow is one that does not name work below that was dropped; another is replaced in the transaction that learns of it",
	"Yes":      "Narrow is an order that does not name work below that was dropped",
	"Turn":     "a queue of the code host is Free until the head is entered there: the host is asked each time",
	"Host":     "is read from the words of the last failure of the order, and of a look only that the host refused it",
	"CI":       "all kinds are spent where babysit is spent, of which nobody stores why",
}

// Each entry of assumed is about a fact.
func TestAssumedFacts(t *testing.T) {
	t.Parallel()
	for name := range assumed {
		if _, ok := reflect.TypeFor[moves.Facts]().FieldByName(name); !ok {
			t.Errorf("there is no fact %s", name)
		}
	}
}

func TestRulesOf(t *testing.T) {
	t.Parallel()
	for yml, want := range map[string]moves.Rules{
		"version: 1\n": {Mode: moves.ModeAsk, Reviewer: moves.ReviewAuto, OnCancel: moves.CancelCloses, Pushes: moves.PushesAsk},
		"version: 1\nmerge: {mode: auto, on_cancel: keep}\nreview: {mode: \"off\"}\npulls: {push: auto}\n": {
			Mode: moves.ModeAuto, Reviewer: moves.ReviewUnasked, OnCancel: moves.CancelKeeps, Pushes: moves.PushesAuto},
		"version: 1\nmerge: {mode: never}\nreview: {mode: on_request}\npulls: {push: never}\n": {
			Mode: moves.ModeNever, Reviewer: moves.ReviewUnasked, OnCancel: moves.CancelCloses, Pushes: moves.PushesNever},
	} {
		p, msgs := repo.ParsePolicy([]byte(yml))
		if got := facts.Rules(repo.Ref{Policy: p}); msgs != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", yml, got, msgs, want)
		}
	}
}
