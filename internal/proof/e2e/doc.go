// Package e2e holds tests of the whole program under fault: the built binary
// as control plane and boxes, each a process of its own, with real NATS, HTTP
// and git between them. Processes are killed, lines are cut, disks fill up,
// pushes are refused and agents misbehave; after each scenario the tests show
// from the API and from the stored data that no task was lost, none was done
// twice, no event is missing or doubled, and that a box that was cut off had
// stopped before its work was handed on.
//
// There is nothing here to import. A test builds a stack (stack_test.go), gives
// it tasks whose agent is a shell script that it holds by the hand (work_test.go),
// does harm, and ends with stack.verify (verify_test.go).
package e2e
