package codehost

import "strings"

// QueuePrefix begins the names of the branches on which merge queues of the server have
// their candidates. No credential may push to them, see Access.MayPush.
const QueuePrefix = TaskRoot + "/queue/"

// TaskRoot is the folder of the branches that the service makes: those of tasks and of
// merge queues.
const TaskRoot = "svc"

// QueueBranch tells whether a branch is one of the server's merge queues.
func QueueBranch(name string) bool { return strings.HasPrefix(name, QueuePrefix) && ValidBranch(name) }

// StackOptions describe merges of heads into a base, one after the other.
type StackOptions struct {
	BaseSHA string
	Heads   []string // commits
	Title   string   // of each commit
	Author  Person
}

// Stacked is the result of Host.Stack.
type Stacked struct {
	SHA       string   // the last commit; the base if the base contains all heads
	Tree      string   // of SHA; "" after a conflict
	HeadTrees []string // of the heads, as far as they were merged
	Conflict  int      // the index of the first head that conflicts; -1: none does
}

// QueueEntry is the place of a pull request in the merge queue of its host.
type QueueEntry struct {
	Position int    // from 1
	GroupSHA string // the commit on which its checks run; "": there is none yet
}
