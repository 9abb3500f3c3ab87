package tree

import (
	"slices"
	"strings"
)

// otherNames are words for nouns that are no plural.
var otherNames = map[string]string{"inbox": "notification", "repositories": "repo"}

// Spelled puts the words of commands in the place of others that people use for them: a noun's plural, which
// alone lists it, and ls for list. Words of commands stay as they are.
func (l Line) Spelled(args []string) []string {
	at := 0
	if len(args) > 0 && slices.Contains([]string{"help", "__complete", "__completeNoDesc"}, args[0]) {
		at = 1
	}
	if len(args) <= at || strings.HasPrefix(args[at], "-") {
		return args
	}
	args = slices.Clone(args)
	lists, firsts := map[string]bool{}, map[string]bool{}
	for _, c := range l.Commands() {
		first, rest, _ := strings.Cut(c.Words, " ")
		firsts[first] = true
		lists[first] = lists[first] || rest == "list"
	}
	word := args[at]
	if !firsts[word] {
		for noun := range lists {
			if lists[noun] && (plural(noun) == word || otherNames[word] == noun) {
				args[at] = noun
				if at == 0 && (len(args) == 1 || strings.HasPrefix(args[1], "-") && args[1] != "-h" && args[1] != "--help") {
					args = slices.Insert(args, 1, "list")
				}
			}
		}
	}
	if at++; len(args) > at && args[at] == "ls" && lists[args[at-1]] {
		args[at] = "list"
	}
	return args
}

func plural(noun string) string {
	if strings.HasSuffix(noun, "x") {
		return noun + "es"
	}
	return noun + "s"
}
