package app

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/remote/remotetest"
)

// Every input of a capability that is an address, by the id of the row and the name of the
// input: the body that has it in the place of %s, or why nobody connects to it.
type namedAddress struct {
	body   string
	unread string // why nothing connects to it; without a body it takes no address
	secure bool   // an address of https alone
	host   bool   // the name of a machine, without a scheme, port and path
	page   bool   // of a page for operators, who may name private networks
}

var namedAddresses = map[string]namedAddress{
	"billing.key_add base_url": {
		body: `{"provider":"compatible","key":"sk-abcdefghijklmnop","model":"m","base_url":%s}`},
	"billing.provider_models base_url": {
		body: `{"provider":"compatible","key":"sk-abcdefghijklmnop","base_url":%s}`},
	"self.key_add base_url": {
		body: `{"provider":"compatible","label":"mine","key":"sk-abcdefghijklmnop","base_url":%s}`},
	"self.provider_models base_url": {
		body: `{"provider":"compatible","key":"sk-abcdefghijklmnop","base_url":%s}`},
	"billing.log_sink_set url":     {body: `{"kind":"otlp","url":%s}`},
	"box.add_ssh host":             {body: `{"host":%s,"user":"yard"}`, host: true},
	"webhook.create url":           {body: `{"name":"hook","url":%s}`},
	"notification.webhook_set url": {body: `{"url":%s}`},
	"push.subscribe endpoint": {body: `{"endpoint":%s,"keys":{"auth":"tBHItJI5svbpez7KI4CCXg",` +
		`"p256dh":"BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"}}`},
	"org_sso.set issuer":                   {body: `{"issuer":%s,"client_id":"c","client_secret":"secret-of-it","domains":["example.com"]}`, secure: true},
	"code_host.setup_begin address":        {page: true},
	"service.oauth_authorize redirect_uri": {unread: "a browser is sent there"},
	"service.oauth_token redirect_uri":     {unread: "it is compared"},
	"integration.mapping_set url":          {unread: "it says where a delivery has an address for people"},
	"integration.mapping_preview url":      {unread: "it says where a delivery has an address for people"},
	"template.set base_url": {
		body:   `{"agent":"builtin","provider":"compatible","model":"m","base_url":%s}`,
		unread: "it chooses among the keys, whose addresses were judged",
	},
	"account.oss_verification_apply project_url": {
		body: `{"project_url":%s,"statement":"Apache-2.0"}`, unread: "people read it"},
}

// settings that are addresses: all are the operator's.
var addressesOfSettings = []string{"base-url", "nats-url", "smtp-url", "github-url", "audit-heads-webhook", "otlp-endpoint", "stripe-url"}

// isAddress tells whether an input or setting is an address, by its name or its format.
func isAddress(name, format string) bool {
	name = strings.ToLower(name)
	return format == "uri" || format == "url" || format == "hostname" || strings.HasSuffix(name, "url") || strings.HasSuffix(name, "uri") ||
		slices.Contains([]string{"endpoint", "issuer", "webhook"}, name) || strings.HasSuffix(name, "-endpoint") ||
		strings.HasSuffix(name, "-webhook")
}

// addressesIn are the names of the inputs of a struct that are addresses, at any depth.
func addressesIn(t reflect.Type, seen map[reflect.Type]bool) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if isAddress(name, f.Tag.Get("format")) {
			names = append(names, name)
		}
		names = append(names, addressesIn(f.Type, seen)...)
	}
	return names
}

// hostile are hosts of this machine, its network and its cloud, in all the ways to write them.
var hostile = strings.Fields(`127.0.0.1 127.9.9.9 localhost LOCALHOST [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::7f00:1]
	[64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [::ffff:0:7f00:1] 0.0.0.0 [::] 127.1 2130706433
	0x7f000001 0177.0.0.1 localhost. x.localhost 10.0.0.1 172.16.0.1 172.31.255.254 192.168.0.1 [::ffff:10.0.0.1] 100.64.0.1
	100.100.100.200 169.254.169.254 [::ffff:169.254.169.254] [fe80::1] [fe80::1%25lo] [fec0::1] [fc00::1] [fd00:ec2::254] [fd20:ce::254]
	168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 [ff02::1] 240.0.0.1 255.255.255.255
	[2001:db8::1] [64:ff9b::a00:1] [2002:a00:1::]`)

// privateHosts are those of the hostile hosts that an operator may name.
var privateHosts = strings.Fields(`10.0.0.1 172.16.0.1 172.31.255.254 192.168.0.1 [::ffff:10.0.0.1] [fc00::1]`)

