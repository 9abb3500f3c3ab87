// Package config reads the settings of the server from command-line flags,
// YARDMASTER_* variables and one YAML file, in that order of precedence. Every
// value remembers its source. The struct Config is the whole list: each field has
// its key, its default and its description.
package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config has every setting of `yardmaster serve`. The key is the name of the flag
// and the YAML key; in upper case, with _ for -, it follows YARDMASTER_ in the
// environment.
type Config struct {
	Data           string        `key:"data" default:"./yardmaster-data" doc:"folder that holds everything: database, repositories, master key, heads of the record"`
	Listen         string        `key:"listen" default:"127.0.0.1:8080" doc:"host:port of the API, the git host and the pages"`
	BaseURL        string        `key:"base-url" doc:"address others reach the server at; derived from listen when empty"`
	TLSCert        string        `key:"tls-cert" doc:"file with the certificate of listen and those above it, in PEM, read again when it changes; with it, listen speaks TLS"`
	TLSKey         string        `key:"tls-key" doc:"file with the key of that certificate, in PEM"`
	ACME           string        `key:"acme" default:"off" doc:"off, on (Let's Encrypt, to whose terms you agree) or the address of another authority's directory, which certifies the host of base-url; listen speaks TLS"`
	ACMEMail       string        `key:"acme-email" doc:"address at which that authority reaches whoever operates the server"`
	ACMEListen     string        `key:"acme-listen" doc:"host:port which is port 80 of that host: it answers the authority and leads others to base-url; without it listen has to be port 443"`
	ACMERoots      string        `key:"acme-roots" doc:"file with certificates by which the authority's own address is trusted, in PEM; those of the machine when empty"`
	NATSListen     string        `key:"nats-listen" default:"127.0.0.1:0" doc:"host:port that boxes connect to; port 0 takes a free one and keeps it"`
	NATSURL        string        `key:"nats-url" doc:"address boxes reach NATS at (nats://HOST:PORT), or several with commas; derived from nats-listen when empty"`
	NATSTLS        string        `key:"nats-tls" default:"auto" doc:"auto, on, acme or off: whether boxes connect over TLS; auto, they do unless nats-listen and nats-url are on this machine; acme, with what acme has certified"`
	NATSCert       string        `key:"nats-tls-cert" doc:"file with the certificate of nats-listen and those above it, in PEM; when empty, the server signs one that its boxes know"`
	NATSKey        string        `key:"nats-tls-key" doc:"file with the key of that certificate, in PEM"`
	NATSInsecure   string        `key:"nats-insecure" default:"off" doc:"on or off; on, nats-tls may be off although boxes connect from other machines"`
	NATSServers    string        `key:"nats-servers" doc:"addresses (nats://HOST:PORT or tls://HOST:PORT, with commas between) of a NATS cluster in operator mode that the server and boxes use; without it the server is one itself"`
	NATSOperator   string        `key:"nats-operator-key" doc:"file with the seed of a signing key of the operator of nats-servers; it signs the accounts of boxes"`
	NATSSystem     string        `key:"nats-system-creds" doc:"file with the credentials of a user of their system account, as nsc writes it"`
	Database       string        `key:"database" doc:"postgres://… or sqlite:PATH; a file in the data folder when empty" secret:"true"`
	Blob           string        `key:"blob" doc:"where objects such as logs of checks are kept: folder:PATH, s3://ACCESS:SECRET@HOST/BUCKET?region=REGION (s3+http:// without TLS), or off; the folder blob in the data folder when empty" secret:"true"`
	MasterKey      string        `key:"master-key" doc:"master keys of 64 hex digits, comma-separated, the one that seals first; the file master.key in the data folder when empty" secret:"true"`
	KeyFile        string        `key:"master-key-file" doc:"file of master keys in place of that one, a line each, the one that seals first; say on another volume"`
	KeyCommand     Command       `key:"master-key-command" doc:"program and arguments (words, or a JSON list of strings) that prints the master keys in place of a file"`
	SetupToken     string        `key:"setup-token" doc:"fixes the token of the first-boot address, for automation" secret:"true"`
	Scenario       string        `key:"scenario" doc:"YAML file the scripted model answers from; a built-in one when empty"`
	Prices         string        `key:"prices" doc:"YAML file in the form of the built-in price table; its rows come before that table's"`
	QueueCap       int           `key:"queue-cap" default:"-1" doc:"most pending tasks of an account; -1 is no cap"`
	Seats          int           `key:"seats" doc:"runs an account may have at once; max(2, processors) when 0"`
	SMTPURL        string        `key:"smtp-url" doc:"smtp://, smtps:// or smtp+plain://USER:PASSWORD@HOST:PORT that sends mail, greeted with the host of base-url, or with NAME of ?helo=NAME; without it mails are files in the data folder" secret:"true"`
	MailFrom       string        `key:"mail-from" default:"Yardmaster <yardmaster@localhost>" doc:"sender of mails"`
	MailReplyTo    string        `key:"mail-reply-to" doc:"address that answers to mails go to; the sender when empty"`
	CommitAuthor   string        `key:"commit-author" default:"Yardmaster <yardmaster@localhost>" doc:"name and address that sign commits of agents and merges"`
	HTTPKeys       string        `key:"allow-http-keys" default:"loopback" doc:"where keys may be sent over plain http: loopback (this machine, where models there can be named) or anywhere"`
	RateLimits     string        `key:"rate-limits" default:"on" doc:"on or off; off where something before the server counts requests"`
	UI             string        `key:"ui" default:"on" doc:"on or off; off, the server has no dashboard"`
	Cluster        string        `key:"cluster" default:"off" doc:"on or off; on, several servers share one PostgreSQL database, with the same master keys; off, a second one is refused"`
	NATSRoutes     string        `key:"nats-routes" default:"127.0.0.1:0" doc:"host:port at which the buses of a cluster reach each other, over TLS of their own; port 0 takes a free one"`
	NodeListen     string        `key:"node-listen" default:"127.0.0.1:0" doc:"host:port at which the nodes of a cluster ask each other for repositories, over the same TLS; port 0 takes a free one"`
	NodeHost       string        `key:"node-host" doc:"name or address by which other nodes reach nats-routes and node-listen; the host of each when empty"`
	Role           string        `key:"role" default:"api,loops,gateway" doc:"what this node does, with commas between: api (requests, pages and git), loops (what is due), gateway (calls of models by boxes)"`
	Redis          string        `key:"redis" doc:"redis://:PASSWORD@HOST:PORT/DB, or rediss://, of a Redis or Valkey server in which several nodes count requests; without it they count in the database" secret:"true"`
	ServiceToken   string        `key:"service-token" doc:"bearer that the form for access requests proves itself by; without it nobody can apply" secret:"true"`
	Waitlist       string        `key:"waitlist" default:"off" doc:"on or off; on, strangers may sign in and wait until an operator lets them through; off, people come by invitation"`
	Proxies        Networks      `key:"trusted-proxies" doc:"networks (CIDR, comma-separated) whose X-Forwarded-For or Forwarded is believed"`
	OwnOrigins     Origins       `key:"own-origins" doc:"sites (https://HOST, comma-separated) that people open the server at besides base-url; only pages of these may sign in, and write with a cookie"`
	ReleaseKeys    Keys          `key:"release-keys" doc:"public keys of minisign, comma-separated, of the programs that an operator may import for boxes; boxes are told them when they enrol"`
	MCPOrigins     Origins       `key:"mcp-origins" doc:"sites (https://HOST, comma-separated) whose pages may call /v1/mcp in a browser, besides this server's own and those on the caller's machine"`
	Reachable      Networks      `key:"allow-networks" doc:"networks (CIDR, comma-separated) besides the public one in which addresses that customers name may lie, such as 10.1.0.0/16"`
	AirGapped      string        `key:"air-gapped" default:"off" doc:"on or off; on, the server connects to no public address but those of its settings: what people name has to lie in allow-networks"`
	GitHubURL      string        `key:"github-url" default:"https://github.com" doc:"GitHub, or a GitHub Enterprise Server, that people may sign in with"`
	GitHubID       string        `key:"github-client-id" doc:"client id of the OAuth app there; without it there is no sign-in with GitHub"`
	GitHubSecret   string        `key:"github-client-secret" doc:"client secret of the OAuth app" secret:"true"`
	GitHubApp      string        `key:"github-app-id" doc:"id of the App that the server is there; without it the App of a set-up at /gh/setup is used, if there was one"`
	GitHubAppSlug  string        `key:"github-app-slug" doc:"name of the App in addresses there"`
	GitHubAppKey   string        `key:"github-app-key-file" doc:"file with the private key of the App, in PEM"`
	GitHubAppHook  string        `key:"github-app-webhook-secret" doc:"secret that signs its deliveries" secret:"true"`
	GitHubAppHome  string        `key:"github-app-account" doc:"login of the account that its installations belong to; without it each owner there is given an account"`
	GitHubOwners   string        `key:"github-app-owners" doc:"logins there, with commas between, whose installations come into github-app-account; those of others are refused"`
	SSHKey         string        `key:"ssh-key-file" doc:"file with a private key (ssh-keygen -t ed25519) from which follows, for each account, the key that dials its machines; without it no box is added over SSH"`
	CommandName    string        `key:"command-name" doc:"what people may call the server by in comments at code hosts, without the @, besides the name of its App there"`
	GoalsRepo      string        `key:"goals-repo" doc:"HOST/OWNER/NAME of the repository whose milestones are the goals of the platform, such as github:github.com/acme/roadmap; without it there are none"`
	SystemPrompt   string        `key:"system-prompt" doc:"what every brief of every run begins with, before the prompts of the account and the rest"`
	StripeKey      string        `key:"stripe-secret-key" doc:"secret key of Stripe, through which accounts pay for seats; without it the server takes no payment and needs none" secret:"true"`
	StripeHook     string        `key:"stripe-webhook-secret" doc:"secret that signs the events of the endpoint BASE/v1/billing/stripe/webhook at Stripe" secret:"true"`
	StripeSeats    string        `key:"stripe-seat-price" doc:"id of the price of a seat at Stripe; more, with commas between, count and are not sold any more"`
	StripeDonor    string        `key:"stripe-donor-price" doc:"id of the price of oss_donor at Stripe; more as with stripe-seat-price"`
	StripeURL      string        `key:"stripe-url" default:"https://api.stripe.com" doc:"Stripe's API; another one for tests"`
	MergeGrace     int           `key:"merge-grace" default:"10" doc:"seconds for which a merge waits that a person has approved, so that it can be taken back, where no policy file says merge.grace"`
	PaymentGrace   int           `key:"payment-grace" default:"14" doc:"days for which what is paid for stands after a payment has failed"`
	HeadsFile      string        `key:"audit-heads-file" doc:"file that signed heads of the record are added to; audit-heads.jsonl in the data folder when empty"`
	HeadsEvery     time.Duration `key:"audit-heads-every" default:"1h" doc:"how often they are added, mailed and posted, if the record has grown"`
	HeadsMail      string        `key:"audit-heads-mail" doc:"address that new heads are mailed to"`
	HeadsHook      string        `key:"audit-heads-webhook" doc:"address that new heads are posted to as JSON" secret:"true"`
	LogLevel       string        `key:"log-level" default:"info" doc:"debug, info, warn or error"`
	LogFormat      string        `key:"log-format" default:"text" doc:"text or json"`
	MetricsListen  string        `key:"metrics-listen" doc:"host:port that answers Prometheus at /metrics, to everybody who reaches it; without it nothing is measured"`
	ProfileListen  string        `key:"profile-listen" doc:"host:port on this machine that answers go tool pprof at /debug/pprof/, to everybody who reaches it"`
	OTLPEndpoint   string        `key:"otlp-endpoint" doc:"address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; without it no traces are sent"`
	HeaderTime     time.Duration `key:"header-timeout" default:"10s" doc:"how long a client may take to send the headers of a request"`
	BodyTime       time.Duration `key:"body-timeout" default:"30s" doc:"how long a client may take to send a body, and another second for every 4 KiB of it"`
	StopDelay      time.Duration `key:"stop-delay" default:"0s" doc:"how long a server that is told to stop goes on, with /readyz at 503, so that a balancer sends it nothing any more"`
	Connections    int           `key:"most-connections" doc:"connections and requests at once; 0 is three quarters of the files that the process may open, less 128, and 16384 at most"`
	AddressConns   int           `key:"most-connections-address" doc:"of them from one address, but a trusted proxy's; 0 is an eighth"`
	Streams        int           `key:"most-streams" default:"20" doc:"streams, and calls that wait for news, that one credential may have open; 0 is no limit"`
	AccountStreams int           `key:"most-streams-account" default:"200" doc:"of them all credentials of an account together; 0 is no limit"`
	KeepInbox      int           `key:"keep-notifications" default:"90" doc:"days for which a row of an inbox is kept after its last change"`
	KeepDigests    int           `key:"keep-digests" default:"400" doc:"days for which digests are kept"`
	KeepRunFiles   int           `key:"keep-run-artifacts" default:"30" doc:"days for which artifacts with the visibility run are kept"`
	KeepFiles      int           `key:"keep-artifacts" default:"180" doc:"days for which other artifacts are kept"`
	KeepWebhooks   int           `key:"keep-webhook-events" default:"30" doc:"days for which events for webhooks are kept, and can be delivered again"`
	KeepHost       int           `key:"keep-host-deliveries" default:"30" doc:"days for which deliveries of code hosts are kept"`
	KeepSource     int           `key:"keep-source-deliveries" default:"30" doc:"days for which deliveries of sources are kept"`
	KeepEvents     int           `key:"keep-run-events" default:"90" doc:"days for which events of a run are kept after its end, but for what its report shows"`
	KeepAudit      int           `key:"keep-audit" default:"365" doc:"days for which rows of the record are kept, 30 at least"`
	KeepMails      int           `key:"keep-mails" default:"0" doc:"days for which mails are kept that were sent or have failed; 0 is for good"`
	DeletionWait   int           `key:"deletion-wait" default:"7" doc:"days for which any owner can take back that their account is deleted; 0 is none"`
	Lease          time.Duration `key:"lease" default:"60s" doc:"how long a silent box may work on; it stops itself before, and its work is handed on at 1.25 times this"`

	sources map[string]string
}

