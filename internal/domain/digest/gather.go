package digest

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/money"
	"yardmaster/internal/secretscan"
)

// Content is what a digest tells.
type Content struct {
	_       struct{} `doc:"What happened within the time of a digest, and what waits." schema:"DigestContent"`
	Merged  Merges   `json:"merged" doc:"pull requests that were merged, the newest first"`
	Waiting Waits    `json:"waiting" doc:"what waited for a person when the digest was made, the oldest first"`
	Failed  Failures `json:"failed" doc:"tasks that failed for good, the newest first"`
	Cost    Cost     `json:"cost" doc:"what calls of models cost, estimated"`
	Rates   []Rate   `json:"rates" doc:"how often things went well"`
}

// Merges are pull requests that were merged.
type Merges struct {
	_     struct{} `doc:"Pull requests that were merged." schema:"DigestMerges"`
	Total int64    `json:"total" example:"3" doc:"how many there are"`
	Rows  []Merge  `json:"rows" doc:"the first 50 of them"`
}

// Merge is a pull request that was merged.
type Merge struct {
	_           struct{}  `doc:"A pull request that was merged." schema:"DigestMerge"`
	PRID        string    `json:"pr_id" format:"uuid" doc:"id of the pull request"`
	Repo        string    `json:"repo" example:"acme/web" doc:"owner/name"`
	Number      int64     `json:"number" example:"42" doc:"its number in the repository"`
	Title       string    `json:"title" example:"Show the current year" doc:"its title"`
	RequestedBy *string   `json:"requested_by" example:"ada" doc:"login of the person whose work it is; null: nobody's"`
	MergedBy    *string   `json:"merged_by" example:"ada" doc:"who decided it: login of a person, or words such as the policy; null: unknown"`
	MergedAt    time.Time `json:"merged_at" doc:"when"`
}

// Waits are things that wait for people.
type Waits struct {
	_     struct{} `doc:"What waits for a person." schema:"DigestWaits"`
	Total int64    `json:"total" example:"1" doc:"how much there is"`
	Rows  []Wait   `json:"rows" doc:"the first 50 of it"`
}

// Wait is something that waits for a person.
type Wait struct {
	_     struct{}  `doc:"Something that waits for a person." schema:"DigestWait"`
	Kind  string    `json:"kind" enum:"approval,blocker,escalation,plan,task,pr" doc:"approval: a question about a pull request; blocker: what a task lacks; escalation: what agents handed to people; plan: one to be approved; task: one that is held; pr: a pull request that only a person gets on"`
	ID    string    `json:"id" format:"uuid" doc:"id of the pull request of an approval, and else of the blocker, escalation, plan, task or pull request"`
	Repo  *string   `json:"repo" example:"acme/web" doc:"owner/name; null: of no one repository"`
	Title string    `json:"title" example:"Show the current year" doc:"title of the pull request, task, plan or escalation"`
	Why   string    `json:"why" example:"merge" doc:"what is asked, or why it waits"`
	Who   *string   `json:"who" example:"ada" doc:"login of the person whose work it is; null: the owners and admins of the account"`
	Since time.Time `json:"since" doc:"since when"`
}

// Failures are tasks that failed.
type Failures struct {
	_     struct{}  `doc:"Tasks that failed for good." schema:"DigestFailures"`
	Total int64     `json:"total" example:"1" doc:"how many there are"`
	Rows  []Failure `json:"rows" doc:"the first 50 of them"`
}

// Failure is a task that failed for good.
type Failure struct {
	_        struct{}  `doc:"A task that failed for good." schema:"DigestFailure"`
	TaskID   string    `json:"task_id" format:"uuid" doc:"id of the task"`
	Repo     string    `json:"repo" example:"acme/web" doc:"owner/name"`
	Title    string    `json:"title" example:"Show the current year" doc:"its title"`
	Failure  *string   `json:"failure_kind" example:"run_timeout" doc:"why, as a word of tasks; null: unknown"`
	Why      string    `json:"why" example:"The agent gave up." doc:"why, as a sentence; empty: there is none"`
	FailedAt time.Time `json:"failed_at" doc:"when"`
}

// Cost is what calls of models cost.
type Cost struct {
	_        struct{} `doc:"What calls of models cost, estimated; no bill." schema:"DigestCost"`
	CostUSD  *string  `json:"cost_usd" format:"decimal" example:"3.15" doc:"decimal US dollars; null: nothing has a price"`
	Sessions int64    `json:"sessions" example:"5" doc:"conversations with models"`
	Calls    int64    `json:"calls" example:"120" doc:"calls of models"`
	Unpriced int64    `json:"unpriced_calls" example:"0" doc:"calls of models without a known price, which are not in cost_usd"`
}

