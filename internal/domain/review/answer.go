package review

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/repo"
)

// Kind is what sort of defect a finding is.
type Kind string

// Values lists all kinds.
func (Kind) Values() []string {
	return []string{"bug", "security", "data_loss", "performance", "contract", "test", "doc"}
}

// quoted are values as a JSON text lists them.
func quoted(values []string) string { return `["` + strings.Join(values, `", "`) + `"]` }

// findingsSchema is the JSON Schema of the finder's answer.
var findingsSchema = `{"type": "object", "additionalProperties": false, "required": ["findings"], "properties": {"findings": {
 "type": "array", "maxItems": 30, "items": {"type": "object", "additionalProperties": false,
 "required": ["file", "line", "severity", "kind", "claim", "why", "how_to_see"], "properties": {
 "file": {"type": "string", "minLength": 1, "maxLength": 500},
 "side": {"enum": ["RIGHT", "LEFT"]},
 "start_line": {"type": "integer", "minimum": 1},
 "line": {"type": "integer", "minimum": 1},
 "severity": {"enum": ` + quoted(repo.Severity("").Values()) + `},
 "kind": {"enum": ` + quoted(Kind("").Values()) + `},
 "claim": {"type": "string", "minLength": 1, "maxLength": 200},
 "why": {"type": "string", "minLength": 1, "maxLength": 2000},
 "how_to_see": {"type": "string", "minLength": 1, "maxLength": 2000},
 "suggestion": {"type": "string", "maxLength": 2000},
 "confidence": {"type": "number", "minimum": 0, "maximum": 1}}}}}}`

// verdictsSchema is the JSON Schema of the verifier's answer.
const verdictsSchema = `{"type": "object", "additionalProperties": false, "required": ["verdicts"], "properties": {"verdicts": {
 "type": "array", "maxItems": 60, "items": {"type": "object", "additionalProperties": false,
 "required": ["claim", "verdict", "evidence"], "properties": {
 "claim": {"type": "integer", "minimum": 1},
 "verdict": {"enum": ["confirmed", "refuted", "cannot_say"]},
 "evidence": {"type": "string", "maxLength": 2000}}}}}}`

// named is a finding as the finder names it.
type named struct {
	File       string        `json:"file"`
	Side       string        `json:"side"`
	StartLine  int           `json:"start_line"`
	Line       int           `json:"line"`
	Severity   repo.Severity `json:"severity"`
	Kind       Kind          `json:"kind"`
	Claim      string        `json:"claim"`
	Why        string        `json:"why"`
	HowToSee   string        `json:"how_to_see"`
	Suggestion string        `json:"suggestion"`
	Confidence float64       `json:"confidence"`
}

// readFindings reads the answer of a finder. Its schema has been checked, but the text is
// that of an agent that may have been misled: what makes no sense is left out.
func readFindings(raw string) (out []named) {
	var answer struct {
		Findings []named `json:"findings"`
	}
	if json.Unmarshal([]byte(raw), &answer) != nil {
		return nil
	}
	for _, n := range answer.Findings[:min(len(answer.Findings), maxRaw)] {
		n.File = path.Clean(strings.TrimPrefix(plain(n.File, 500), "./"))
		n.Claim = strings.Join(strings.Fields(plain(n.Claim, maxClaim)), " ")
		n.Why, n.HowToSee, n.Suggestion = plain(n.Why, maxText), plain(n.HowToSee, maxText), plain(n.Suggestion, maxText)
		if n.Side != codehost.SideBase && n.Side != codehost.SideHead {
			n.Side = "" // the one that has the line
		}
		if n.StartLine >= n.Line || n.StartLine < 0 {
			n.StartLine = 0
		}
		outside := n.File == "." || strings.HasPrefix(n.File, "/") || n.File == ".." || strings.HasPrefix(n.File, "../")
		if outside || n.Line < 1 || n.Claim == "" || n.Severity.Rank() < 0 || !slices.Contains(n.Kind.Values(), string(n.Kind)) {
			continue
		}
		n.Confidence = min(max(n.Confidence, 0), 1)
		out = append(out, n)
	}
	return out
}

// opinion is what a verifier says of a claim.
type opinion struct {
	verdict  string // verdictConfirmed, verdictRefuted, or "" if it could not tell
	evidence string
}

// The clear verdicts about a claim.
const (
	verdictConfirmed = "confirmed"
	verdictRefuted   = "refuted"
)

// readVerdicts reads the answer of a verifier about n claims, by their number from 1. A
// claim without one verdict, or whose verdict shows nothing for it, is neither confirmed nor
// refuted.
func readVerdicts(raw string, n int) map[int]opinion {
	var answer struct {
		Verdicts []struct {
			Claim    int    `json:"claim"`
			Verdict  string `json:"verdict"`
			Evidence string `json:"evidence"`
		} `json:"verdicts"`
	}
	out := map[int]opinion{}
	if json.Unmarshal([]byte(raw), &answer) != nil {
		return out
	}
	for _, v := range answer.Verdicts {
		if v.Claim < 1 || v.Claim > n {
			continue
		}
		c := opinion{v.Verdict, plain(v.Evidence, maxText)}
		before, twice := out[v.Claim]
		said := c.verdict == verdictConfirmed || c.verdict == verdictRefuted
		if !said || c.evidence == "" || twice && before.verdict != c.verdict {
			c.verdict = ""
		}
		out[v.Claim] = c
	}
	return out
}

// plain cuts a text to a number of characters and drops what the database cannot store.
func plain(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	if r := []rune(s); len(r) > most {
		s = string(r[:most])
	}
	return strings.TrimSpace(s)
}
