package run

import (
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/lazy"
)

// ScoutContext is the content of a survey's report.
type ScoutContext struct {
	_            struct{}         `doc:"What a survey of a repository found, read from its report." schema:"ScoutContext"`
	Repo         string           `json:"repo" doc:"owner/name of the surveyed repository"`
	Summary      string           `json:"summary" doc:"one line"`
	Files        []ScoutFile      `json:"files" doc:"grounded in the repository"`
	SplitHints   []string         `json:"split_hints" doc:"how the work may be cut"`
	Handoffs     []string         `json:"handoffs" doc:"work noticed that belongs elsewhere"`
	AccessNeeded []string         `json:"access_needed" doc:"what only a person can give"`
	Blocker      *DeclaredBlocker `json:"blocker" doc:"what it could not go on without, the newest; null: nothing"`
}

// ScoutFile is a file that a survey cites.
type ScoutFile struct {
	_         struct{} `doc:"A file that a survey cites." schema:"ScoutFile"`
	Path      string   `json:"path" example:"web/footer.html" doc:"from the root of the repository"`
	Citations []string `json:"citations" example:"[\"web/footer.html:12\"]" doc:"path:line"`
}

// Survey returns the report of the newest run of a task of tx.Account, and its
// content. ok is false without a report.
func (s *Service) Survey(tx *db.Tx, t *task.Row) (report string, c *ScoutContext, ok bool, err error) {
	runs, err := selectAttempts.All(tx, tx.Account, t.ID)
	if err != nil || len(runs) == 0 || runs[len(runs)-1].Report == nil {
		return "", nil, false, err
	}
	repo, err := s.Tasks.RepoByID(tx, t.RepoID)
	if err != nil {
		return "", nil, false, err
	}
	report = *runs[len(runs)-1].Report
	return report, survey(repo.FullName(), report), true, nil
}

// The headings of a scout's report whose lists are read. The brief asks for
// them.
const (
	headSplit    = "Split hints"
	headHandoffs = "Handoffs"
	headAccess   = "Access needed"
)

var citation = lazy.New(`\b((?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)+):(\d+(?:-\d+)?)\b`)

// survey reads the content of a scout's report: its first line, the files it
// cites in the order of their first citation, and the lists under the known
// headings.
func survey(repo, report string) *ScoutContext {
	c := &ScoutContext{Repo: repo, Files: []ScoutFile{}, SplitHints: []string{}, Handoffs: []string{}, AccessNeeded: []string{}}
	lists := map[string]*[]string{headSplit: &c.SplitHints, headHandoffs: &c.Handoffs, headAccess: &c.AccessNeeded}
	var list *[]string
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		text := strings.TrimSpace(strings.TrimLeft(line, "#>*- "))
		if c.Summary == "" {
			c.Summary = text
		}
		if strings.HasPrefix(line, "#") {
			list = lists[text]
		} else if list != nil && text != "" && (line[0] == '-' || line[0] == '*') {
			*list = append(*list, text)
		}
	}
	for _, m := range citation.FindAllStringSubmatch(report, -1) {
		i := slices.IndexFunc(c.Files, func(f ScoutFile) bool { return f.Path == m[1] })
		if i < 0 {
			i = len(c.Files)
			c.Files = append(c.Files, ScoutFile{Path: m[1], Citations: []string{}})
		}
		if !slices.Contains(c.Files[i].Citations, m[0]) {
			c.Files[i].Citations = append(c.Files[i].Citations, m[0])
		}
	}
	return c
}
