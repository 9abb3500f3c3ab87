package op

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// Paging are the paging parameters of a collection. The page size is sent as per_page,
// or as limit for bounded lists. Those, and what is Uncursored, answer a Bounded.
type Paging struct {
	Default, Max int
	Sorts        []string            // the first is the default; none: sort is not published
	Filters      map[string][]string // key -> allowed values; none: any value
	Several      []string            // keys of Filters that take several allowed values, separated by commas
	Q            bool
	Bounded      bool // limit instead of per_page, and no cursor
	Uncursored   bool // per_page, and no cursor
	Full         bool // always served in full, without any paging parameter
}

// keys lists the keys of filters for people, with the values that each may have.
func (p *Paging) keys() (all []string) {
	for _, k := range slices.Sorted(maps.Keys(p.Filters)) {
		shown := k
		if allowed := p.Filters[k]; len(allowed) > 0 {
			shown += " (" + strings.Join(allowed, ", ") + ")"
		}
		if slices.Contains(p.Several, k) {
			shown += ", several separated by commas"
		}
		all = append(all, shown)
	}
	return all
}

func (p *Paging) publishes(name string) bool {
	if p == nil || p.Full {
		return false
	}
	switch name {
	case "cursor":
		return !p.Bounded && !p.Uncursored
	case "per_page":
		return !p.Bounded
	case "limit":
		return p.Bounded
	case "sort":
		return len(p.Sorts) > 0
	case "filter":
		return len(p.Filters) > 0
	case "q":
		return p.Q
	}
	return false
}

// PageIn is embedded by the In of a collection.
type PageIn struct {
	Cursor  string   `json:"cursor,omitempty" paging:"1" maxLength:"8192" doc:"next_cursor of the page before"`
	PerPage int      `json:"per_page,omitempty" paging:"1" minimum:"1" doc:"rows a page"`
	Limit   int      `json:"limit,omitempty" paging:"1" minimum:"1" doc:"rows to answer"`
	Sort    string   `json:"sort,omitempty" paging:"1" doc:"the order of the rows; the first of the list unless sent"`
	Filter  []string `json:"filter,omitempty" paging:"1" maxItems:"16" doc:"key:value"`
	Q       string   `json:"q,omitempty" paging:"1" maxLength:"200" doc:"text to search for"`

	after   []string
	filters map[string]string
	mark    uint32
}

// After is the key of the last row of the page before; empty on the first page.
func (p PageIn) After() []string { return p.after }

// TimeKey makes the key of a row in a collection that is ordered by a time and an id.
func TimeKey(t time.Time, id string) []string {
	return []string{strconv.FormatInt(t.UnixMicro(), 10), id}
}

// AfterTime reads After as a TimeKey, which may be the beginning of a longer key: Unix
// microseconds and an id. ok is false on the first page. AfterTime fails with
// fault.Invalid if After is no TimeKey.
func (p PageIn) AfterTime() (micros int64, id string, ok bool, err error) {
	if len(p.after) == 0 {
		return 0, "", false, nil
	}
	if len(p.after) >= 2 {
		if micros, err = strconv.ParseInt(p.after[0], 10, 64); err == nil {
			return micros, p.after[1], true, nil
		}
	}
	return 0, "", false, fault.Field("cursor", "is not a cursor of this collection")
}

// Size is the number of rows to read: one more than the page has, so that NewPage can
// tell whether rows follow.
func (p PageIn) Size() int { return max(p.PerPage, p.Limit) + 1 }

// FirstPage makes the PageIn of the first page of the collection that the row with the
// id publishes, for an answer that holds that page beside other data. The next_cursor
// of the page continues at that row.
func FirstPage(rowID string, g *Paging) PageIn {
	return PageIn{PerPage: g.Default, mark: markOf(rowID)}
}

func markOf(rowID string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(rowID))
	return h.Sum32()
}

// Want returns the value of filter=<key>:<value>, or "".
func (p PageIn) Want(key string) string { return p.filters[key] }

