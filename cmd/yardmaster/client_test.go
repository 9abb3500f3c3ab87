package main

import (
	"errors"
	"strings"
	"testing"
)

// A new password is asked for twice where nobody sees it, and its length is
// said before.
func TestChoosePassword(t *testing.T) {
	for _, c := range []struct {
		twice   bool
		answers []string
		want    string // or what is wrong
	}{
		{true, []string{"long enough", "long enough"}, "long enough"},
		{true, []string{"long enough", "long enouhg"}, "not the same"},
		{true, []string{"short"}, "fewer than 10"},
		{false, []string{"long enough"}, "long enough"},
		{false, []string{"höflichkeit"}, "höflichkeit"},
		{false, []string{"äöüäöü"}, "fewer than 10"},
	} {
		var prompts []string
		got, err := choose(c.twice, func(prompt string) (string, error) {
			if prompts = append(prompts, prompt); len(prompts) > len(c.answers) {
				return "", errors.New("asked once more")
			}
			return c.answers[len(prompts)-1], nil
		})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || len(prompts) != len(c.answers) || !strings.Contains(prompts[0], "10 characters") {
			t.Errorf("%+v: %q, asked %q", c, got, prompts)
		}
	}
}
