package capability

// Rows are the rows of a list.
type Rows[T any] struct {
	Data []T `json:"data"`
}
