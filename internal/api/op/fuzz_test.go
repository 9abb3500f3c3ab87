package op

import (
	"context"
	"net/url"
	"reflect"
	"testing"
	"unicode/utf8"

	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// list makes a collection with every kind of paging parameter.
func list() *Op {
	o := New(Row{ID: "item.list", Method: "GET", Path: "/v1/items", Rule: policy.Public(), Paging: &Paging{
		Default: 2, Max: 3, Sorts: []string{"age", "-age"}, Q: true, Filters: map[string][]string{"state": {"on", "off"}, "owner": nil},
	}}, func(context.Context, struct{ PageIn }) (None, error) { return None{}, nil })
	return &o
}

// FuzzPaging holds that a query is refused with the name of a parameter, or is one that
// the row publishes, and that a cursor returns the values that it was made with.
func FuzzPaging(f *testing.F) {
	o := list()
	page := NewPage(PageIn{PerPage: 1, Sort: "age", mark: mark(o)}, []string{"a", "b"}, func(s string) []string { return []string{"7", s} })
	for _, q := range []string{
		"", "cursor=" + *page.NextCursor, "sort=-age&cursor=" + *page.NextCursor, "cursor=eyJtIjoxfQ", "cursor=%00", "per_page=3",
		"per_page=-1", "per_page=99999999999999999999",
		"filter=state:on&filter=owner:x:y", "filter=state:", "filter=:", "filter=state:on&filter=state:off", "q=%ff", "q=a&q=b", "page=2",
		"limit=5", "sort=", "a;b", "%zz", "x=1",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		c := &Call{Op: o, Sent: Sent{Query: query}}
		var in struct{ PageIn }
		if err := o.bind(c, &in); err != nil {
			if e := fault.From(err); e.Kind != fault.Invalid || len(e.Fields) == 0 {
				t.Fatalf("%q is refused as %v", query, err)
			}
			return
		}
		if n := in.Size(); n < 2 || n > 4 {
			t.Errorf("%q asks for %d rows", query, n)
		}
		if in.Sort != "age" && in.Sort != "-age" {
			t.Errorf("%q sorts by %q", query, in.Sort)
		}
		if s := in.Want("state"); s != "" && s != "on" && s != "off" || !utf8.ValidString(in.Q) {
			t.Errorf("%q wants %q, %q", query, s, in.Q)
		}
		if in.Cursor == "" {
			return
		}
		key := in.After()
		next := NewPage(in.PageIn, make([]int, in.Size()), func(int) []string { return key })
		again := struct{ PageIn }{}
		c.Query = url.Values{"cursor": {*next.NextCursor}}.Encode()
		if err := o.bind(c, &again); err != nil || len(again.After()) != len(key) || again.Sort != in.Sort {
			t.Errorf("%q: the next cursor is refused or another: %v", query, err)
		}
	})
}

// mark returns the mark that binds a cursor to its collection.
func mark(o *Op) uint32 {
	var in struct{ PageIn }
	if err := o.bind(&Call{Op: o}, &in); err != nil {
		panic(err)
	}
	return in.mark
}

// FuzzBody holds that a body is refused with the fields that are wrong, or conforms to
// the checks.
func FuzzBody(f *testing.F) {
	type part struct {
		Name string `json:"name" maxLength:"5"`
	}
	type in struct {
		Title  string            `json:"title" minLength:"1" maxLength:"10"`
		Count  *int              `json:"count" minimum:"1" maximum:"9"`
		Share  float64           `json:"share,omitempty" minimum:"0" maximum:"1"`
		Labels map[string]string `json:"labels,omitempty" maxItems:"3"`
		Parts  []part            `json:"parts,omitempty" maxItems:"2"`
	}
	o := New(Row{ID: "item.make", Method: "POST", Path: "/v1/items", Rule: policy.Public()},
		func(context.Context, in) (None, error) { return None{}, nil })
	for _, body := range []string{
		`{"title": "t"}`, `{"title": "t", "count": 3, "share": 0.5, "labels": {"a": "b"}, "parts": [{"name": "x"}]}`,
		`{"title": "t", "count": 1e400}`, `{"title": null}`, `null`, `[]`,
		`{"title": "t", "title": "u"}`, "{\"title\": \"\xff\"}", `{"title": "\u0000"}`, `{"title": "t", "labels": {"\u0000": ""}}`,
		`{"title": "\\u0000"}`, `{"title": "t", "parts": [null]}`, `{"x": 1}`, `{"title": "\ud800"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got in
		var e errs
		keys, err := o.decode(body, &got, &e)
		if err != nil {
			if x := fault.From(err); x.Kind != fault.Invalid || len(x.Fields) == 0 {
				t.Fatalf("%q is refused as %v", body, err)
			}
			return
		}
		o.in.checkSent(reflect.ValueOf(&got).Elem(), func(f *Field) bool { return keys[f.Name] }, &e)
		if len(e) > 0 {
			return
		}
		for _, s := range []string{got.Title} {
			if !isText(s) || utf8.RuneCountInString(s) > 10 {
				t.Errorf("%q is taken with the title %q", body, s)
			}
		}
		if got.Count != nil && (*got.Count < 1 || *got.Count > 9) || !(got.Share >= 0 && got.Share <= 1) || len(got.Labels) > 3 ||
			len(got.Parts) > 2 {
			t.Errorf("%q is taken as %+v", body, got)
		}
		for k, v := range got.Labels {
			if !isText(k) || !isText(v) {
				t.Errorf("%q is taken with the label %q: %q", body, k, v)
			}
		}
	})
}
