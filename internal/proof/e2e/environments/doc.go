// Package environments tests the program where people start it: as root and as an
// ordinary user, with and without bubblewrap and Landlock, below folders that others
// cannot enter, and with a faulty home, temporary folder or environment. Each test is
// a row: the built binary, started as a person starts it, must do the whole job, or
// say in one sentence why it cannot, and leave nothing behind.
//
// The package exports nothing. Each row has a place of its own (place_test.go), of
// which it changes one property (demo_test.go). A keeper (keeper_test.go) runs the
// row's programs: a process that finds everything they leave behind. A last step
// (enter_test.go) removes the features that the row must lack, before it starts the
// program. The tests have a build tag of their own; `make environments` runs them.
// Most need root: to make users, to mount, to be root.
package environments