// TestNoAddressLeadsInside walks every input of every capability that is an address. Where the
// server serves others, each refuses what is no address of the public network, in the same
// words, and nothing is connected to.
func TestNoAddressLeadsInside(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "ssh-key")
	if err := os.WriteFile(key, remotetest.NewFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	y := start(t, db.SQLite, "--trusted-proxies", "127.0.0.0/8", "--ssh-key-file", key)
	heard, port := listens(t)
	cookie := y.browser()
	walked := map[string]bool{}
	for _, o := range y.parts.ops("test") {
		for _, name := range addressesOf(&o) {
			at := o.ID + " " + name
			known, ok := namedAddresses[at]
			if !ok {
				t.Errorf("%s is an address and not in the walk", at)
				continue
			}
			walked[at] = true
			for _, host := range hostile {
				for _, scheme := range []string{"http", "https"} {
					y.name(&o, name, known, scheme+"://"+host+":"+port+"/any", cookie)
				}
			}
		}
	}
	for at := range namedAddresses {
		if !walked[at] {
			t.Errorf("%s is in the walk and is no address of a capability", at)
		}
	}
	if n := heard.Load(); n > 0 {
		t.Errorf("%d connections were made to this machine", n)
	}
	if len(hostile) < 40 {
		t.Errorf("only %d hosts", len(hostile))
	}
}

// addressesOf are the inputs of a row that are addresses.
func addressesOf(o *op.Op) (names []string) {
	for _, f := range o.Shape().Fields {
		if isAddress(f.Name, f.Tag.Get("format")) {
			names = append(names, f.Name)
		}
		names = append(names, addressesIn(f.Type, map[reflect.Type]bool{})...)
	}
	return names
}

// name calls a row with an address, and checks that it is refused in the common words.
func (y *yard) name(o *op.Op, field string, known namedAddress, address, cookie string) {
	y.t.Helper()
	if known.page {
		a := y.send(o.Method, o.Path, "", url.Values{field: {address}}.Encode(), "Cookie", cookie, "Sec-Fetch-Site", "same-origin",
			"Content-Type", "application/x-www-form-urlencoded")
		if slices.ContainsFunc(privateHosts, func(h string) bool { return strings.Contains(address, "//"+h+":") }) {
			return
		}
		if a.StatusCode != 400 {
			y.t.Errorf("%s of %s: %d %s", address, o.ID, a.StatusCode, a.body)
		}
		return
	}
	if known.body == "" {
		return
	}
	if known.host {
		u, err := url.Parse(address)
		if err != nil {
			y.t.Fatal(err)
		}
		address = u.Hostname()
	}
	quoted, err := json.Marshal(address)
	if err != nil {
		y.t.Fatal(err)
	}
	path := strings.NewReplacer("{name}", "name").Replace(o.Path)
	a := y.send(o.Method, path, y.owner, fmt.Sprintf(known.body, quoted))
	if known.unread != "" {
		return
	}
	want := dial.Unreachable
	if known.secure && strings.HasPrefix(address, "http:") {
		want = "must be an https address" // which is looked at first
	}
	var p op.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.StatusCode != 400 || !slices.Equal(p.Errors[field], []string{want}) {
		y.t.Errorf("%s of %s: %d %s", address, o.ID, a.StatusCode, a.body)
	}
}

// listens counts the connections to a port of this machine.
func listens(t *testing.T) (heard *atomic.Int64, port string) {
	t.Helper()
	heard = &atomic.Int64{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			heard.Add(1)
			c.Close()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return heard, port
}

// TestAddressesOfSettings: the settings that are addresses are known, so that a new one is
// thought about.
func TestAddressesOfSettings(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[config.Config]().NumField() {
		key := reflect.TypeFor[config.Config]().Field(i).Tag.Get("key")
		if isAddress(key, "") && !slices.Contains(addressesOfSettings, key) {
			t.Errorf("the setting %s is an address, and nobody said whose", key)
		}
	}
}

// TestModelsOfThisMachine: a server for the people of its own machine reaches a model there,
// and a probe tells nothing of what does not answer as a model.
func TestModelsOfThisMachine(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	heard, port := listens(t)
	open := y.send("POST", "/v1/billing/keys", y.owner, `{"provider":"compatible","base_url":"http://127.0.0.1:`+port+`"}`).want(400)
	if heard.Load() == 0 {
		t.Error("the model of this machine was not asked")
	}
	closed := y.send("POST", "/v1/billing/keys", y.owner, `{"provider":"compatible","base_url":"http://127.0.0.1:1"}`).want(400)
	var a, b op.Problem
	decode(t, open, &a)
	decode(t, closed, &b)
	if !reflect.DeepEqual(a.Errors, b.Errors) || a.Detail != b.Detail {
		t.Errorf("an open port is told from a closed one: %v, %v", a.Errors, b.Errors)
	}
}
