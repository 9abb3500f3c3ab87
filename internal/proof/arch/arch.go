// Package arch has tests only. They read the source of the whole program and fail
// where it breaks a rule: which package may import which, which packages may use
// HTTP, SQL, the clock or randomness, and how packages and files are laid out. An
// exception is a line with its reason in a table here, where a reviewer sees it.
package arch