// Command is a program and its arguments. The zero value is no program.
type Command []string

func (c Command) String() string {
	if len(c) == 0 {
		return ""
	}
	b, err := json.Marshal([]string(c))
	if err != nil {
		panic(err) // strings always encode
	}
	return string(b)
}

// command reads words, or a JSON list if words contain blanks.
func command(s string) (Command, error) {
	if !strings.HasPrefix(strings.TrimSpace(s), "[") {
		return strings.Fields(s), nil
	}
	var c Command
	if err := json.Unmarshal([]byte(s), &c); err != nil || len(c) == 0 || c[0] == "" {
		return nil, fmt.Errorf("%q is not a list of a program and its arguments, in JSON", s)
	}
	return c, nil
}

// Origins are sites, in lower case. The zero value has none.
type Origins []string

func (o Origins) String() string { return strings.Join(o, ",") }

func origins(s string) (out Origins, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.ToLower(strings.TrimSpace(part)); part == "" {
			continue
		}
		u, err := url.Parse(part)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || part != u.Scheme+"://"+u.Host || !isHost(u) {
			return nil, fmt.Errorf("%q is not a site such as https://tools.example.com", part)
		}
		out = append(out, part)
	}
	return out, nil
}

// isHost tells whether the host of an address can occur in a browser's Origin.
func isHost(u *url.URL) bool {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	return !strings.ContainsAny(u.Hostname(), "*?, ") && u.Hostname() != "" && !strings.HasSuffix(u.Host, ":")
}

