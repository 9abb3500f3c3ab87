// Package lazy has patterns that are compiled when they are first used. To compile all
// patterns of the program takes a third of the time in which a command starts, and most
// commands use none.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a pattern that is compiled at its first use. Its methods are those of
// regexp.Regexp.
type Regexp struct{ get func() *regexp.Regexp }

// New returns the pattern of a text. A text that is no pattern panics at the first use; a
// test of internal/proof/arch compiles them all.
func New(text string) Regexp {
	return Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString is regexp.Regexp.MatchString.
func (r Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// FindString is regexp.Regexp.FindString.
func (r Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindStringIndex is regexp.Regexp.FindStringIndex.
func (r Regexp) FindStringIndex(s string) []int { return r.get().FindStringIndex(s) }

// FindStringSubmatch is regexp.Regexp.FindStringSubmatch.
func (r Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindAllString is regexp.Regexp.FindAllString.
func (r Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

// FindAllStringSubmatch is regexp.Regexp.FindAllStringSubmatch.
func (r Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is regexp.Regexp.FindAllStringSubmatchIndex.
func (r Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

// FindAllStringIndex is regexp.Regexp.FindAllStringIndex.
func (r Regexp) FindAllStringIndex(s string, n int) [][]int { return r.get().FindAllStringIndex(s, n) }

// FindStringSubmatchIndex is regexp.Regexp.FindStringSubmatchIndex.
func (r Regexp) FindStringSubmatchIndex(s string) []int { return r.get().FindStringSubmatchIndex(s) }

// ReplaceAllString is regexp.Regexp.ReplaceAllString.
func (r Regexp) ReplaceAllString(s, with string) string { return r.get().ReplaceAllString(s, with) }

// ReplaceAllStringFunc is regexp.Regexp.ReplaceAllStringFunc.
func (r Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, with)
}
