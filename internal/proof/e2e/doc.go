// Package e2e has tests of the whole program under faults: the built binary as
// control plane and boxes, each a process of its own, with real NATS, HTTP and git
// between them. Processes are killed, connections are cut, disks fill up, pushes are
// refused and agents misbehave. After each scenario the tests show from the API and
// from the stored data that no task was lost or done twice, that no event is missing
// or repeated, and that a disconnected box had stopped before another box got its
// work.
//
// The package exports nothing. A test builds a stack (stack_test.go), gives it tasks
// whose agent is a shell script that the test controls (work_test.go), causes faults,
// and ends with stack.verify (verify_test.go).
package e2e
