package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/db"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
)

// Topic is a list of rows whose changes clients follow, such as tasks.
type Topic struct {
	Name string // empty: the events of the topic appear only in the audit trail
	// Scope is the scope that a client needs to receive the topic's events.
	Scope policy.Scope
	// Key is the member in the data of other topics' events that names the row of
	// this topic which they change; empty: there is none.
	Key string
	// Fixed means that rows are never removed from their list.
	Fixed bool
}

// Audience returns a topic that clients cannot follow: its events are visible to
// those who may read the audit trail and have the scope.
func Audience(scope policy.Scope) *Topic { return &Topic{Scope: scope} }

// Subject is the object of an event.
type Subject struct {
	ID      string // of the object
	Account string // its owner; empty: the transaction's account, or the platform if an operator acts
	RepoID  string // set when the object belongs to a repository
}

// Event is an event as the subscribers of its kind receive it.
type Event[T any] struct {
	Kind    string
	Subject Subject // with the account whose chain it is on; empty: the platform's own
	Data    T
}

// Kind is a kind of event. Its declaration is the only place that describes it:
// the audit row, the topic that clients follow, the schema of its data, and the
// types for its subscribers follow from it.
//
// T is the data: a struct whose JSON becomes part of the audit row. Everybody who
// may read the row sees it, so it contains no secrets. A field with the tag
// shown:"admins" is withheld from those who do not manage members; a field with the tag
// json:"-" is only for subscribers, who receive the event in its own transaction.
type Kind[T any] struct{ *kind }

type kind struct {
	name  string // <noun>.<past participle>
	topic *Topic
	doc   string
	data  reflect.Type
}

// Name returns <noun>.<past participle>, such as task.created.
func (k *kind) Name() string { return k.name }

// Topic returns the topic of the kind.
func (k *kind) Topic() *Topic { return k.topic }

// Doc returns a sentence that says what has happened.
func (k *kind) Doc() string { return k.doc }

// Data returns the type of the kind's data.
func (k *kind) Data() reflect.Type { return k.data }

func (k *kind) declared() *kind { return k }

// Any is a kind with data of any type.
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
	kinds   map[string]*kind
	signals map[string]*signal
}

var validName = lazy.New(`^[a-z_]+\.[a-z_]+$`)

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

// Kinds lists all kinds that the packages of this program declare, by name.
func Kinds() []Any {
	catalogue.Lock()
	defer catalogue.Unlock()
	var out []Any
	for _, name := range slices.Sorted(maps.Keys(catalogue.kinds)) {
		out = append(out, catalogue.kinds[name])
	}
	return out
}

// TopicOf returns the topic of the kind with the name; nil if there is no such
// kind.
func TopicOf(name string) *Topic {
	catalogue.Lock()
	defer catalogue.Unlock()
	if k := catalogue.kinds[name]; k != nil {
		return k.topic
	}
	return nil
}

// Withhold returns the data of a row without the members that the actor may not see, and
// the names of those that were there. Whoever manages members sees all, and an operator.
func Withhold(a policy.Actor, name string, data json.RawMessage) (shown json.RawMessage, withheld []string, err error) {
	if a.Scopes&(policy.Scopes(policy.WriteMembers)|policy.Scopes(policy.AdminReadPlat)) != 0 {
		return data, nil, nil
	}
	catalogue.Lock()
	k := catalogue.kinds[name]
	catalogue.Unlock()
	if k == nil {
		return data, nil, nil
	}
	var all map[string]json.RawMessage
	for f := range k.data.Fields() {
		if f.Tag.Get("shown") != "admins" {
			continue
		}
		if all == nil {
			if err := json.Unmarshal(data, &all); err != nil {
				return nil, nil, fmt.Errorf("data of %s: %w", name, err)
			}
		}
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, ok := all[member]; ok {
			delete(all, member)
			withheld = append(withheld, member)
		}
	}
	if withheld == nil {
		return data, nil, nil
	}
	shown, err = json.Marshal(all)
	return shown, withheld, err
}

// None is the data of an event that needs none.
type None struct{}

