package github

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/codehost"
)

type wireUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// user is somebody. GitHub shows "ghost" for accounts that are deleted, or nobody.
func (h *Host) user(u *wireUser) codehost.User {
	if u == nil || u.ID == 0 && u.Login == "" {
		return codehost.User{Login: "ghost"}
	}
	out := codehost.User{Login: u.Login, Bot: u.Type == "Bot"}
	if u.ID != 0 {
		out.ID = number(u.ID)
	}
	out.Own = out.ID != "" && out.ID == h.cfg.BotID || h.cfg.BotID == "" && out.Bot && strings.EqualFold(u.Login, h.botLogin())
	return out
}

// stamp is a time as GitHub writes it: RFC 3339, seconds since 1970 in deliveries of
// pushes, or null.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		s.Time = time.Unix(n, 0).UTC()
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	s.Time = t.UTC()
	return err
}

// maybe is nil for no time.
func (s stamp) maybe() *time.Time {
	if s.IsZero() {
		return nil
	}
	return &s.Time
}

type wireRepo struct {
	ID            int64    `json:"id"`
	Name          string   `json:"name"`
	FullName      string   `json:"full_name"`
	Owner         wireUser `json:"owner"`
	Private       bool     `json:"private"`
	Archived      bool     `json:"archived"`
	Disabled      bool     `json:"disabled"`
	DefaultBranch string   `json:"default_branch"`
	Description   string   `json:"description"`
	CreatedAt     stamp    `json:"created_at"`
	PushedAt      stamp    `json:"pushed_at"`
	MergeCommit   *bool    `json:"allow_merge_commit"`
	Squash        *bool    `json:"allow_squash_merge"`
	Permissions   struct {
		Push bool `json:"push"`
		Pull bool `json:"pull"`
	} `json:"permissions"`
}

// repo names a repository. Lists within deliveries have no owner but a full name.
func (h *Host) repo(w wireRepo) codehost.Repo {
	owner, name, _ := strings.Cut(w.FullName, "/")
	return codehost.Repo{
		Host: h.cfg.Name, ID: number(w.ID), Owner: cmp.Or(owner, w.Owner.Login), Name: cmp.Or(w.Name, name),
	}
}

func (h *Host) repoInfo(w wireRepo) codehost.RepoInfo {
	info := codehost.RepoInfo{
		Repo: h.repo(w), DefaultBranch: w.DefaultBranch, Private: w.Private, Archived: w.Archived, Description: w.Description,
	}
	if w.Owner.ID != 0 {
		info.OwnerID = number(w.Owner.ID)
	}
	return info
}

type wireInstallation struct {
	ID          int64             `json:"id"`
	Account     *wireUser         `json:"account"`
	Permissions map[string]string `json:"permissions"`
	SuspendedAt *stamp            `json:"suspended_at"`
	Selection   string            `json:"repository_selection"`
}

func (h *Host) installation(w wireInstallation) codehost.Installation {
	out := codehost.Installation{
		ID: number(w.ID), Owner: h.user(w.Account), Permissions: w.Permissions, Suspended: w.SuspendedAt != nil && !w.SuspendedAt.IsZero(),
		Chosen: w.Selection == "selected",
	}
	if w.Account != nil {
		out.OwnerKind = w.Account.Type
	}
	return out
}

type wireLabel struct {
	Name string `json:"name"`
}

func labelNames(all []wireLabel) []string {
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = l.Name
	}
	return out
}

type wireSide struct {
	Ref  string    `json:"ref"`
	SHA  string    `json:"sha"`
	Repo *wireRepo `json:"repo"` // null once a fork is deleted
	User *wireUser `json:"user"`
}

type wirePull struct {
	Number    int64       `json:"number"`
	NodeID    string      `json:"node_id"`
	Title     string      `json:"title"`
	Body      string      `json:"body"`
	HTMLURL   string      `json:"html_url"`
	State     string      `json:"state"`
	Merged    bool        `json:"merged"` // not in lists
	Draft     bool        `json:"draft"`
	User      *wireUser   `json:"user"`
	Head      wireSide    `json:"head"`
	Base      wireSide    `json:"base"`
	Mergeable *bool       `json:"mergeable"`
	MergeSHA  string      `json:"merge_commit_sha"` // of a trial merge, until the pull request is merged
	MergedBy  *wireUser   `json:"merged_by"`
	Labels    []wireLabel `json:"labels"`
	CreatedAt stamp       `json:"created_at"`
	UpdatedAt stamp       `json:"updated_at"`
	MergedAt  stamp       `json:"merged_at"`
	ClosedAt  stamp       `json:"closed_at"`
}

