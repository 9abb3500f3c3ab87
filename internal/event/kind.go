package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Topic is a list of rows whose changes clients follow, such as tasks.
type Topic struct {
	Name string // empty: the events of the topic are shown in the audit trail alone
	// Scope is what it takes to be told of its events.
	Scope policy.Scope
	// Key is the member of the data of other topics' events that names a row of
	// this one which they change; empty: there is none.
	Key string
	// Fixed rows are never taken out of their list.
	Fixed bool
}

// Audience is a topic that nobody can follow: its events are for those who may
// read the audit trail and have the scope.
func Audience(scope policy.Scope) *Topic { return &Topic{Scope: scope} }

// Subject is the object that an event is about.
type Subject struct {
	ID      string // of the object
	Account string // its owner; empty: the transaction's account, or the platform if an operator acts
	RepoID  string // set when the object belongs to a repository
}

// Event is something that happened, as those hear it who subscribed to its
// kind.
type Event[T any] struct {
	Kind    string
	Subject Subject // with the account whose chain it is on; empty: the platform's own
	Data    T
}

// Kind is a kind of event. Its declaration is all that is written down of it:
// the audit row, the topic that clients follow, the schema of its data, and the
// types of those who subscribe to it follow.
//
// T is the data: a struct whose JSON becomes part of the audit row, for
// everybody who may see that, so never a secret. A field with the tag json:"-"
// is for subscribers alone, who hear of the event in its own transaction.
type Kind[T any] struct{ *kind }

type kind struct {
	name  string // <noun>.<past participle>
	topic *Topic
	doc   string
	data  reflect.Type
}

// Name is <noun>.<past participle>, such as task.created.
func (k *kind) Name() string { return k.name }

// Topic is the topic of the kind.
func (k *kind) Topic() *Topic { return k.topic }

// Doc says in a sentence what has happened.
func (k *kind) Doc() string { return k.doc }

// Data is the type of the kind's data.
func (k *kind) Data() reflect.Type { return k.data }

func (k *kind) declared() *kind { return k }

// Any is a kind whatever its data.
type Any interface {
	Name() string
	Topic() *Topic
	Doc() string
	Data() reflect.Type
	declared() *kind
}

// catalogue is filled while packages initialise and only read afterwards.
var catalogue struct {
	sync.Mutex
	kinds map[string]*kind
}

var validName = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)

// Declare declares a kind of event. It is for package-level variables. It
// panics if the name is taken or malformed, or if there is no doc.
func Declare[T any](name string, topic *Topic, doc string) Kind[T] {
	k := &kind{name, topic, doc, reflect.TypeFor[T]()}
	catalogue.Lock()
	defer catalogue.Unlock()
	switch {
	case !validName.MatchString(name):
		panic("event: " + name + " is not <noun>.<past participle>")
	case catalogue.kinds[name] != nil:
		panic("event: " + name + " is declared twice")
	case topic == nil || !strings.HasSuffix(doc, "."):
		panic("event: " + name + " needs a topic and a sentence")
	case k.data.Kind() != reflect.Struct:
		panic("event: the data of " + name + " is no struct")
	}
	if catalogue.kinds == nil {
		catalogue.kinds = map[string]*kind{}
	}
	catalogue.kinds[name] = k
	return Kind[T]{k}
}

// Kinds lists all kinds declared in the packages of this program, by name.
func Kinds() []Any {
	catalogue.Lock()
	defer catalogue.Unlock()
	var out []Any
	for _, name := range slices.Sorted(maps.Keys(catalogue.kinds)) {
		out = append(out, catalogue.kinds[name])
	}
	return out
}

// TopicOf is the topic of the kind with the name; nil if there is no such kind.
func TopicOf(name string) *Topic {
	catalogue.Lock()
	defer catalogue.Unlock()
	if k := catalogue.kinds[name]; k != nil {
		return k.topic
	}
	return nil
}

// None is the data of an event that needs none.
type None struct{}