// Wants returns the values of filter=<key>:<value>,<value>… for a key that takes several;
// none without the filter.
func (p PageIn) Wants(key string) []string {
	if p.filters[key] == "" {
		return nil
	}
	return strings.Split(p.filters[key], ",")
}

// cursor is the content of a next_cursor. It holds sort, q and filter too, so that a
// caller need send nothing else. Mark binds the cursor to its collection.
type cursor struct {
	Mark   uint32   `json:"m"`
	Sort   string   `json:"s,omitempty"`
	Q      string   `json:"q,omitempty"`
	Filter []string `json:"f,omitempty"` // sorted
	Key    []string `json:"k"`
}

// settle checks the paging parameters against the row's Paging and sets the defaults.
func (p *PageIn) settle(r *Row, sent func(string) bool, e *errs) {
	g := r.Paging
	if g == nil || g.Full {
		return
	}
	size, name := &p.PerPage, "per_page"
	if g.Bounded {
		size, name = &p.Limit, "limit"
	}
	switch {
	case !sent(name):
		*size = g.Default
	case *size > g.Max:
		e.add(name, fmt.Sprintf("must be at most %d", g.Max))
	}
	p.mark = markOf(r.ID)
	if p.Cursor != "" && !p.resume(e) {
		return
	}
	if p.Sort == "" && len(g.Sorts) > 0 {
		p.Sort = g.Sorts[0]
	}
	if p.Sort != "" && !slices.Contains(g.Sorts, p.Sort) {
		e.add("sort", "must be one of "+strings.Join(g.Sorts, ", "))
	}
	p.filters = map[string]string{}
	for _, f := range p.Filter {
		k, v, ok := strings.Cut(f, ":")
		allowed, known := g.Filters[k]
		values := []string{v}
		if slices.Contains(g.Several, k) {
			values = strings.Split(v, ",")
		}
		switch {
		case !ok || v == "":
			e.add("filter", "must have the form key:value")
		case !known:
			e.add("filter", fmt.Sprintf("has no key %q", clip(k)))
		case len(allowed) > 0 && slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(allowed, v) }):
			e.add("filter", fmt.Sprintf("%s must be one of %s", k, strings.Join(allowed, ", ")))
		default:
			if _, twice := p.filters[k]; twice {
				e.add("filter", fmt.Sprintf("names %s twice", k))
			}
			p.filters[k] = v
		}
	}
}

// resume takes sort, q and filter from the cursor. A caller need not send them again,
// and cannot change them.
func (p *PageIn) resume(e *errs) bool {
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || json.Unmarshal(b, &c) != nil || c.Mark != p.mark || len(c.Key) == 0 {
		e.add("cursor", "is not a cursor of this collection")
		return false
	}
	const same = "must be the %s the cursor was made with, or left out"
	if p.Sort != "" && p.Sort != c.Sort {
		e.add("sort", fmt.Sprintf(same, "sort"))
	}
	if p.Q != "" && p.Q != c.Q {
		e.add("q", fmt.Sprintf(same, "text"))
	}
	// A cursor without a filter was made under the default of the collection; a
	// caller may send that default as a filter now.
	if p.Filter == nil {
		p.Filter = c.Filter
	} else if c.Filter != nil && !slices.Equal(slices.Sorted(slices.Values(p.Filter)), c.Filter) {
		e.add("filter", fmt.Sprintf(same, "filter"))
	}
	p.Sort, p.Q, p.after = c.Sort, c.Q, c.Key
	return true
}

// At makes a cursor to the rows that follow a key.
func (p PageIn) At(key []string) *string {
	b, _ := json.Marshal(cursor{p.mark, p.Sort, p.Q, slices.Sorted(slices.Values(p.Filter)), key})
	next := base64.RawURLEncoding.EncodeToString(b)
	return &next
}

