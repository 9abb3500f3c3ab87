package op

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// argumentTexts are the Texts of a call with Arguments, by the name of the path
// parameter. There are no headers among arguments.
type argumentTexts map[string]string

func (a argumentTexts) Path(name string) string { return a[name] }
func (argumentTexts) Header(string) string      { return "" }

// spread puts Arguments where they would travel on the route of the op: path, query
// or body. An argument that is no input of the op goes to the query or the body, where
// bind refuses it. spread fails with fault.Invalid and fault.TooLarge, as the route
// does.
func (o *Op) spread(c *Call) error {
	if c.Arguments == nil {
		return nil
	}
	var path argumentTexts
	var query url.Values
	body := c.Arguments
	for name := range c.Arguments {
		if o.elsewhere(name) {
			path, query, body = argumentTexts{}, url.Values{}, make(map[string]jsontext.Value, len(c.Arguments))
			break
		}
	}
	c.Path, c.Sent, c.query, c.members = o.Path, Sent{Texts: path}, query, body
	var e errs
	size := int64(0)
	for name, v := range c.Arguments {
		f := o.in.byName[name]
		switch {
		case !o.elsewhere(name):
			if path != nil {
				body[name] = v
			}
			size += int64(len(name) + len(v))
		case f != nil && f.Where == InPath:
			text, ok := scalar(v)
			if !ok {
				e.add(name, "must be "+kindName(f.Type))
			}
			path[name] = text
			c.Path = strings.NewReplacer("{"+name+"}", text, "{"+name+"...}", text).Replace(c.Path)
		case v.Kind() == 'n': // null counts as left out
		case v.Kind() == '[' && f != nil && f.Type.Kind() == reflect.Slice:
			var list []jsontext.Value
			if err := json.Unmarshal(v, &list); err != nil {
				return malformed(err)
			}
			for _, item := range list {
				text, _ := scalar(item)
				if item.Kind() != '"' {
					e.add(name, "must be a list of strings")
				}
				query.Add(name, text)
			}
		default:
			text, ok := scalar(v)
			if !ok && f != nil {
				e.add(name, "must be "+kindName(f.Type))
			}
			query.Set(name, text)
		}
	}
	for i := range o.in.Fields {
		if f := &o.in.Fields[i]; f.Where == InPath && c.Arguments[f.Name] == nil {
			e.add(f.Name, "is required")
		}
	}
	switch {
	case e != nil:
		return invalid(e)
	case size > o.MaxBody:
		return o.tooLarge()
	}
	return nil
}

// elsewhere tells whether an argument of that name does not travel in the body.
func (o *Op) elsewhere(name string) bool {
	f := o.in.byName[name]
	return f == nil && !o.in.Body || f != nil && f.Where != InBody
}

// scalar spells a value as a path or a query does; ok is false for null, an array and
// an object.
func scalar(v jsontext.Value) (text string, ok bool) {
	switch v.Kind() {
	case '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err == nil
	case '0', 't', 'f':
		return v.String(), true
	}
	return "", false
}
