package db

// Page is a page of a list that is ordered by a time and an id; op.PageIn is one.
type Page interface {
	// AfterTime returns the time in Unix microseconds and the id of the last row of
	// the page before; ok is false for the first page. It returns a fault.Invalid
	// about the field cursor for a cursor of another list.
	AfterTime() (micros int64, id string, ok bool, err error)
	// Size returns how many rows to select.
	Size() int
}

// NewestFirst selects a page of a query, by descending created_at and id. The query
// has a WHERE, and columns of these names. It returns the fault of the page.
func NewestFirst[T any](tx *Tx, b *Builder, p Page) ([]T, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	if more {
		b.And("(created_at, id) < ", Tuple(at, last))
	}
	return Select[T](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}
