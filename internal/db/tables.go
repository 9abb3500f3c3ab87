package db

import (
	"slices"
	"strings"
)

// Tables lists the tables that a statement reads and those that it writes, each
// once and sorted. It finds the names after FROM, JOIN, USING, INTO, UPDATE, DELETE
// FROM and TRUNCATE, also in subselects and in common table expressions. Names of
// common table expressions and of functions are no tables. A table that is only
// written is not listed as read. The schema before a name is left out.
func Tables(sql string) (reads, writes []string) {
	p := tableParser{tokens: tokenize(sql)}
	p.statement(nil)
	slices.Sort(p.reads)
	slices.Sort(p.writes)
	return slices.Compact(p.reads), slices.Compact(p.writes)
}

// tableParser walks through the tokens of a statement.
type tableParser struct {
	tokens        []token
	at            int
	reads, writes []string
}

// A token is a word, a number, a parameter, or one punctuation mark. The contents
// of quoted texts are left out.
type token struct {
	text   string // a word as it is written, without quotes
	word   bool   // it may be a name
	quoted bool   // it is no keyword
}

// is tells whether the token is one of some keywords or punctuation marks.
func (t token) is(words ...string) bool {
	return !t.quoted && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(t.text, w) })
}

// peek returns the token i places ahead; an empty one after the end.
func (p *tableParser) peek(i int) token {
	if at := p.at + i; at >= 0 && at < len(p.tokens) {
		return p.tokens[at]
	}
	return token{}
}

// statement reads up to the bracket that closes the statement, or to the end. The
// names in ctes are no tables.
func (p *tableParser) statement(ctes []string) {
	selects := false // a FROM names tables, in contrast to the one in EXTRACT(x FROM y)
	list := false    // a comma precedes one more table
	for p.at < len(p.tokens) {
		t := p.peek(0)
		p.at++
		switch {
		case t.is(")"):
			return
		case t.is("("):
			p.statement(ctes)
		case t.is("WITH") && p.beginsCTE():
			ctes = p.with(ctes)
		case t.is("SELECT"):
			selects, list = true, false
		case t.is("DELETE", "UPDATE", "INTO", "TRUNCATE") && !p.peek(-2).is("DO", "FOR", "KEY", "ON"):
			if p.peek(0).is("OR") { // UPDATE OR IGNORE
				p.at += 2
			}
			for p.peek(0).is("FROM", "TABLE", "ONLY") {
				p.at++
			}
			p.table(&p.writes, nil)
			selects, list = true, false
		case t.is("FROM") && selects && !p.peek(-2).is("DISTINCT"), t.is("JOIN"), t.is("USING") && !p.peek(0).is("("):
			list = true
			p.source(ctes)
		case t.is(",") && list:
			p.source(ctes)
		case t.is("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "WINDOW", "UNION", "EXCEPT", "INTERSECT",
			"RETURNING", "SET", "FOR"):
			list = false
		}
	}
}

// beginsCTE tells whether WITH begins common table expressions: WITH name AS ( or
// WITH name (columns) AS (.
func (p *tableParser) beginsCTE() bool {
	i := 0
	if p.peek(i).is("RECURSIVE") {
		i++
	}
	return p.peek(i).word && (p.peek(i+1).is("AS") || p.peek(i+1).is("("))
}

// with reads common table expressions and returns the names that are no tables
// after them.
func (p *tableParser) with(ctes []string) []string {
	recursive := p.peek(0).is("RECURSIVE")
	if recursive {
		p.at++
	}
	ctes = slices.Clone(ctes)
	for p.peek(0).word {
		name := p.peek(0).text
		p.at++
		if p.peek(0).is("(") {
			for p.at < len(p.tokens) && !p.peek(0).is(")") {
				p.at++
			}
			p.at++
		}
		for p.peek(0).is("AS", "NOT", "MATERIALIZED") {
			p.at++
		}
		if !p.peek(0).is("(") {
			break
		}
		p.at++
		if recursive {
			ctes = append(ctes, name)
		}
		p.statement(ctes)
		ctes = append(ctes, name)
		if !p.peek(0).is(",") {
			break
		}
		p.at++
	}
	return ctes
}

// source reads one item after FROM or JOIN: a table, a subselect, joined tables in
// brackets, or a function call.
func (p *tableParser) source(ctes []string) {
	for p.peek(0).is("LATERAL", "ONLY") {
		p.at++
	}
	if !p.peek(0).is("(") {
		p.table(&p.reads, ctes)
		return
	}
	if t := p.peek(1); t.is("SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE") {
		return // statement reads the bracket
	}
	p.at++
	p.source(ctes)
	p.statement(ctes)
}

// table reads a name and adds it to list, unless it is a function or among others.
func (p *tableParser) table(list *[]string, others []string) {
	if !p.peek(0).word {
		return
	}
	for p.peek(1).is(".") && p.peek(2).word {
		p.at += 2
	}
	name := p.peek(0).text
	if list == &p.reads && p.peek(1).is("(") || slices.Contains(others, name) {
		return
	}
	p.at++
	*list = append(*list, name)
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// tokenize splits SQL into tokens, without comments and the contents of quoted
// texts.
func tokenize(sql string) (out []token) {
	for i := 0; i < len(sql); {
		begin := i
		switch c := sql[i]; {
		case isLetter(c):
			for i < len(sql) && (isLetter(sql[i]) || isDigit(sql[i]) || sql[i] == '$') {
				i++
			}
			out = append(out, token{text: sql[begin:i], word: true})
		case isDigit(c):
			for i < len(sql) && (isLetter(sql[i]) || isDigit(sql[i]) || sql[i] == '.') {
				i++
			}
			out = append(out, token{text: sql[begin:i]})
		case c == '\'' || c == '"':
			i = behind(sql, i+1, string(c))
			if c == '"' {
				out = append(out, token{text: strings.Trim(sql[begin:i], `"`), word: true, quoted: true})
			} else {
				out = append(out, token{text: "''"})
			}
		case strings.HasPrefix(sql[i:], "--"):
			i = behind(sql, i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = behind(sql, i+2, "*/")
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		default:
			i++
			out = append(out, token{text: sql[begin:i]})
		}
	}
	return out
}

// behind returns the position after the next end in sql, from i on.
func behind(sql string, i int, end string) int {
	if n := strings.Index(sql[i:], end); n >= 0 {
		return i + n + len(end)
	}
	return len(sql)
}