// Record writes the audit row of an event in the transaction of the change, and
// tells subscribers. The actor and the request id come from the context that
// the transaction began with; without an actor it was the system. It fails if a
// subscriber does.
func (k Kind[T]) Record(tx *db.Tx, about Subject, data T) error {
	account, err := record(tx, change{k.name, about, data})
	if err != nil {
		return err
	}
	about.Account = account
	return k.tell(tx, about, data)
}

// Operated records an operator's act: with private, too, on the platform's own
// chain, and without on that of the account it concerns, if there is one.
func (k Kind[T]) Operated(tx *db.Tx, about Subject, data T, private map[string]any) error {
	shown, err := members(data)
	if err != nil {
		return fmt.Errorf("encode audit data of %s: %w", k.name, err)
	}
	if err := operated(tx, k.name, about, shown, private); err != nil {
		return err
	}
	return k.tell(tx, about, data)
}

func members(data any) (out map[string]any, err error) {
	text, err := json.Marshal(data)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// On has fn called for every event of the kind in a transaction of d, inside
// that transaction. An error of fn undoes the change. Subscribe before the first
// transaction; subscribers are called in the order in which they subscribed.
func (k Kind[T]) On(d *db.DB, fn func(*db.Tx, Event[T]) error) { subscribe(d, k.kind, fn) }

func (k Kind[T]) tell(tx *db.Tx, about Subject, data T) error {
	heard := subscriptions.OfTx(tx)
	heard.RLock()
	all := heard.of[k.kind]
	readers := heard.readers[k.name]
	heard.RUnlock()
	for _, fn := range all {
		if err := fn.(func(*db.Tx, Event[T]) error)(tx, Event[T]{k.name, about, data}); err != nil {
			return err
		}
	}
	if about.Account != "" {
		for _, r := range readers {
			tx.AfterCommit(func() { r.wake(about.Account) })
		}
	}
	return nil
}

// Decode returns the data of a recorded event of the kind.
func (k Kind[T]) Decode(e Recorded) (data T, err error) {
	if e.Kind != k.name {
		return data, fmt.Errorf("event %s is not %s", e.Kind, k.name)
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("data of %s %s: %w", e.Kind, e.ID, err)
	}
	return data, nil
}

// Signal is something that one part of the program tells others inside the
// transaction of a change, and that nobody else hears of: it leaves no row.
type Signal[T any] struct{ *signal }

type signal struct{ name, doc string }

// DeclareSignal declares a signal. It is for package-level variables.
func DeclareSignal[T any](name, doc string) Signal[T] {
	if !validName.MatchString(name) || !strings.HasSuffix(doc, ".") {
		panic("event: signal " + name + " needs a name and a sentence")
	}
	return Signal[T]{&signal{name, doc}}
}

// Send tells the subscribers of the signal. It fails if one of them does.
func (s Signal[T]) Send(tx *db.Tx, v T) error {
	heard := subscriptions.OfTx(tx)
	heard.RLock()
	all := heard.of[s.signal]
	heard.RUnlock()
	for _, fn := range all {
		if err := fn.(func(*db.Tx, T) error)(tx, v); err != nil {
			return err
		}
	}
	return nil
}

// On has fn called for every signal in a transaction of d, as Kind.On does.
func (s Signal[T]) On(d *db.DB, fn func(*db.Tx, T) error) { subscribe(d, s.signal, fn) }

// subscriptions are who wants to be told, one set for each database handle.
var subscriptions db.Local[subscribers]

type subscribers struct {
	sync.RWMutex
	of      map[any][]any        // *kind or *signal -> its subscribers' functions
	readers map[string][]*reader // name of a kind -> who reads it later
}

func subscribe(d *db.DB, to, fn any) {
	heard := subscriptions.Of(d)
	heard.Lock()
	defer heard.Unlock()
	if heard.of == nil {
		heard.of = map[any][]any{}
	}
	heard.of[to] = append(heard.of[to], fn)
}

// Detach takes all subscribers and readers off d, for a program that begins
// anew on a handle that it has had before.
func Detach(d *db.DB) {
	heard := subscriptions.Of(d)
	heard.Lock()
	defer heard.Unlock()
	heard.of, heard.readers = nil, nil
}