// Record writes the audit row of an event in the transaction of the change, and
// calls the subscribers. The actor and the request id come from the context of the
// transaction; without an actor the system acted. It returns the error of a
// subscriber that fails.
func (k Kind[T]) Record(tx *db.Tx, about Subject, data T) error {
	account, err := record(tx, change{k.name, about, data})
	if err != nil {
		return err
	}
	about.Account = account
	return k.notifySubscribers(tx, about, data)
}

// Operated records an operator's act: with private on the platform's own chain, and
// without it on the chain of the account that it concerns, if there is one.
func (k Kind[T]) Operated(tx *db.Tx, about Subject, data T, private map[string]any) error {
	shown, err := members(data)
	if err != nil {
		return fmt.Errorf("encode audit data of %s: %w", k.name, err)
	}
	if err := operated(tx, k.name, about, shown, private); err != nil {
		return err
	}
	return k.notifySubscribers(tx, about, data)
}

func members(data any) (out map[string]any, err error) {
	text, err := json.Marshal(data)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// On makes fn run for every event of the kind in a transaction of d, inside that
// transaction. An error of fn undoes the change. Subscribe before the first
// transaction; subscribers run in the order of their subscriptions.
func (k Kind[T]) On(d *db.DB, fn func(*db.Tx, Event[T]) error) { subscribe(d, k.kind, fn) }

func (k Kind[T]) notifySubscribers(tx *db.Tx, about Subject, data T) error {
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

// Decode returns the data of a recorded event of the kind. It returns an error if
// the event is of another kind.
func (k Kind[T]) Decode(e Recorded) (data T, err error) {
	if e.Kind != k.name {
		return data, fmt.Errorf("event %s is not %s", e.Kind, k.name)
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("data of %s %s: %w", e.Kind, e.ID, err)
	}
	return data, nil
}

// Signal is a message from one part of the program to others inside the transaction
// of a change. It leaves no row, so nothing outside of the program sees it.
type Signal[T any] struct{ *signal }

type signal struct{ name, doc string }

// DeclareSignal declares a signal. It is for package-level variables. It panics if
// the name is taken or malformed, or if there is no sentence.
func DeclareSignal[T any](name, doc string) Signal[T] {
	s := &signal{name, doc}
	catalogue.Lock()
	defer catalogue.Unlock()
	switch {
	case !validName.MatchString(name) || !strings.HasSuffix(doc, "."):
		panic("event: signal " + name + " needs a name and a sentence")
	case catalogue.signals[name] != nil:
		panic("event: signal " + name + " is declared twice")
	}
	if catalogue.signals == nil {
		catalogue.signals = map[string]*signal{}
	}
	catalogue.signals[name] = s
	return Signal[T]{s}
}

// Send calls the subscribers of the signal. It returns the error of one that fails.
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

// On makes fn run for every signal in a transaction of d, as Kind.On does.
func (s Signal[T]) On(d *db.DB, fn func(*db.Tx, T) error) { subscribe(d, s.signal, fn) }

// subscriptions are the subscribers, one set for each database handle.
var subscriptions db.Local[subscribers]

type subscribers struct {
	sync.RWMutex
	of      map[any][]any        // functions of the subscribers, by *kind or *signal
	readers map[string][]*reader // consumers that read the kind later, by its name
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

// SignalSubscribers counts the subscribers on d of every declared signal, by name.
func SignalSubscribers(d *db.DB) map[string]int {
	catalogue.Lock()
	defer catalogue.Unlock()
	out := map[string]int{}
	for name, s := range catalogue.signals {
		out[name] = count(d, s)
	}
	return out
}

// KindSubscribers counts the subscribers on d of every declared kind of event, by
// name. Readers are not counted: they are told after the commit.
func KindSubscribers(d *db.DB) map[string]int {
	catalogue.Lock()
	defer catalogue.Unlock()
	out := map[string]int{}
	for name, k := range catalogue.kinds {
		out[name] = count(d, k)
	}
	return out
}

// count returns the number of subscribers on d of a *kind or *signal.
func count(d *db.DB, of any) int {
	heard := subscriptions.Of(d)
	heard.RLock()
	defer heard.RUnlock()
	return len(heard.of[of])
}

// Detach removes all subscribers and readers from d, for a program that starts
// again on the same handle.
func Detach(d *db.DB) {
	heard := subscriptions.Of(d)
	heard.Lock()
	defer heard.Unlock()
	heard.of, heard.readers = nil, nil
}
