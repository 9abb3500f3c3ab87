package oauth

import (
	"strings"
	"unicode"

	"yardmaster/internal/policy"
)

// right is a scope in the words shown to a person.
type right struct {
	Scope policy.Scope
	Words string
}

// rights are the rights under one heading. Care marks rights that can do harm.
type rights struct {
	Title string
	Care  bool
	List  []right
}

// careful are the scopes that let people in, change code, or give away money or
// secrets.
var careful = policy.Scopes(policy.WriteAccount, policy.WriteMembers, policy.WriteRepos, policy.WritePRs, policy.WriteRunners,
	policy.WriteBilling,
	policy.WriteSecrets, policy.WriteWebhooks, policy.SelfKeys)

// inWords groups scopes for a person, harmless ones first.
func inWords(s policy.Set) (out []rights) {
	groups := []rights{
		{Title: "It may see"},
		{Title: "It may change"},
		{Title: "Take care: it may also", Care: true},
		{Title: "Take care: of the whole server it may", Care: true},
	}
	for _, scope := range policy.Vocabulary() {
		one := policy.Scopes(scope)
		if !s.Has(one) {
			continue
		}
		in := 1
		switch {
		case platform.Has(one):
			in = 3
		case careful.Has(one):
			in = 2
		case strings.HasPrefix(string(scope), "read:"):
			in = 0
		}
		groups[in].List = append(groups[in].List, right{scope, scope.Words()})
	}
	for _, g := range groups {
		if len(g.List) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// platform are the scopes that reach beyond accounts. A program gets them only if it
// asks for them by name.
var platform = policy.PlatformRead | policy.OperatorOnly

// lookalikes replaces characters by the letters that they resemble.
var lookalikes = strings.NewReplacer(
	"0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "l", "|", "l", "rn", "m",
	"vv", "w", "а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "l", "ѕ", "s", "ԁ", "d",
	"м", "m", "т", "t", "г", "r", "һ", "h", "ү", "y", "ӏ", "l", "α", "a", "ε", "e", "ο", "o", "ρ", "p", "τ", "t",
	"υ", "y", "γ", "y", "ι", "l", "ԛ", "q", "ɑ", "a", "ʏ", "y", "ʀ", "r", "ᴅ", "d", "ᴀ", "a", "ᴍ", "m", "ꜱ", "s",
	"ᴛ", "t", "ᴇ", "e",
)

// imitatesUs tells whether a name reads like the name of this program, in whatever
// case, with whatever spaces and accents, and in letters of whatever alphabet.
func imitatesUs(name string) bool {
	plain := lookalikes.Replace(strings.ToLower(strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' { // the wide forms of ASCII
			r -= '！' - '!'
		}
		return r
	}, name)))
	plain = strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unaccented(r)
	}, plain)
	return strings.Contains(plain, "yardmaster") || strings.Contains(plain, "yarclmaster") ||
		strings.Contains(strings.ReplaceAll(plain, "i", "l"), "yardmaster")
}

// unaccented returns a Latin letter without its accent.
func unaccented(r rune) rune {
	for base, marked := range map[rune]string{
		'a': "àáâãäåāăąǎȧạả",
		'd': "ďđḍ",
		'e': "èéêëēĕėęěẹẻ",
		'm': "ṁṃ",
		'r': "ŕŗřṛ",
		's': "śŝşšșṣ",
		't': "ţťțṭ",
		'y': "ýÿŷȳỳỵỷ",
	} {
		if strings.ContainsRune(marked, r) {
			return base
		}
	}
	return r
}
