// Package flow is what happens between nouns: what becomes of a task when its
// run has ended, of a plan when its task moves, of a pull request when its task
// is cancelled. Each is a type or a function with a name and a test; a domain
// sees it as a small interface that it declares itself, or not at all, as a
// subscriber of what it tells.
//
// Nothing here has a table, a capability or a loop.
package flow
