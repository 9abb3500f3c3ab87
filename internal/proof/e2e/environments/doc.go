// Package environments holds the tests that the program runs where people
// start it: as root and as an ordinary user, with and without bubblewrap and
// Landlock, below folders that others cannot enter, with a home, a folder for
// temporary files or an environment that something is wrong with. Each test is
// a row: the built binary, started as a person starts it, must do the whole
// job, or say in one sentence why it cannot, and leave nothing behind.
//
// There is nothing here to import. Each row has a place of its own
// (place_test.go), of which it changes one thing (demo_test.go). What it runs
// is held by a keeper (keeper_test.go), a process that finds whatever is left,
// and is started through another step that takes away what the row is to lack
// (enter_test.go). The tests have a build tag of their own and are run by
// `make environments`. Most need root: to make users, to mount, to be root.
package environments
