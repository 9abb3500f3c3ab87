package kb

import "yardmaster/internal/db"

// The pages that a question leads to.
const (
	nearPages  = 4
	nearTokens = 1500 // of their text, in all
)

// NearPage is a page that is near to a text.
type NearPage struct {
	Slug, Text string // the beginning of the text
	Files      []string
	Stale      bool
}

// Near are the pages of a repository that are near to a text, best first, as far as there is
// room. The caller has found the repository within an account.
func Near(tx *db.Tx, repoID, text string) ([]NearPage, error) {
	runes := []rune(text)
	places, _, err := search(stored{tx, repoID}, string(runes[:min(len(runes), briefQuery)]), nearPages)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	slugs := make([]string, len(places))
	for i, p := range places {
		slugs[i] = p.Slug
	}
	rows, err := beginnings(tx, repoID, slugs)
	if err != nil {
		return nil, err
	}
	var out []NearPage
	left := nearTokens
	for _, slug := range slugs {
		r := rows[slug]
		part := fit(r.Body, min(left, nearTokens/2))
		if part == "" || left < leastTokens {
			continue
		}
		left -= tokensOf(part)
		out = append(out, NearPage{Slug: slug, Text: part, Files: r.Files.V, Stale: r.StaleAt != nil})
	}
	return out, nil
}
