// Package till is Stripe for tests: stripe-mock judges each call by Stripe's own description and
// makes the answers, and a Till puts into them what its customers have subscribed to. It also
// signs events as Stripe does.
package till

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"
)

// Secrets of a Till.
const (
	Key    = "sk_test_canaryKeyOfTheTill"
	Secret = "whsec_canarySecretOfTheEndpoint"
)

// Subscription is what a customer has.
type Subscription struct {
	ID        string
	Status    string
	Price     string
	Quantity  int64
	PeriodEnd time.Time
	Ends      bool // at the end of the period
}

// Till is the far side.
type Till struct {
	URL string

	mu        sync.Mutex
	have      map[string][]Subscription // by customer
	customers map[string]string         // by idempotency key
	calls     []string                  // method and path of each call
	fail      int                       // status of all answers; 0: they are made
	deleted   map[string]bool           // customers
	before    func()                    // called once, before the next answer, when it is made
}

// stub is made once a process: it reads all of Stripe's description.
var stub = sync.OnceValues(func() (*server.StubServer, error) {
	spec, err := server.LoadSpec(embedded.OpenAPISpec, "")
	if err != nil {
		return nil, err
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		return nil, err
	}
	return server.NewStubServer(fixtures, spec, false, false)
})

// Open begins a Till, until the end of the test.
func Open(t *testing.T) *Till {
	t.Helper()
	judge, err := stub()
	if err != nil {
		t.Fatal(err)
	}
	till := &Till{have: map[string][]Subscription{}, customers: map[string]string{}, deleted: map[string]bool{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { till.serve(judge, w, r) }))
	t.Cleanup(s.Close)
	till.URL = s.URL
	return till
}

// Has sets all that a customer has.
func (t *Till) Has(customer string, all ...Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have[customer] = all
}

// Delete deletes a customer, with what it has.
func (t *Till) Delete(customer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted[customer] = true
}

// missing is what a call names that was deleted: its kind, its id and the parameter; empty: nothing.
func (t *Till) missing(r *http.Request, body []byte) (kind, id, param string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	form, _ := url.ParseQuery(string(body))
	for _, customer := range []string{form.Get("customer"), r.URL.Query().Get("customer")} {
		if t.deleted[customer] {
			return "customer", customer, "customer"
		}
	}
	if id, is := strings.CutPrefix(r.URL.Path, "/v1/subscriptions/"); is {
		for customer, all := range t.have {
			for _, s := range all {
				if s.ID == id && t.deleted[customer] {
					return "subscription", id, "id"
				}
			}
		}
	}
	return "", "", ""
}

// Fail has all calls answered with a status; 0: as usual.
func (t *Till) Fail(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail = status
}

// Before has fn called once, when the next answer is made and before it is sent.
func (t *Till) Before(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = fn
}

// Calls are the method and the path of each call so far.
func (t *Till) Calls() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.calls...)
}

func (t *Till) serve(judge *server.StubServer, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	t.mu.Lock()
	t.calls = append(t.calls, r.Method+" "+r.URL.Path)
	fail := t.fail
	t.mu.Unlock()
	if fail != 0 {
		w.Header().Set("Request-Id", "req_till")
		w.WriteHeader(fail)
		// Stripe quotes the key, in part.
		fmt.Fprintf(w, `{"error": {"type": "invalid_request_error", "message": "Invalid API Key provided: %s"}}`, Key)
		return
	}
	if kind, id, param := t.missing(r, body); kind != "" {
		w.Header().Set("Request-Id", "req_till")
		status := http.StatusBadRequest
		if param == "id" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": {"code": "resource_missing", "doc_url": "https://stripe.com/docs/error-codes/resource-missing",
			"message": "No such %s: '%s'", "param": %q, "type": "invalid_request_error"}}`, kind, id, param)
		return
	}
	made := httptest.NewRecorder()
	judge.HandleRequest(made, r)
	answer := made.Body.Bytes()
	if made.Code == http.StatusOK {
		answer = t.fill(r, answer)
	}
	t.mu.Lock()
	before := t.before
	t.before = nil
	t.mu.Unlock()
	if before != nil {
		before()
	}
	for name, values := range made.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(made.Code)
	_, _ = w.Write(answer)
}

// fill puts what the Till knows into an answer.
func (t *Till) fill(r *http.Request, answer []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var object map[string]any
	if json.Unmarshal(answer, &object) != nil {
		return answer
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/customers":
		key := r.Header.Get("Idempotency-Key")
		if t.customers[key] == "" {
			t.customers[key] = fmt.Sprintf("cus_till%d", len(t.customers)+1)
		}
		object["id"] = t.customers[key]
	case "POST /v1/checkout/sessions":
		object["url"] = "https://checkout.stripe.com/c/pay/cs_till"
		object["expires_at"] = 1_900_000_000
	case "GET /v1/subscriptions":
		t.list(r.URL.Query().Get("customer"), object)
	}
	if id, is := strings.CutPrefix(r.URL.Path, "/v1/subscriptions/"); is && r.Method == http.MethodDelete {
		t.cancel(id)
		object["id"], object["status"] = id, "canceled"
	}
	filled, err := json.Marshal(object)
	if err != nil {
		return answer
	}
	return filled
}

// cancel ends a subscription.
func (t *Till) cancel(id string) {
	for _, all := range t.have {
		for i := range all {
			if all[i].ID == id {
				all[i].Status = "canceled"
			}
		}
	}
}

// list makes a list of subscriptions of one that has one.
func (t *Till) list(customer string, list map[string]any) {
	all, _ := list["data"].([]any)
	if len(all) == 0 {
		return
	}
	pattern, err := json.Marshal(all[0])
	if err != nil {
		return
	}
	data := []any{}
	for _, s := range t.have[customer] {
		var one map[string]any
		if json.Unmarshal(pattern, &one) != nil {
			return
		}
		one["id"], one["customer"], one["status"] = s.ID, customer, s.Status
		one["cancel_at_period_end"], one["cancel_at"] = s.Ends, nil
		items, _ := one["items"].(map[string]any)
		held, _ := items["data"].([]any)
		item, _ := held[0].(map[string]any)
		price, _ := item["price"].(map[string]any)
		price["id"], item["quantity"], item["current_period_end"] = s.Price, s.Quantity, s.PeriodEnd.Unix()
		data = append(data, one)
	}
	list["data"], list["has_more"] = data, false
}

// Event is the body of an event about a customer.
func Event(id, kind, customer string) []byte {
	return fmt.Appendf(nil, `{"id": %q, "object": "event", "type": %q, "data": {"object": {"id": "sub_1", "object": "subscription",
		"customer": %q, "status": "incomplete"}}}`, id, kind, customer)
}

// Sign is the header Stripe-Signature of a body that was sent at a time.
func Sign(body []byte, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s,v0=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)), hex.EncodeToString(make([]byte, 32)))
}
