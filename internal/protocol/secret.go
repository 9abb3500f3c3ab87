package protocol

// KeyStatement is what a box signs with its nkey to say that a key is its own.
func KeyStatement(box, key string) []byte {
	return []byte("yardmaster box key 1\n" + box + "\n" + key)
}

// TokensPurpose binds the tokens of an attempt, sealed, to its run.
func TokensPurpose(run string) string { return "run-tokens/" + run }

// Tokens are the credentials of an attempt, which die with it.
type Tokens struct {
	Model string `json:"model"`
	Git   string `json:"git"`
}

// SecretsAsk asks for what a live attempt may use of the vaults. Only the process
// that claimed the attempt is answered.
type SecretsAsk struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
}

// OtherProcess is the slug of the refusal of a SecretsAsk whose attempt was
// claimed by another process than the one that said hello last.
const OtherProcess = "other-process"

// Secrets is the answer: a list of Secret in JSON, sealed to the box's Key for
// the purpose SecretsPurpose.
type Secrets struct {
	Sealed string `json:"sealed"`
}

// SecretsPurpose binds what is sealed to its run.
func SecretsPurpose(run string) string { return "run-secrets/" + run }

// Secret is one value. It never travels or rests but sealed.
type Secret struct {
	Name     string   `json:"name"` // of the environment variable, for DeliverEnv
	Delivery string   `json:"delivery"`
	Value    []byte   `json:"value"`
	Hosts    []string `json:"hosts,omitempty"` // DeliverBroker: host, or host:port unless it is 443
	Header   string   `json:"header,omitempty"`
	Prefix   string   `json:"prefix,omitempty"` // before the value in the header
}

// Deliveries of a Secret.
const (
	DeliverEnv    = "env"    // the agent has it in its environment
	DeliverBroker = "broker" // the box adds it to requests to Hosts; the agent never has it
)