// File is the flag that names the YAML file. Without it, Load reads yardmaster.yaml
// in the data folder if that file exists.
const File = "config"

type setting struct {
	key, env, doc, def string
	secret             bool
	value              reflect.Value
}

func (c *Config) settings() []setting {
	v := reflect.ValueOf(c).Elem()
	var out []setting
	for i := range v.NumField() {
		t := v.Type().Field(i).Tag
		if k := t.Get("key"); k != "" {
			out = append(out, setting{
				key: k, env: "YARDMASTER_" + strings.ToUpper(strings.ReplaceAll(k, "-", "_")),
				doc: t.Get("doc"), def: t.Get("default"), secret: t.Get("secret") == "true", value: v.Field(i),
			})
		}
	}
	return out
}

// Load reads flags, environment and file. It fails for an unknown key, for a value
// that does not parse (the error names the key and its source), and for an argument
// that is no flag.
func Load(command string, args []string, env func(string) (string, bool), out io.Writer) (*Config, error) {
	fl := flag.NewFlagSet(command, flag.ContinueOnError)
	fl.SetOutput(out)
	load := Define(fl, env)
	if err := fl.Parse(args); err != nil {
		return nil, err
	}
	if fl.NArg() > 0 {
		return nil, fmt.Errorf("%s takes no argument %q", command, fl.Arg(0))
	}
	return load()
}

