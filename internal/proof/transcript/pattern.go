package transcript

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// values are the values that a transcript has captured, by name.
//
// A pattern is text in which * matches anything and <name> a value. In JSON, a
// pattern of an object names some of its members, an array must be as long as its
// pattern unless the pattern ends in "...", and the string "*" matches any value,
// null included.
type values map[string]string

var placeholder = regexp.MustCompile(`<([a-z_]+)>`)

// fill puts values into a request.
func (v values) fill(text string) (out string, err error) {
	out = placeholder.ReplaceAllStringFunc(text, func(p string) string {
		value, ok := v[p[1:len(p)-1]]
		if !ok {
			err = fmt.Errorf("no answer so far said what %s is", p)
		}
		return value
	})
	return out, err
}

// match matches text with a pattern and captures new values.
func (v values) match(pattern, got string) error {
	var re strings.Builder
	var fresh []string
	literal := func(s string) {
		for i, part := range strings.Split(s, "*") {
			if i > 0 {
				re.WriteString(".*")
			}
			re.WriteString(regexp.QuoteMeta(part))
		}
	}
	re.WriteString("(?s)^")
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(pattern, -1) {
		literal(pattern[end:at[0]])
		name := pattern[at[2]:at[3]]
		if value, ok := v[name]; ok {
			re.WriteString(regexp.QuoteMeta(value))
		} else {
			re.WriteString("(.+?)")
			fresh = append(fresh, name)
		}
		end = at[1]
	}
	literal(pattern[end:])
	re.WriteString("$")
	found := regexp.MustCompile(re.String()).FindStringSubmatch(got)
	if found == nil {
		return fmt.Errorf("%q is not like %q", got, pattern)
	}
	for i, name := range fresh {
		if old, ok := v[name]; ok && old != found[i+1] {
			return fmt.Errorf("<%s> is both %q and %q", name, old, found[i+1])
		}
		v[name] = found[i+1]
	}
	return nil
}

func (v values) matchJSON(pattern string, got []byte) error {
	var want, have any
	if err := json.Unmarshal([]byte(pattern), &want); err != nil {
		return fmt.Errorf("the pattern is not JSON: %w", err)
	}
	if err := json.Unmarshal(got, &have); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return v.matchValue("", want, have)
}

func (v values) matchValue(at string, want, have any) error {
	switch want := want.(type) {
	case map[string]any:
		object, ok := have.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, no object", at, have)
		}
		for name, w := range want {
			h, ok := object[name]
			if !ok {
				return fmt.Errorf("%s.%s is not there", at, name)
			}
			if err := v.matchValue(at+"."+name, w, h); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, ok := have.([]any)
		if !ok {
			return fmt.Errorf("%s is %v, no array", at, have)
		}
		n := len(want)
		open := n > 0 && want[n-1] == "..."
		if open {
			n--
		}
		if len(list) < n || !open && len(list) > n {
			return fmt.Errorf("%s has %d entries, want %d", at, len(list), n)
		}
		for i := range n {
			if err := v.matchValue(fmt.Sprintf("%s[%d]", at, i), want[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		if want == "*" {
			return nil
		}
		if text, ok := have.(string); ok {
			if err := v.match(want, text); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			return nil
		}
	}
	if !reflect.DeepEqual(want, have) {
		return fmt.Errorf("%s is %v, want %v", at, have, want)
	}
	return nil
}