func (h *Host) pull(w wirePull) codehost.Pull {
	p := codehost.Pull{
		Number: w.Number, NodeID: w.NodeID, Title: w.Title, Body: w.Body, URL: w.HTMLURL, Open: w.State == "open",
		Merged: w.Merged || !w.MergedAt.IsZero(), Draft: w.Draft, Author: h.user(w.User),
		HeadRef: w.Head.Ref, HeadSHA: w.Head.SHA, BaseRef: w.Base.Ref, BaseSHA: w.Base.SHA, Mergeable: w.Mergeable,
		Fork:   w.Head.Repo == nil || w.Base.Repo == nil || w.Head.Repo.ID != w.Base.Repo.ID,
		Labels: labelNames(w.Labels), CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time,
		MergedAt: w.MergedAt.maybe(), ClosedAt: w.ClosedAt.maybe(),
	}
	if w.Head.Repo != nil {
		p.HeadOwner = h.repo(*w.Head.Repo).Owner
	}
	if p.Merged {
		p.MergeSHA = w.MergeSHA
		if w.MergedBy != nil {
			by := h.user(w.MergedBy)
			p.MergedBy = &by
		}
	}
	return p
}

type wireComment struct {
	ID        int64     `json:"id"`
	NodeID    string    `json:"node_id"`
	User      *wireUser `json:"user"`
	Body      string    `json:"body"`
	HTMLURL   string    `json:"html_url"`
	CreatedAt stamp     `json:"created_at"`
	UpdatedAt stamp     `json:"updated_at"`

	// Of a comment on lines.
	Path         string `json:"path"`
	Side         string `json:"side"`
	Line         int    `json:"line"`
	OriginalLine int    `json:"original_line"`
	InReplyTo    int64  `json:"in_reply_to_id"`
	ReviewID     int64  `json:"pull_request_review_id"`
}

// onLines marks the id of a comment on lines: GitHub counts them apart from comments of
// the conversation.
const onLines = "r"

func (h *Host) comment(w wireComment) codehost.Comment {
	c := codehost.Comment{
		ID: number(w.ID), Author: h.user(w.User), Body: unmarked(w.Body), URL: w.HTMLURL,
		CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time,
	}
	if w.Path != "" {
		c.ID = onLines + c.ID
	}
	return c
}

type wireMilestone struct {
	Number       int64  `json:"number"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	HTMLURL      string `json:"html_url"`
	State        string `json:"state"`
	OpenIssues   int    `json:"open_issues"`
	ClosedIssues int    `json:"closed_issues"`
	DueOn        stamp  `json:"due_on"`
	UpdatedAt    stamp  `json:"updated_at"`
}

func milestone(w wireMilestone) codehost.Milestone {
	return codehost.Milestone{
		Number: w.Number, Title: w.Title, Description: w.Description, URL: w.HTMLURL, Open: w.State == "open",
		OpenIssues: w.OpenIssues, Closed: w.ClosedIssues, DueOn: w.DueOn.maybe(), UpdatedAt: w.UpdatedAt.Time,
	}
}

type wireIssue struct {
	ID          int64          `json:"id"`
	Number      int64          `json:"number"`
	NodeID      string         `json:"node_id"`
	Title       string         `json:"title"`
	Body        string         `json:"body"`
	HTMLURL     string         `json:"html_url"`
	State       string         `json:"state"`
	User        *wireUser      `json:"user"`
	Labels      []wireLabel    `json:"labels"`
	Milestone   *wireMilestone `json:"milestone"`
	Comments    int            `json:"comments"`
	PullRequest *struct{}      `json:"pull_request"`
	CreatedAt   stamp          `json:"created_at"`
	UpdatedAt   stamp          `json:"updated_at"`
	ClosedAt    stamp          `json:"closed_at"`
}

func (h *Host) issue(w wireIssue) codehost.Issue {
	i := codehost.Issue{
		Key: number(w.ID), Number: w.Number, NodeID: w.NodeID, Title: w.Title, Body: unmarked(w.Body), URL: w.HTMLURL,
		Open: w.State == "open", Pull: w.PullRequest != nil, Author: h.user(w.User), Labels: labelNames(w.Labels),
		Comments: w.Comments, CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time, ClosedAt: w.ClosedAt.maybe(),
	}
	if w.Milestone != nil {
		i.Milestone = w.Milestone.Title
	}
	return i
}

type wireReview struct {
	ID          int64     `json:"id"`
	User        *wireUser `json:"user"`
	State       string    `json:"state"` // in capitals from REST, in small letters in deliveries
	CommitID    string    `json:"commit_id"`
	Body        string    `json:"body"`
	HTMLURL     string    `json:"html_url"`
	SubmittedAt stamp     `json:"submitted_at"`
}

func (h *Host) review(w wireReview) codehost.Review {
	return codehost.Review{
		ID: number(w.ID), Author: h.user(w.User), State: strings.ToLower(w.State), HeadSHA: w.CommitID, Body: unmarked(w.Body),
		URL: w.HTMLURL, SubmittedAt: w.SubmittedAt.Time,
	}
}