// Define adds a flag for every setting. It answers a function that reads environment
// and file after the flags are parsed, and fails as Load does.
func Define(fl *flag.FlagSet, env func(string) (string, bool)) func() (*Config, error) {
	c := &Config{sources: map[string]string{}}
	given := map[string]*string{}
	for _, s := range c.settings() {
		given[s.key] = fl.String(s.key, s.def, s.doc+" ("+s.env+")")
	}
	file := fl.String(File, "", "YAML file with the same keys; yardmaster.yaml in the data folder, if it is there, when empty (YARDMASTER_CONFIG)")
	return func() (*Config, error) { return c.load(fl, given, *file, env) }
}

func (c *Config) load(fl *flag.FlagSet, given map[string]*string, path string, env func(string) (string, bool)) (*Config, error) {
	all := c.settings()
	onLine := map[string]bool{}
	fl.Visit(func(f *flag.Flag) { onLine[f.Name] = true })

	pick := func(s setting, values map[string]string, path string) error {
		v, from := s.def, "default"
		if x, ok := values[s.key]; ok {
			v, from = x, path
		}
		if x, ok := env(s.env); ok {
			v, from = x, s.env
		}
		if onLine[s.key] {
			v, from = *given[s.key], "--"+s.key
		}
		if err := assign(s.value, v); err != nil {
			return fmt.Errorf("%s (from %s): %w", s.key, from, err)
		}
		c.sources[s.key] = from
		return nil
	}
	// The data folder is read first: it may contain the file.
	if err := pick(all[0], nil, ""); err != nil {
		return nil, err
	}
	if p, ok := env("YARDMASTER_CONFIG"); ok && path == "" {
		path = p
	}
	values, path, err := readFile(path, c.Data)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.key] = true
		if err := pick(s, values, path); err != nil {
			return nil, err
		}
	}
	for k := range values {
		if !known[k] {
			return nil, fmt.Errorf("%s: there is no setting %q", path, k)
		}
	}
	return c, c.settle()
}

