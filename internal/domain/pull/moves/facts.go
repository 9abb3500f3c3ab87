package moves

import (
	"reflect"
	"slices"
)

// tag names the values of one fact, in order.
type tag interface{ names() []string }

// fact is a value of a closed set. Its zero value is no value: nobody has filled it in.
// A fact is read by Is alone, so that a decision about a fact nobody has filled in is a
// panic and no default, and so that a test sees which facts a decision has read.
type fact[T tag] uint8

// Is tells whether v is one of some values. It panics with unset if v has no value.
func (v fact[T]) Is(of ...fact[T]) bool {
	if v == 0 {
		panic(unset(reflect.TypeFor[T]().Name()))
	}
	return slices.Contains(of, v)
}

// Values lists all values, in order.
func (fact[T]) Values() (all []fact[T]) {
	var t T
	for i := range t.names() {
		all = append(all, fact[T](i+1))
	}
	return all
}

func (v fact[T]) String() string {
	var t T
	if v == 0 {
		return "?"
	}
	return t.names()[v-1]
}

// unset is the panic about a fact that nobody has filled in: the name of its tag.
type unset string

// Facts are all that the next step of a pull request depends on, besides Rules. All of
// them are about the present head, if not said otherwise. None is text of a person.
type Facts struct {
	State     State
	Abandoned Abandoned // its task was cancelled, and no person has taken it over
	Enabled   Enabled   // the repository
	Draft     Draft
	Watch     Watch  // whether agents look after it
	Branch    Branch // whose branch it is

	Known Known // what git at the host said, at the last look at head and base
	Fit   Fit   // whether it merges
	Names Names // what a merge now would do that a person is always asked about
	Under Under // the work that its head was begun on

	Checks     Checks
	Review     Review     // the last review of this head
	Findings   Findings   // that hold the merge, of this head or an earlier one
	Objections Objections // of people who request changes, of this head or an earlier one

	Round     Round // an agent at work on the branch
	CI        CI    // rounds left of each kind
	Conflicts Conflicts
	Requests  Requests
	Reviews   Reviews
	Push      Push // what a round has done on the branch of a person
	Seat      Seat // whether the queue of the account takes a task now

	Question Question
	Refused  Refused // a person has said no since the last yes, to whatever head
	Carry    Carry   // a decision about an earlier head that has the same change
	Yes      Yes     // a person has ordered the merge of this head

	Turn Turn // in a merge queue
	Act  Act  // the merge as it is carried out
	Host Host // how the host took the last call about this pull request
}

// Rules are what the policy file of the default branch decides, within the floors of the
// account.
type Rules struct {
	Mode     Mode     // merge.mode
	Reviewer Reviewer // review.mode
	OnCancel OnCancel // merge.on_cancel
	Pushes   Pushes   // pulls.push
}