// Rate is how often something went well.
type Rate struct {
	_    struct{} `doc:"How often something went well: n of d. With d 0 there was nothing." schema:"DigestRate"`
	Name string   `json:"name" enum:"tasks_succeeded,prs_merged,checks_passed" doc:"tasks_succeeded: of the tasks that ended, without those that were cancelled; prs_merged: of the pull requests that were closed; checks_passed: of the checks that passed or failed"`
	N    int64    `json:"n" example:"9" doc:"how many went well"`
	D    int64    `json:"d" example:"10" doc:"of how many"`
}

// Limits of texts, in characters.
const (
	titleRunes = 120
	whyRunes   = 300
)

// plain makes a text that agents or people wrote fit for a digest: one line without hidden
// characters or secrets, of at most so many characters.
func plain(s string, most int) string {
	s = secretscan.Scrub(inert.Line(s))
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return s
}

// gather reads what a digest of tx.Account tells.
func (s *Service) gather(tx *db.Tx, from, to time.Time) (c Content, err error) {
	span := measure.Span{From: from, To: to}
	merged, err := measure.Merges(tx, span, most)
	if err != nil {
		return c, err
	}
	c.Merged.Rows, c.Failed.Rows, c.Waiting.Rows = []Merge{}, []Failure{}, []Wait{}
	for _, m := range merged {
		c.Merged.Total = m.Total
		c.Merged.Rows = append(c.Merged.Rows, Merge{PRID: m.PRID, Repo: m.Repo, Number: m.Number, Title: plain(m.Title, titleRunes),
			RequestedBy: m.RequestedBy, MergedBy: m.MergedBy, MergedAt: m.MergedAt})
	}
	if err := s.nameMergers(tx, c.Merged.Rows); err != nil {
		return c, err
	}
	failed, err := measure.Failures(tx, span, most)
	if err != nil {
		return c, err
	}
	for _, f := range failed {
		c.Failed.Total = f.Total
		c.Failed.Rows = append(c.Failed.Rows, Failure{TaskID: f.TaskID, Repo: f.Repo, Title: plain(f.Title, titleRunes), Failure: f.Failure,
			Why: plain(f.Why, whyRunes), FailedAt: f.FailedAt})
	}
	waits, total, err := measure.Waits(tx, most)
	if err != nil {
		return c, err
	}
	c.Waiting.Total = total
	for _, w := range waits {
		c.Waiting.Rows = append(c.Waiting.Rows, Wait{Kind: w.Kind, ID: w.ID, Repo: w.Repo, Title: plain(w.Title, titleRunes),
			Why: plain(w.Why, whyRunes), Who: w.Who, Since: w.Since})
	}
	spent, err := measure.Spent(tx, span)
	if err != nil {
		return c, err
	}
	c.Cost = Cost{CostUSD: money.DollarsOrNone(spent.Micros), Sessions: spent.Sessions, Calls: spent.Calls, Unpriced: spent.Unpriced}
	c.Rates, err = rates(tx, span)
	return c, err
}

// nameMergers puts names for the labels of those who decided merges, as of now: a digest is
// kept as it was made.
func (s *Service) nameMergers(tx *db.Tx, rows []Merge) error {
	var labels []string
	for _, m := range rows {
		if m.MergedBy != nil {
			labels = append(labels, *m.MergedBy)
		}
	}
	names, err := s.Actors.InWords(tx, labels)
	for i := range rows {
		if m := &rows[i]; m.MergedBy != nil {
			by := plain(names[*m.MergedBy], titleRunes)
			m.MergedBy = &by
		}
	}
	return err
}

// rates reads how often things went well in tx.Account.
func rates(tx *db.Tx, span measure.Span) (out []Rate, err error) {
	for _, of := range []struct {
		name string
		rate func(*db.Tx, measure.Span) (measure.Rate, error)
	}{{"tasks_succeeded", measure.SuccessRate}, {"prs_merged", measure.MergeRate}, {"checks_passed", measure.CheckRate}} {
		r, err := of.rate(tx, span)
		if err != nil {
			return nil, err
		}
		out = append(out, Rate{Name: of.name, N: r.N, D: r.D})
	}
	return out, nil
}

// quiet tells whether nothing happened and nothing waits.
func (c Content) quiet() bool {
	happened := c.Merged.Total + c.Failed.Total + c.Waiting.Total + c.Cost.Calls
	for _, r := range c.Rates {
		happened += r.D
	}
	return happened == 0
}

// headline is a digest in one line.
func (c Content) headline() string {
	if c.quiet() {
		return "Nothing happened."
	}
	cost := "no priced calls"
	if c.Cost.CostUSD != nil {
		cost = money.Shown(*c.Cost.CostUSD)
	}
	return strings.Join([]string{
		fmt.Sprintf("%d merged", c.Merged.Total), fmt.Sprintf("%d waiting", c.Waiting.Total), fmt.Sprintf("%d failed", c.Failed.Total),
		cost,
	}, ", ")
}