func readFile(path, data string) (map[string]string, string, error) {
	optional := path == ""
	if optional {
		path = filepath.Join(data, "yardmaster.yaml")
	}
	b, err := os.ReadFile(path)
	// Any other fault of the data folder shows when the server uses it.
	if optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return nil, path, nil
	}
	if err != nil {
		return nil, path, err
	}
	nodes := map[string]yaml.Node{}
	if err := yaml.Unmarshal(b, &nodes); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	values := map[string]string{}
	for key, n := range nodes {
		v, set, err := text(&n)
		if n.Kind == yaml.SequenceNode && key == "master-key-command" {
			var words Command
			if err = n.Decode((*[]string)(&words)); err == nil {
				v = words.String()
			}
		}
		if err != nil {
			return nil, path, fmt.Errorf("%s, line %d: %s %w", path, n.Line, key, err)
		}
		if set {
			values[key] = v
		}
	}
	return values, path, nil
}

func assign(v reflect.Value, s string) error {
	switch v.Interface().(type) {
	case string:
		v.SetString(s)
	case time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 75s", s)
		}
		v.SetInt(int64(d))
	case Networks:
		n, err := networks(s)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(n))
	case Keys:
		k, err := keys(s)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(k))
	case Origins:
		o, err := origins(s)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(o))
	case Command:
		c, err := command(s)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(c))
	case int:
		if s == "" {
			s = "0"
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is not an integer", s)
		}
		v.SetInt(int64(n))
	}
	return nil
}