// Page is the envelope of every collection with a cursor. If next_cursor is null, no
// rows follow.
type Page[T any] struct {
	_          struct{} `doc:"One page of a collection."`
	Data       []T      `json:"data" doc:"the rows, in the order of the collection"`
	NextCursor *string  `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

// Bounded is the envelope of a list without a cursor; has_more tells whether there are
// rows beyond the limit.
type Bounded[T any] struct {
	_          struct{} `doc:"The head of a list that has no further pages."`
	Data       []T      `json:"data" doc:"the first rows of the list, at most as many as were asked for"`
	NextCursor *string  `json:"next_cursor" doc:"always null: the list has no cursor; ask for more rows to see more"`
	HasMore    bool     `json:"has_more" doc:"whether there are more rows than were asked for"`
}

// NewPage makes a Page from up to Size rows; key returns the place of a row in the
// order.
func NewPage[T any](p PageIn, rows []T, key func(T) []string) Page[T] {
	n := p.Size() - 1
	if len(rows) <= n {
		return Page[T]{Data: filled(rows)}
	}
	return Page[T]{Data: rows[:n], NextCursor: p.At(key(rows[n-1]))}
}

// ShowPage makes a Page as NewPage does; show turns each row into its form for clients.
func ShowPage[R, T any](p PageIn, rows []R, key func(R) []string, show func(R) T) Page[T] {
	of := NewPage(p, rows, key)
	out := Page[T]{Data: make([]T, len(of.Data)), NextCursor: of.NextCursor}
	for i, r := range of.Data {
		out.Data[i] = show(r)
	}
	return out
}

// NewestKey makes the key of a row in a collection for Cut whose newest rows come first.
func NewestKey(t time.Time, id string) []string { return []string{Falling(t.UnixMicro()), id} }

// Falling is a number as a part of a key for Cut; the greatest number comes first.
func Falling(n int64) string { return fmt.Sprintf("%019d", math.MaxInt64-n) }

// Cut makes a Page of a collection that was read whole because it cannot be large. The
// rows are ordered by key.
func Cut[T any](p PageIn, rows []T, key func(T) []string) Page[T] {
	return NewPage(p, Rest(p, rows, key), key)
}

// Rest are the rows that Cut makes a Page of, up to Size.
func Rest[T any](p PageIn, rows []T, key func(T) []string) []T {
	slices.SortFunc(rows, func(a, b T) int { return slices.Compare(key(a), key(b)) })
	if after := p.After(); len(after) > 0 {
		rows = slices.DeleteFunc(rows, func(r T) bool { return slices.Compare(key(r), after) <= 0 })
	}
	return rows[:min(len(rows), p.Size())]
}

// NewBounded makes a Bounded from up to Size rows.
func NewBounded[T any](p PageIn, rows []T) Bounded[T] {
	n := p.Size() - 1
	if len(rows) <= n {
		return Bounded[T]{Data: filled(rows)}
	}
	return Bounded[T]{Data: rows[:n], HasMore: true}
}

// Whole makes a Page of a collection that is always served in full.
func Whole[T any](rows []T) Page[T] { return Page[T]{Data: filled(rows)} }

func filled[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

// removed returns the fault.Invalid that names the parameter to send instead of page or
// limit, which the row does not have; nil for other names.
func (o *Op) removed(name string) *fault.Error {
	switch {
	case name == "page" && o.in.byName["cursor"] != nil:
		e := fault.Field("page", "is not a parameter; walk with cursor=<next_cursor>")
		e.Detail = "There are no numbered pages here: send the next_cursor of the answer before as cursor."
		return e
	case name == "limit" && o.in.byName["per_page"] != nil:
		e := fault.Field("limit", "is not a parameter; send per_page")
		e.Detail = "The page size is sent as per_page."
		return e
	}
	return nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// Part is the value of filter=id:PART, a part of an id; "" without the filter. It fails
// with fault.Invalid if the value is no part of an id.
func (p PageIn) Part() (string, error) { return PartOfID("filter", p.Want("id")) }

// PartOfID is a part of an id, the beginning or the end of it. It fails with fault.Invalid,
// naming the field, if the text is not empty and no part of an id.
func PartOfID(field, text string) (string, error) {
	if text == "" || len(text) >= 4 && len(text) <= 36 && strings.Trim(text, "0123456789abcdef-") == "" {
		return text, nil
	}
	return "", fault.Field(field, "id is the beginning or the end of an id: 4 to 36 of the characters 0-9, a-f and -")
}
