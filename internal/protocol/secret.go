package protocol

// KeyStatement is the text that a box signs with its nkey to prove that a key is its
// own.
func KeyStatement(box, key string) []byte {
	return []byte("yardmaster box key 1\n" + box + "\n" + key)
}

// TokensPurpose binds the sealed tokens of an attempt to its run.
func TokensPurpose(run string) string { return "run-tokens/" + run }

// Tokens are the credentials of an attempt, which end with it.
type Tokens struct {
	Model string `json:"model"`
	Git   string `json:"git"`
}

// SecretsAsk asks for the secrets that a live attempt may use. The server answers
// only the process that claimed the attempt.
type SecretsAsk struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// OtherProcess is the slug of the refusal of a SecretsAsk whose attempt was claimed
// by another process than the last one to send a Hello.
const OtherProcess = "other-process"

// Secrets answers SecretsAsk: a list of Secret in JSON, sealed to the box's Key for
// the purpose SecretsPurpose.
type Secrets struct {
	Sealed string `json:"sealed"`
}

// SecretsPurpose binds the sealed secrets to their run.
func SecretsPurpose(run string) string { return "run-secrets/" + run }

// Secret is one secret value. It is never sent or stored unsealed.
type Secret struct {
	Name     string   `json:"name"` // of the environment variable, for DeliverEnv
	Delivery Delivery `json:"delivery"`
	Value    []byte   `json:"value"`
	Hosts    []string `json:"hosts,omitempty"` // DeliverBroker: host, or host:port unless it is 443
	Header   string   `json:"header,omitempty"`
	Prefix   string   `json:"prefix,omitempty"` // precedes the value in the header
}

// Delivery is how a run gets a Secret.
type Delivery string

// Deliveries of a Secret.
const (
	DeliverEnv    Delivery = "env"    // the agent has it in its environment
	DeliverBroker Delivery = "broker" // the box adds it to requests to Hosts; the agent never has it
)

// Values lists both deliveries.
func (Delivery) Values() []string { return []string{string(DeliverEnv), string(DeliverBroker)} }