func (c *Config) settle() error {
	abs, err := filepath.Abs(c.Data)
	if err != nil {
		return err
	}
	c.Data = abs
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	if c.Seats == 0 {
		c.Seats = max(2, runtime.NumCPU())
	}
	if c.Database == "" {
		c.Database = "sqlite:" + filepath.Join(c.Data, "yardmaster.db")
	}
	if err := errors.Join(c.settleBlob(), c.settleGoals(), c.settleKeep(), c.settleNATS(), c.settlePayment(), c.settleMerge(),
		c.settleCluster(), c.settleTLS(), c.settleOutside()); err != nil {
		return err
	}
	given := 0
	for _, set := range []bool{c.MasterKey != "", c.KeyFile != "", len(c.KeyCommand) > 0} {
		if set {
			given++
		}
	}
	if given > 1 {
		return errors.New("of master-key, master-key-file and master-key-command only one can be given")
	}
	if c.HeadsFile == "" {
		c.HeadsFile = filepath.Join(c.Data, "audit-heads.jsonl")
	}
	if c.HeadsEvery < time.Second {
		return fmt.Errorf("audit-heads-every (from %s): must be at least 1s", c.sources["audit-heads-every"])
	}
	if u, err := url.Parse(c.HeadsHook); c.HeadsHook != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		return fmt.Errorf("audit-heads-webhook (from %s): is not an http address", c.sources["audit-heads-webhook"])
	}
	if c.HeadsMail != "" && (strings.Count(c.HeadsMail, "@") != 1 || strings.ContainsAny(c.HeadsMail, " \t\r\n<>,")) {
		return fmt.Errorf("audit-heads-mail (from %s): %q is not an address such as audit@example.com", c.sources["audit-heads-mail"], c.HeadsMail)
	}
	if _, err := mail.ParseAddress(c.MailReplyTo); c.MailReplyTo != "" && err != nil {
		return fmt.Errorf("mail-reply-to (from %s): %q is not an address such as help@example.com", c.sources["mail-reply-to"], c.MailReplyTo)
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		return fmt.Errorf("log-level (from %s): %q is none of debug, info, warn, error", c.sources["log-level"], c.LogLevel)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		return fmt.Errorf("log-format (from %s): %q is neither text nor json", c.sources["log-format"], c.LogFormat)
	}
	if c.HTTPKeys != "loopback" && c.HTTPKeys != "anywhere" {
		return fmt.Errorf("allow-http-keys (from %s): %q is neither loopback nor anywhere", c.sources["allow-http-keys"], c.HTTPKeys)
	}
	if c.RateLimits != "on" && c.RateLimits != "off" {
		return fmt.Errorf("rate-limits (from %s): %q is neither on nor off", c.sources["rate-limits"], c.RateLimits)
	}
	if c.UI != "on" && c.UI != "off" {
		return fmt.Errorf("ui (from %s): %q is neither on nor off", c.sources["ui"], c.UI)
	}
	if c.Waitlist != "on" && c.Waitlist != "off" {
		return fmt.Errorf("waitlist (from %s): %q is neither on nor off", c.sources["waitlist"], c.Waitlist)
	}
	if u, err := url.Parse(c.BaseURL); c.BaseURL != "" &&
		(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
		return fmt.Errorf("base-url (from %s): %q is not an address such as https://yardmaster.example.com", c.sources["base-url"],
			c.BaseURL)
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("listen (from %s): %q has not the form host:port", c.sources["listen"], c.Listen)
	}
	if _, port, err := net.SplitHostPort(c.MetricsListen); c.MetricsListen != "" && (err != nil || port == "") {
		return fmt.Errorf("metrics-listen (from %s): %q has not the form host:port", c.sources["metrics-listen"], c.MetricsListen)
	}
	if u, err := url.Parse(c.OTLPEndpoint); c.OTLPEndpoint != "" &&
		(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "") {
		return fmt.Errorf("otlp-endpoint (from %s): %q is no address like http://127.0.0.1:4318", c.sources["otlp-endpoint"], c.OTLPEndpoint)
	}
	if u, err := url.Parse(c.GitHubURL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("github-url (from %s): %q is not an http address", c.sources["github-url"], c.GitHubURL)
	}
	c.GitHubURL = strings.TrimSuffix(c.GitHubURL, "/")
	if app := c.GitHubApp != ""; app != (c.GitHubAppSlug != "") || app != (c.GitHubAppKey != "") ||
		(c.GitHubID == "") != (c.GitHubSecret == "") || c.GitHubOwners != "" && c.GitHubAppHome == "" {
		return errors.New("github-app-id, github-app-slug and github-app-key-file go together, and github-client-id and github-client-secret, " +
			"and github-app-owners with github-app-account")
	}
	if a, err := mail.ParseAddress(c.CommitAuthor); err != nil || a.Name == "" {
		return fmt.Errorf("commit-author (from %s): %q has not the form Name <address>", c.sources["commit-author"], c.CommitAuthor)
	}
	if c.QueueCap < -1 {
		return fmt.Errorf("queue-cap (from %s): must be -1 or more", c.sources["queue-cap"])
	}
	if c.StopDelay < 0 {
		return fmt.Errorf("stop-delay (from %s): must not be negative", c.sources["stop-delay"])
	}
	if c.Lease < time.Second {
		return fmt.Errorf("lease (from %s): must be at least 1s", c.sources["lease"])
	}
	if c.HeaderTime <= 0 {
		return fmt.Errorf("header-timeout (from %s): must be more than 0", c.sources["header-timeout"])
	}
	if c.BodyTime <= 0 {
		return fmt.Errorf("body-timeout (from %s): must be more than 0", c.sources["body-timeout"])
	}
	for name, n := range map[string]int{"most-connections": c.Connections, "most-connections-address": c.AddressConns,
		"most-streams": c.Streams, "most-streams-account": c.AccountStreams} {
		if n < 0 {
			return fmt.Errorf("%s (from %s): must not be negative", name, c.sources[name])
		}
	}
	if c.Seats < 0 {
		return fmt.Errorf("seats (from %s): must not be negative", c.sources["seats"])
	}
	return nil
}
