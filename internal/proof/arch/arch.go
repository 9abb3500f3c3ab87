// Package arch holds no code: its tests read the source of the whole program
// and fail where a rule of the house is broken. They say which package may
// import which, who may speak HTTP or SQL, read the clock or draw randomness,
// and how packages and files are laid out. A rule is bent by adding a line
// with its reason to a table here, where a reviewer sees it.
package arch
